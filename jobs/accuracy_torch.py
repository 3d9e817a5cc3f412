#!/usr/bin/env python3
"""The recipe of compare_accuracy.sh in PyTorch: resnet18 with a stem for 32x32 images, bf16, one-cycle, crop and flip.

Reads a Convoy HDF5 file, keeps it on the GPU, augments there, and prints one JSON object with test_accuracy.
"""
import argparse, json, time
import h5py, torch, torchvision
from torch import nn


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
    """Crops around which the mean colour lies, half of them mirrored."""
    n, _, h, w = images.shape
    padded = nn.functional.pad(images, (4, 4, 4, 4))
    rows = torch.randint(0, 9, (n, 1), device="cuda") + torch.arange(h, device="cuda")
    columns = torch.randint(0, 9, (n, 1), device="cuda") + torch.arange(w, device="cuda")
    columns = torch.where(torch.rand(n, 1, device="cuda") < 0.5, columns.flip(1), columns)
    picked = padded.permute(0, 2, 3, 1)[torch.arange(n, device="cuda")[:, None, None], rows[:, :, None], columns[:, None]]
    return picked.permute(0, 3, 1, 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    with h5py.File(args.data) as file:
        mean, std = (torch.tensor(file.attrs[k][:], dtype=torch.float32, device="cuda") for k in ("mean", "std"))
        (images, labels), (test_images, test_labels) = (split(file, s, mean, std) for s in ("train", "test"))
    model = network(int(labels.max()) + 1)
    decayed = [p for p in model.parameters() if p.dim() > 1]
    plain = [p for p in model.parameters() if p.dim() <= 1]
    optimizer = torch.optim.SGD([{"params": decayed, "weight_decay": 5e-4}, {"params": plain, "weight_decay": 0}],
                                lr=0.1, momentum=0.9, fused=True)
    steps = -(-len(images) // args.batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=steps * args.epochs, cycle_momentum=False)
    loss_of = nn.CrossEntropyLoss()
    start = time.time()
    for _ in range(args.epochs):
        model.train()
        for pick in torch.randperm(len(images), device="cuda").split(args.batch):
            with torch.autocast("cuda", torch.bfloat16):
                loss = loss_of(model(augment(images[pick])), labels[pick])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            schedule.step()
    model.eval()
    with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
        right = sum((model(x).argmax(1) == y).sum().item()
                    for x, y in zip(test_images.split(1000), test_labels.split(1000)))
    print(json.dumps({"test_accuracy": right / len(test_labels), "train_loss": loss.item(), "seconds": time.time() - start}))


if __name__ == "__main__":
    main()
