#!/usr/bin/env python3
"""Writes image_ops.txt: the results of image operations of torchvision and Pillow on small images.

Each line is one case: operation, magnitude (for hue: the turn), height, width, channels, kind of image, and the FNV-1a
hash of the resulting pixels; for the smallest images also these pixels, as hexadecimal digits. Lines that start with
"magnitudes" list torchvision's magnitudes of one operation: policy, operation, height, width, values.

    tests/data/loader/make_image_ops.py > tests/data/loader/expected/image_ops.txt
"""
import numpy
import PIL
import torch
import torchvision
from PIL import Image
from torchvision.transforms import InterpolationMode
from torchvision.transforms import autoaugment
from torchvision.transforms import functional as F

OPS = ["Identity", "ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate", "Brightness", "Color", "Contrast",
       "Sharpness", "Posterize", "Solarize", "AutoContrast", "Equalize"]


def picture(height, width, channels, kind):
    """Returns the picture of image_ops_test.cpp: gradients with noise; kind 1 has few and low levels, kind 2 is flat."""
    i = numpy.arange(height * width * channels, dtype=numpy.uint64)
    c, x, y = i % channels, i // channels % width, i // channels // width
    noise = (i * 2654435761 % 2**32) >> 26
    level = (y * 7 + x * 5 + c * 40 + noise) % 256
    if kind == 1:
        level = 60 + level // 8 * (1 + c)
    if kind == 2:
        level = 90 + 10 * c
    return level.astype(numpy.uint8).reshape(height, width, channels)


def to_pil(array):
    return Image.fromarray(array if array.shape[2] == 3 else array[:, :, 0])


def fnv(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def case(op, magnitude, height, width, channels, kind):
    image = to_pil(picture(height, width, channels, kind))
    if op == "Hue":
        after = F.adjust_hue(image, magnitude)
    else:
        after = autoaugment._apply_op(image, op, magnitude, InterpolationMode.NEAREST, None)
    data = numpy.asarray(after).tobytes()
    pixels = " " + data.hex() if height * width <= 150 else ""
    print(f"case {op} {magnitude!r} {height} {width} {channels} {kind} {fnv(data):016x}{pixels}")


def values(table, op):
    magnitudes, signed = table[op]
    listed = [float(v) for v in magnitudes] if magnitudes.ndim else [float(magnitudes)]
    return listed, signed


print(f"# torch {torch.__version__}, torchvision {torchvision.__version__}, Pillow {PIL.__version__}")
trivial = autoaugment.TrivialAugmentWide()._augmentation_space(31)
for height, width in ((32, 32), (224, 224), (97, 201)):
    rand = autoaugment.RandAugment()._augmentation_space(31, (height, width))
    for name, table in (("trivial", trivial), ("rand", rand)):
        for op in OPS:
            print("magnitudes", name, op, height, width, *(repr(v) for v in values(table, op)[0]))
rand = autoaugment.RandAugment()._augmentation_space(31, (37, 50))
for op in OPS:
    for table in (trivial, rand):
        listed, signed = values(table, op)
        for magnitude in listed:
            case(op, magnitude, 37, 50, 3, 0)
            if signed and magnitude != 0:
                case(op, -magnitude, 37, 50, 3, 0)
        for height, width, channels, kind in ((64, 64, 3, 1), (20, 20, 3, 0), (20, 20, 3, 2), (33, 16, 1, 0),
                                              (1, 5, 3, 0), (2, 7, 1, 1), (10, 12, 3, 0)):
            case(op, listed[-1], height, width, channels, kind)
            if signed:
                case(op, -listed[len(listed) // 2], height, width, channels, kind)
for op in ("ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate"):
    for magnitude in values(trivial, op)[0][3::9]:
        case(op, magnitude, 224, 224, 3, 0)
        case(op, -magnitude, 97, 201, 3, 0)
for op in ("Brightness", "Color", "Contrast", "Sharpness"):  # factors of colour jitter from 0 to 3
    for magnitude in (-1.0, -0.4, 0.7, 2.0):
        case(op, magnitude, 37, 50, 3, 0)
for turn in (-0.5, -0.31, -0.1, -0.002, 0.0, 0.002, 0.07, 0.25, 0.5):
    case("Hue", turn, 37, 50, 3, 0)
    case("Hue", turn, 37, 50, 3, 1)
    case("Hue", turn, 10, 12, 3, 0)
    case("Hue", turn, 20, 20, 1, 0)
