#!/usr/bin/env python3
"""Trains resnet18 in PyTorch by the recipes of compare_accuracy.sh: a stem for 32x32 images, bf16, one-cycle, crop, flip.

Reads a Convoy HDF5 file of pixels and prints one JSON object with test_accuracy. The classic recipe keeps the images on the GPU
and augments them there. --modern adds TrivialAugment, random erasing, mixup and an exponential moving average of the weights,
with torchvision's transforms on Pillow images in worker processes, and prints ema_test_accuracy too.
"""
import argparse, json, time
import h5py, torch, torchvision
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torchvision.transforms import v2


def network(classes):
    model = torchvision.models.resnet18(num_classes=classes)
    model.conv1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False)
    nn.init.kaiming_normal_(model.conv1.weight, mode="fan_out", nonlinearity="relu")
    model.maxpool = nn.Identity()
    return model.cuda().to(memory_format=torch.channels_last)


def split(file, name, mean, std):
    images = torch.from_numpy(file[f"{name}/images"][:]).cuda().float().div_(255)
    images = ((images - mean) / std).permute(0, 3, 1, 2)
    return images.contiguous(memory_format=torch.channels_last), torch.from_numpy(file[f"{name}/labels"][:]).long().cuda()


def augment(images):
    """Returns random crops of images padded with the mean colour, half of them mirrored."""
    n, _, h, w = images.shape
    padded = nn.functional.pad(images, (4, 4, 4, 4))
    rows = torch.randint(0, 9, (n, 1), device="cuda") + torch.arange(h, device="cuda")
    columns = torch.randint(0, 9, (n, 1), device="cuda") + torch.arange(w, device="cuda")
    columns = torch.where(torch.rand(n, 1, device="cuda") < 0.5, columns.flip(1), columns)
    picked = padded.permute(0, 2, 3, 1)[torch.arange(n, device="cuda")[:, None, None], rows[:, :, None], columns[:, None]]
    return picked.permute(0, 3, 1, 2)


class Stored(torch.utils.data.Dataset):
    """The training images as Pillow images after the transforms of the modern recipe."""

    def __init__(self, file, mean, std):
        self.images, self.labels = file["train/images"][:], file["train/labels"][:].astype("int64")
        self.transform = v2.Compose([
            v2.ToPILImage(), v2.RandomCrop(32, padding=4, fill=tuple(round(255 * m) for m in mean)), v2.RandomHorizontalFlip(),
            v2.TrivialAugmentWide(), v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(mean, std),
            v2.RandomErasing(p=0.1)])

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.transform(self.images[index]), self.labels[index]


def classic_batches(images, labels, args):
    while True:
        for pick in torch.randperm(len(images), device="cuda").split(args.batch):
            yield augment(images[pick]), labels[pick]


def modern_batches(stored, args):
    loader = torch.utils.data.DataLoader(stored, args.batch, shuffle=True, num_workers=args.workers, pin_memory=True,
                                         persistent_workers=True, prefetch_factor=8)
    mixup = v2.MixUp(alpha=0.2, num_classes=10)
    while True:
        for images, labels in loader:
            images = images.cuda(non_blocking=True).contiguous(memory_format=torch.channels_last)
            yield mixup(images, labels.cuda(non_blocking=True))


def accuracy(model, images, labels):
    model.eval()
    with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
        right = sum((model(x).argmax(1) == y).sum().item() for x, y in zip(images.split(1000), labels.split(1000)))
    model.train()
    return right / len(labels)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    parser.add_argument("--modern", action="store_true")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--workers", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    with h5py.File(args.data) as file:
        values = [file.attrs[k][:].tolist() for k in ("mean", "std")]
        mean, std = (torch.tensor(v, dtype=torch.float32, device="cuda") for v in values)
        stored = Stored(file, *values) if args.modern else None
        (images, labels), (test_images, test_labels) = (split(file, s, mean, std) for s in ("train", "test"))
    model = network(int(labels.max()) + 1)
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.999), use_buffers=True) if args.modern else None
    decayed = [p for p in model.parameters() if p.dim() > 1]
    plain = [p for p in model.parameters() if p.dim() <= 1]
    optimizer = torch.optim.SGD([{"params": decayed, "weight_decay": 5e-4}, {"params": plain, "weight_decay": 0}],
                                lr=0.1, momentum=0.9, fused=True)
    steps = -(-len(images) // args.batch) * args.epochs
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=steps, cycle_momentum=False)
    loss_of = nn.CrossEntropyLoss()
    start = time.time()
    batches = modern_batches(stored, args) if args.modern else classic_batches(images, labels, args)
    for _, (x, y) in zip(range(steps), batches):
        with torch.autocast("cuda", torch.bfloat16):
            loss = loss_of(model(x), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        schedule.step()
        if average is not None:
            average.update_parameters(model)
    result = {"test_accuracy": accuracy(model, test_images, test_labels), "train_loss": loss.item(), "seconds": time.time() - start}
    if average is not None:
        result["ema_test_accuracy"] = accuracy(average, test_images, test_labels)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
