#!/usr/bin/env python3
"""Compares fine-tuning in Convoy with the same recipe in PyTorch, on CIFAR-10 and one GPU.

PyTorch trains resnet18 with a stem for 32x32 images on six classes and writes a safetensors file. Both programs then
fine-tune that file on the other four classes: the stem and the first stage stay frozen, the rest of the body learns at a
tenth of the head's rate (bf16, one-cycle, crop and flip). Prints the mean test accuracies over the seeds and whether the frozen
parameters kept their bits. Needs PyTorch with torchvision, h5py and safetensors.

  jobs/compare_finetuning.py cifar10.h5 --convoy build/cuda/convoy --seeds 3
"""
import argparse, fnmatch, json, os, statistics, subprocess, sys, tempfile

import h5py, numpy, torch
from safetensors.torch import load_file, save_file
from torch import nn

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from accuracy_torch import accuracy, augment, network

BEFORE, AFTER = range(6), range(6, 10)  # classes of the first training and of the fine-tuning
FROZEN, SLOW = ["conv1.*", "bn1.*", "layer1.*"], ["layer[234].*"]
RATE, FACTOR, DECAY, BATCH = 0.05, 0.1, 5e-4, 128


def write_part(path, source, classes):
    """Writes the images of some classes as a store of their own."""
    with h5py.File(source) as file, h5py.File(path, "w") as part:
        for split in ("train", "test"):
            labels = file[f"{split}/labels"][:]
            kept = numpy.isin(labels, list(classes))
            part[f"{split}/images"] = file[f"{split}/images"][:][kept]
            part[f"{split}/labels"] = (labels[kept] - min(classes)).astype(numpy.int32)
        part.attrs["classes"] = [file.attrs["classes"][c] for c in classes]
        part.attrs["mean"], part.attrs["std"] = file.attrs["mean"], file.attrs["std"]


def load(path):
    with h5py.File(path) as file:
        mean, std = (torch.tensor(file.attrs[key][:].tolist(), device="cuda") for key in ("mean", "std"))
        splits = []
        for split in ("train", "test"):
            images = ((torch.from_numpy(file[f"{split}/images"][:]).cuda().float() / 255 - mean) / std).permute(0, 3, 1, 2)
            splits += [images.contiguous(memory_format=torch.channels_last),
                       torch.from_numpy(file[f"{split}/labels"][:]).long().cuda()]
    return splits


def fits(name, patterns):
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def train(model, images, labels, epochs, rate, slow):
    """Trains the parameters that want gradients. Batch norms of frozen parameters keep their statistics."""
    groups = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            key = (DECAY if parameter.dim() > 1 else 0, rate * (FACTOR if slow and fits(name, SLOW) else 1))
            groups.setdefault(key, []).append(parameter)
    optimizer = torch.optim.SGD([{"params": p, "weight_decay": decay, "lr": lr} for (decay, lr), p in groups.items()],
                                lr=rate, momentum=0.9, fused=True)
    steps = -(-len(images) // BATCH) * epochs
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, [lr for _, lr in groups], total_steps=steps, cycle_momentum=False)
    for _ in range(epochs):
        model.train()
        for module in model.modules():
            if isinstance(module, nn.BatchNorm2d) and not module.weight.requires_grad:
                module.eval()
        for pick in torch.randperm(len(images), device="cuda").split(BATCH):
            with torch.autocast("cuda", torch.bfloat16):
                loss = nn.functional.cross_entropy(model(augment(images[pick])), labels[pick])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            schedule.step()


def fine_tune_in_torch(weights, data, epochs, seed):
    torch.manual_seed(seed)
    model = network(len(AFTER))
    body = {name: value for name, value in load_file(weights).items() if not name.startswith("fc.")}
    model.load_state_dict(body, strict=False)
    for name, parameter in model.named_parameters():
        parameter.requires_grad = not fits(name, FROZEN)
    images, labels, test_images, test_labels = data
    train(model, images, labels, epochs, RATE, True)
    return accuracy(model, test_images, test_labels)


def fine_tune_in_convoy(args, weights, store, folder, seed):
    command = [args.convoy, "train", "--backend", "cuda", "--precision", "bf16", "--model", "resnet18_cifar", "--data", store,
               "--out", folder, "--init", weights, "--epochs", str(args.epochs), "--global-batch", str(BATCH), "--seed", str(seed),
               "--learning-rate", str(RATE), "--schedule", "one-cycle", "--momentum", "0.9", "--weight-decay", str(DECAY),
               "--crop-padding", "4", "--flip"]
    for pattern in FROZEN:
        command += ["--freeze", pattern]
    for pattern in SLOW:
        command += ["--rate", f"{pattern}={FACTOR}"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    exported = os.path.join(folder, "end.safetensors")
    subprocess.run([args.convoy, "export", "--checkpoint", folder, "--out", exported], check=True, stdout=subprocess.DEVNULL)
    before, after = load_file(weights), load_file(exported)
    frozen = all(torch.equal(before[name], after[name]) for name in before if fits(name, FROZEN) and "num_batches" not in name)
    with open(os.path.join(folder, "summary.json")) as file:
        return json.load(file)["test_accuracy"], frozen


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="CIFAR-10 as a store of pixels")
    parser.add_argument("--convoy", default="build/cuda/convoy")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        before, after, weights = (os.path.join(folder, name) for name in ("before.h5", "after.h5", "before.safetensors"))
        write_part(before, args.data, BEFORE)
        write_part(after, args.data, AFTER)
        torch.manual_seed(0)
        model = network(len(BEFORE))
        images, labels, test_images, test_labels = load(before)
        train(model, images, labels, args.epochs, 0.1, False)
        print(f"first training   {100 * accuracy(model, test_images, test_labels):.2f} % of six classes")
        save_file({name: value.contiguous() for name, value in model.state_dict().items()}, weights)
        data, found = load(after), {"PyTorch": [], "Convoy": []}
        for seed in range(1, args.seeds + 1):
            found["PyTorch"].append(100 * fine_tune_in_torch(weights, data, args.epochs, seed))
            top1, frozen = fine_tune_in_convoy(args, weights, after, os.path.join(folder, f"run{seed}"), seed)
            found["Convoy"].append(100 * top1)
            if not frozen:
                print(f"seed {seed}: frozen parameters changed")
                return 1
    for program, values in found.items():
        print(f"{program:16} {statistics.mean(values):.2f} % of four classes ({', '.join(f'{v:.2f}' for v in values)})")
    print("frozen parameters and statistics kept their bits")
    return 0 if abs(statistics.mean(found["Convoy"]) - statistics.mean(found["PyTorch"])) <= 0.5 else 1


if __name__ == "__main__":
    sys.exit(main())
