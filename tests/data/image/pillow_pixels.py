#!/usr/bin/env python3
"""Makes PNG and JPEG files of every kind in a folder, and writes the pixels that Pillow reads from each file there.

usage: pillow_pixels.py FOLDER

NAME.png becomes NAME.png.rgb and NAME.png.l: the bytes of convert("RGB") and convert("L").
"""
import pathlib
import random
import struct
import sys
import zlib

from PIL import Image

GREY, RGB, PALETTE, GREY_ALPHA, RGBA = 0, 2, 3, 4, 6
CHANNELS = {GREY: 1, RGB: 3, PALETTE: 1, GREY_ALPHA: 2, RGBA: 4}
WIDTH, HEIGHT = 21, 17
# For each pass of an interlaced image: first column, first row, column step, row step.
ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def packed(row, depth):
    if depth == 16:
        return b"".join(struct.pack(">H", value) for value in row)
    bits = "".join(format(value, f"0{depth}b") for value in row)
    bits += "0" * (-len(bits) % 8)
    return bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits), 8))


def png(color, depth, pixels, interlaced=False, chunks=()):
    """pixels: rows of tuples."""
    passes = ADAM7 if interlaced else [(0, 0, 1, 1)]
    raw = b""
    for x0, y0, dx, dy in passes:
        for row in pixels[y0::dy]:
            values = [value for pixel in row[x0::dx] for value in pixel]
            if values:
                raw += b"\0" + packed(values, depth)
    header = struct.pack(">IIBBBBB", len(pixels[0]), len(pixels), depth, color, 0, 0, interlaced)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + b"".join(chunk(*c) for c in chunks)
            + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))


def make_pngs(folder, draw):
    profile = b"profile\0\0" + zlib.compress(b"no profile at all")
    extra = [(b"gAMA", struct.pack(">I", 100000)), (b"iCCP", profile), (b"sBIT", b"\3\3\3")]
    kinds = [(GREY, d) for d in (1, 2, 4, 8, 16)] + [(PALETTE, d) for d in (1, 2, 4, 8)]
    kinds += [(color, d) for color in (RGB, GREY_ALPHA, RGBA) for d in (8, 16)]
    for color, depth in kinds:
        pixels = [[tuple(draw.randrange(1 << depth) for _ in range(CHANNELS[color])) for _ in range(WIDTH)]
                  for _ in range(HEIGHT)]
        needed = []
        if color == PALETTE:
            needed = [(b"PLTE", bytes(draw.randrange(256) for _ in range(3 << depth)))]
        transparent = {GREY: struct.pack(">H", pixels[0][0][0]), PALETTE: bytes(range(min(1 << depth, 256)))}
        transparent[RGB] = struct.pack(">HHH", *(pixels[0][0] * 3)[:3])
        for interlaced in (False, True):
            name = f"color {color} depth {depth}" + (" interlaced" if interlaced else "")
            variants = {"": needed, " profile": (extra[:2] if color != RGB else extra) + needed}
            if color in transparent:
                variants[" tRNS"] = needed + [(b"tRNS", transparent[color])]
            for variant, chunks in variants.items():
                path = folder / f"{name}{variant}.png"
                path.write_bytes(png(color, depth, pixels, interlaced, chunks))
                # Pillow's convert() would clip all values above 255.
                if (color, depth) == (GREY, 16):
                    high = bytes(pixel[0] >> 8 for row in pixels for pixel in row)
                    path.with_name(path.name + ".l").write_bytes(high)
                    path.with_name(path.name + ".rgb").write_bytes(bytes(v for value in high for v in [value] * 3))


def make_jpegs(folder, draw):
    noise = Image.new("RGB", (WIDTH * 4, HEIGHT * 4))
    noise.putdata([tuple((x + 3 * y + c * 50) % 256 // 2 + draw.randrange(100) for c in range(3))
                   for y in range(HEIGHT * 4) for x in range(WIDTH * 4)])
    for mode in ("RGB", "L", "CMYK"):
        for progressive in (False, True):
            for subsampling in (0, 1, 2) if mode == "RGB" else (0,):
                noise.convert(mode).save(folder / f"Pillow {mode} {subsampling} {progressive}.jpg", quality=90,
                                         progressive=progressive, subsampling=subsampling)


def main():
    folder = pathlib.Path(sys.argv[1])
    draw = random.Random(1)
    make_pngs(folder, draw)
    make_jpegs(folder, draw)
    for path in sorted([*folder.glob("*.png"), *folder.glob("*.jpg")]):
        if not path.with_name(path.name + ".rgb").exists():
            path.with_name(path.name + ".rgb").write_bytes(Image.open(path).convert("RGB").tobytes())
            path.with_name(path.name + ".l").write_bytes(Image.open(path).convert("L").tobytes())


if __name__ == "__main__":
    main()
