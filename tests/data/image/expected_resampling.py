#!/usr/bin/python3
"""Writes expected_resampling.h: the results of Pillow and torchvision for the images of resample_test.cpp.

Run it with Debian's python3-pil and python3-torchvision: python3 tests/data/image/expected_resampling.py
"""
import math
import os

import PIL
import torch
import torchvision
from PIL import Image
from torchvision import transforms

# Each case: width, height, channels; window x, y, width, height; output width, height.
CASES = [
    (31, 23, 3, 0, 0, 31, 23, 12, 10), (31, 23, 3, 0, 0, 31, 23, 70, 50), (31, 23, 3, 5, 3, 17, 20, 17, 20),
    (31, 23, 3, 30, 22, 1, 1, 4, 4), (31, 23, 3, 2, 1, 29, 2, 3, 9), (31, 23, 3, 0, 0, 31, 23, 1, 1),
    (31, 23, 1, 4, 2, 25, 19, 28, 28), (31, 23, 2, 4, 2, 25, 19, 28, 28), (31, 23, 4, 4, 2, 25, 19, 28, 28),
    (31, 23, 5, 4, 2, 25, 19, 28, 28), (31, 23, 4, 0, 0, 31, 23, 9, 7), (31, 23, 5, 0, 0, 31, 23, 9, 7),
    (500, 375, 3, 50, 30, 320, 300, 224, 224), (500, 375, 3, 13, 7, 150, 190, 224, 224),
    (500, 375, 3, 0, 0, 500, 375, 224, 224), (500, 375, 3, 1, 1, 499, 374, 67, 31),
    (500, 375, 1, 3, 5, 400, 300, 224, 224), (500, 375, 3, 100, 10, 224, 340, 224, 224),
    (500, 375, 3, 100, 10, 340, 224, 224, 224), (4000, 3, 3, 0, 0, 4000, 3, 5, 224), (3, 4000, 3, 0, 0, 3, 4000, 224, 5),
    (4000, 3, 3, 7, 1, 3990, 1, 3, 1), (65536, 2, 3, 0, 0, 65536, 2, 7, 2), (2, 65536, 1, 0, 0, 2, 65536, 2, 7),
    (40, 40, 3, 0, 0, 40, 40, 41, 39), (40, 40, 3, 0, 0, 40, 40, 40, 13), (40, 40, 3, 0, 0, 40, 40, 13, 40),
]
# Each case: width, height, size of Resize, size of CenterCrop.
TRANSFORMS = [
    (500, 375, 256, 224), (375, 500, 256, 224), (500, 333, 232, 224), (334, 500, 232, 224), (256, 256, 256, 224),
    (300, 299, 256, 224), (1023, 641, 232, 224), (200, 150, 256, 224), (97, 301, 64, 33), (301, 97, 64, 33),
    (33, 32, 32, 32), (640, 480, 232, 224), (500, 375, 235, 224), (375, 499, 224, 224),
    (500, 375, 64, 64), (60, 99, 60, 60), (99, 60, 60, 60), (33, 200, 64, 64),
]
MODES = {1: "L", 3: "RGB", 4: "CMYK"}


def pixels(count):
    state, values = 1, bytearray(count)
    for i in range(count):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        values[i] = state >> 24
    return bytes(values)


def fnv(values):
    code = 0xCBF29CE484222325
    for value in values:
        code = ((code ^ value) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return code


def image_of(width, height, channels):
    return Image.frombytes(MODES[channels], (width, height), pixels(width * height * channels))


def resized(width, height, channels, x, y, w, h, out_width, out_height):
    def change(image):
        return image.crop((x, y, x + w, y + h)).resize((out_width, out_height), Image.BILINEAR).tobytes()

    if channels in MODES:
        return change(image_of(width, height, channels))
    # Pillow has no plain mode for other numbers of channels, so change each channel alone.
    values = pixels(width * height * channels)
    planes = [change(Image.frombytes("L", (width, height), values[c::channels])) for c in range(channels)]
    return bytes(value for pixel in zip(*planes) for value in pixel)


# Returns the mean share of the area and the mean logarithm of the aspect over 200,000 draws.
def crops():
    torch.manual_seed(1)
    image, area, aspect, draws = torch.empty(3, 256, 340), 0, 0, 200000
    for _ in range(draws):
        _, _, h, w = transforms.RandomResizedCrop.get_params(image, [0.08, 1], [3 / 4, 4 / 3])
        area += h * w / (256 * 340) / draws
        aspect += math.log(w / h) / draws
    return area, aspect


def erasings():
    torch.manual_seed(1)
    image, area, aspect, draws = torch.empty(3, 224, 160), 0, 0, 200000
    for _ in range(draws):
        _, _, h, w, _ = transforms.RandomErasing.get_params(image, [0.02, 0.33], [0.3, 3.3], [0])
        area += h * w / (224 * 160) / draws
        aspect += math.log(h / w) / draws
    return area, aspect


def main():
    target = os.path.join(os.path.dirname(os.path.abspath(__file__)), "expected_resampling.h")
    with open(target, "w", encoding="ascii") as out:
        out.write(f"// Expected values, written by expected_resampling.py with Pillow {PIL.__version__} and torchvision "
                  f"{torchvision.__version__.split('a')[0]}.\n#pragma once\n\n#include <cstdint>\n\n"
                  "namespace convoy::data::testing {\n\n"
                  "// The result of Pillow's Image.crop(window).resize(output, BILINEAR). hash: FNV-1a of the bytes.\n"
                  "struct ExpectedResize {\n  std::int32_t width, height, channels, x, y, window_width, "
                  "window_height, output_width, output_height;\n  std::uint64_t hash;\n};\n"
                  "inline constexpr ExpectedResize kExpectedResizes[] = {\n")
        for case in CASES:
            out.write("    {" + ", ".join(map(str, case)) + f", 0x{fnv(resized(*case)):016X}u}},\n")
        out.write("};\n\n// The result of torchvision's transforms.Resize(resize) and CenterCrop(crop) on RGB images.\n"
                  "struct ExpectedTransform {\n  std::int32_t width, height, resize, crop, resized_width, "
                  "resized_height;\n  std::uint64_t hash;\n};\n"
                  "inline constexpr ExpectedTransform kExpectedTransforms[] = {\n")
        for width, height, resize, crop in TRANSFORMS:
            image = transforms.Resize(resize)(image_of(width, height, 3))
            cropped = transforms.CenterCrop(crop)(image).tobytes()
            out.write(f"    {{{width}, {height}, {resize}, {crop}, {image.size[0]}, {image.size[1]}, "
                      f"0x{fnv(cropped):016X}u}},\n")
        out.write("};\n\n"
                  "// Means over torchvision's draws of the share of the area and of the logarithm of the aspect:\n"
                  "// RandomResizedCrop on 340x256 pixels (width to height), RandomErasing on 160x224 (height to\n"
                  "// width).\n"
                  "struct ExpectedDraws {\n  double area, log_aspect;\n};\n"
                  f"inline constexpr ExpectedDraws kExpectedCrops{{{crops()[0]:.5f}, {crops()[1]:.5f}}};\n"
                  f"inline constexpr ExpectedDraws kExpectedErasing{{{erasings()[0]:.5f}, {erasings()[1]:.5f}}};\n"
                  "\n}  // namespace convoy::data::testing\n")


if __name__ == "__main__":
    main()
