#!/usr/bin/env python3
"""Measures PyTorch's DataLoader with torchvision's transforms on Pillow images: the peer of `convoy bench loader`.

Reads the training images of a folder (FOLDER/train/CLASS/*.jpg): random resized crop to 224, flip, tensor, normalise. Prints one
JSON object: images_per_second by wall time, and cpu_microseconds_per_image, the user and system time of all processes.
"""
import argparse, json, resource, time
import torch
from torchvision import datasets, transforms


def cpu_seconds():
    return sum(usage.ru_utime + usage.ru_stime
               for usage in (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(1)
    stored = datasets.ImageFolder(args.folder + "/train", transforms.Compose([
        transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor(),
        transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))]))
    before, start, images = cpu_seconds(), time.perf_counter(), 0
    for _ in range(args.epochs):
        # The workers end after each epoch, and only then their CPU time is counted.
        for batch, _ in torch.utils.data.DataLoader(stored, args.batch, shuffle=True, num_workers=args.workers):
            images += len(batch)
    seconds = time.perf_counter() - start
    print(json.dumps({"images": images, "workers": args.workers, "images_per_second": images / seconds,
                      "cpu_microseconds_per_image": (cpu_seconds() - before) / images * 1e6}))


if __name__ == "__main__":
    main()
