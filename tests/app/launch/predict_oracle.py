#!/usr/bin/env python3
"""Says what other programs make of the images and the network that `convoy predict` is tested with.

predict_oracle.py images STORE FOLDER              writes the test images as FOLDER/CLASS/NUMBER.png
predict_oracle.py compare CHECKPOINT STORE CSV     compares a table of lenet on the store with PyTorch
predict_oracle.py same STORE_CSV FOLDER_CSV        compares a store's table with that of its images
"""
import csv
import os
import sys

TOLERANCE = 1e-4


def text(name):
    return name.decode() if isinstance(name, bytes) else str(name)


def images(store, folder):
    import h5py
    from PIL import Image
    with h5py.File(store) as file:
        classes = [text(name) for name in file.attrs["classes"]]
        for number, (pixels, label) in enumerate(zip(file["test/images"], file["test/labels"])):
            os.makedirs(f"{folder}/{classes[label]}", exist_ok=True)
            Image.fromarray(pixels).save(f"{folder}/{classes[label]}/{number:04}.png")


def table(path):
    """Image -> {class: probability}."""
    with open(path, newline="") as file:
        head, *rows = csv.reader(file)
    assert all(len(row) == len(head) for row in rows), f"{path}: rows of other lengths than the header"
    return {row[0]: {name: float(p) for name, p in zip(row[1::2], row[2::2])} for row in rows}


def compare_rows(found, expected, image):
    for name, probability in found.items():
        assert abs(expected[name] - probability) <= TOLERANCE, f"{image}, {name}: found {probability}, expected {expected[name]}"
    assert list(found.values()) == sorted(found.values(), reverse=True), f"{image}: not in order"


def compare(checkpoint, store, path):
    import h5py
    import torch
    from torch.nn import functional
    with h5py.File(store) as file, h5py.File(checkpoint) as saved:
        classes = [text(name) for name in saved["class_names"]]
        mean, std = (torch.tensor(saved.attrs[key]).view(1, -1, 1, 1) for key in ("mean", "std"))
        x = (torch.tensor(file["test/images"][:]).permute(0, 3, 1, 2) / 255.0 - mean) / std
        p = {name: torch.tensor(values[:]) for name, values in saved["parameters"].items()}
    for layer in ("conv1", "conv2"):
        x = functional.max_pool2d(functional.relu(functional.conv2d(x, p[f"{layer}.weight"], p[f"{layer}.bias"], padding=2)), 2)
    x = functional.relu(functional.linear(x.flatten(1), p["fc1.weight"], p["fc1.bias"]))
    expected = functional.softmax(functional.linear(x, p["fc2.weight"], p["fc2.bias"]), dim=1)
    found = table(path)
    assert list(found) == [str(i) for i in range(len(expected))], f"{path}: not one row for each image, in order"
    for image, row in found.items():
        compare_rows(row, dict(zip(classes, expected[int(image)].tolist())), image)


def same(store_table, folder_table):
    of_store, of_folder = table(store_table), table(folder_table)
    numbers = {str(int(os.path.splitext(os.path.basename(path))[0])): path for path in of_folder}
    assert sorted(numbers) == sorted(of_store), "not the same images"
    for number, path in numbers.items():
        compare_rows(of_folder[path], of_store[number], path)


{"images": images, "compare": compare, "same": same}[sys.argv[1]](*sys.argv[2:])
