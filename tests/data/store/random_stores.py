#!/usr/bin/env python3
"""Writes valid stores of random layouts into a folder, and the content that h5py reads from each.

usage: random_stores.py FOLDER SEED COUNT

For NAME.h5 it writes NAME.h5.train and NAME.h5.test: the bytes of the dataset images or encoded; and NAME.h5.labels:
int32 of both splits. NAME.h5.classes has one class per line. Stores of encoded images also have NAME.h5.offsets: int64 of both splits.
"""
import pathlib
import sys

import h5py
import numpy as np

INTEGERS = ["i1", "u1", "<i2", ">i2", "<u2", "<i4", ">i4", ">u4", "<i8", ">i8", "<u8"]
FILTERS = [{}, {}, {"compression": "gzip"}, {"shuffle": True, "compression": "gzip"}, {"fletcher32": True},
           {"compression": "gzip", "fletcher32": True, "shuffle": True}]


class Writer:
    def __init__(self, folder, number, seed):
        self.random = np.random.default_rng([seed, number])
        self.folder = folder
        self.path = folder / f"{number:03}.h5"
        self.others = 0

    def pick(self, choices):
        return choices[self.random.integers(len(choices))]

    def other_file(self):
        self.others += 1
        return self.path.with_suffix(f".other{self.others}")

    def chunks_for(self, shape):
        chunks = [int(self.random.integers(1, extent + 1)) for extent in shape]
        if self.random.random() < 0.6:  # chunks of whole images
            chunks[1:] = shape[1:]
        return tuple(chunks)

    def write_chunked(self, group, name, values, dtype):
        unlimited = self.random.random() < 0.4
        maxshape = tuple(None if self.random.random() < 0.5 or i == 0 else n for i, n in enumerate(values.shape))
        dataset = group.create_dataset(name, shape=values.shape, dtype=dtype, chunks=self.chunks_for(values.shape),
                                       maxshape=maxshape if unlimited else None,
                                       fillvalue=int(self.random.integers(0, 3)), **self.pick(FILTERS))
        if self.random.random() < 0.6:
            dataset[...] = values
        else:  # leave some chunks unwritten
            first = int(self.random.integers(len(values)))
            dataset[first:first + max(1, len(values) // 3)] = values[first:first + max(1, len(values) // 3)]

    def write_compact(self, group, name, values, dtype):
        creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        creation.set_layout(h5py.h5d.COMPACT)
        space = h5py.h5s.create_simple(values.shape)
        made = h5py.h5d.create(group.id, name.encode(), h5py.h5t.py_create(np.dtype(dtype)), space, creation)
        h5py.Dataset(made)[...] = values

    def write_external(self, group, name, values, dtype):
        raw = self.other_file()
        data = np.ascontiguousarray(values.astype(dtype)).tobytes()
        cut = len(data) // 2
        raw.write_bytes(b"x" * 100 + data[:cut])
        rest = self.other_file()
        rest.write_bytes(data[cut:])
        group.create_dataset(name, shape=values.shape, dtype=dtype,
                             external=[(str(raw), 100, cut), (str(rest), 0, len(data) - cut)])

    def write_virtual(self, group, name, values, dtype):
        layout = h5py.VirtualLayout(shape=values.shape, dtype=dtype)
        cut = len(values) // 2
        for part in (slice(0, cut), slice(cut, len(values))):
            if part.start == part.stop:
                continue
            source = self.other_file()
            with h5py.File(source, "w") as file:
                self.write(file, "part", values[part], dtype, links=False)
                layout[part] = h5py.VirtualSource(file["part"])
        group.create_virtual_dataset(name, layout, fillvalue=1)

    def write(self, group, name, values, dtype, links=True):
        kind = self.pick(["contiguous", "chunked", "chunked", "chunked", "compact", "external", "virtual", "linked",
                          "never written"])
        if kind == "compact" and values.nbytes < 60000:
            self.write_compact(group, name, values, dtype)
        elif kind == "chunked" or (kind == "never written" and not links):
            self.write_chunked(group, name, values, dtype)
        elif kind == "external" and links:
            self.write_external(group, name, values, dtype)
        elif kind == "virtual" and links:
            self.write_virtual(group, name, values, dtype)
        elif kind == "never written" and name != "offsets":
            group.create_dataset(name, shape=values.shape, dtype=dtype, fillvalue=1)
        elif kind == "linked" and links:
            target = self.pick(["soft", "hard", "external"])
            if target == "external":
                source = self.other_file()
                with h5py.File(source, "w", userblock_size=self.pick([0, 512])) as file:
                    self.write(file, "elsewhere", values, dtype, links=False)
                group[name] = h5py.ExternalLink(source.name, "/elsewhere")
            else:
                hidden = f"hidden_{group.name.strip('/')}_{name}"
                self.write(group.file, hidden, values, dtype, links=False)
                group[name] = h5py.SoftLink(f"/{hidden}") if target == "soft" else group.file[hidden]
        else:
            group.create_dataset(name, data=values.astype(dtype))

    def write_split(self, group, encoded, shape, classes):
        count = int(self.random.integers(1, 40))
        self.write(group, "labels", self.random.integers(0, classes, count), self.pick(INTEGERS))
        if encoded:
            lengths = self.random.integers(0, 3000, count)
            offsets = np.concatenate([[0], np.cumsum(lengths)])
            size = max(int(offsets[-1]), 1)
            offsets[-1] = size
            self.write(group, "encoded", self.random.integers(0, 256, size, dtype="u1"), "u1")
            group.create_dataset("offsets", data=offsets.astype(self.pick(["<i4", ">i8", "<u8", "<i8", ">u4"])),
                                 **self.pick([{}, {"chunks": (3,) if count > 2 else True, "compression": "gzip"}]))
        else:
            self.write(group, "images", self.random.integers(0, 256, (count, *shape), dtype="u1"), "u1")

    def attributes(self, file, channels, names):
        file.attrs["classes"] = self.pick([names, np.array([name.encode() for name in names])])
        for name in ("mean", "std"):
            dtype = self.pick(["<f2", "<f4", ">f4", "<f8", ">f8", "i1"])
            file.attrs[name] = np.full(channels, 1 if dtype == "i1" else 0.375, dtype)

    def run(self):
        channels = int(self.pick([1, 3]))
        shape = (int(self.random.integers(1, 30)), int(self.random.integers(1, 30)), channels)
        encoded = self.random.random() < 0.4
        names = [f"class {i} é" for i in range(int(self.random.integers(2, 100)))]
        with h5py.File(self.path, "w", libver=self.pick(["earliest", "latest", ("v110", "v110")]),
                       userblock_size=self.pick([0, 512, 4096])) as file:
            for split in ("train", "test"):
                self.write_split(file.create_group(split), encoded, shape, len(names))
            self.attributes(file, channels, names)
        with h5py.File(self.path, "r") as file:
            labels = np.concatenate([file[f"{split}/labels"][...].astype("i8") for split in ("train", "test")])
            assert labels.min() >= 0 and labels.max() < len(names)
            self.path.with_suffix(".h5.labels").write_bytes(labels.astype("<i4").tobytes())
            for split in ("train", "test"):
                images = file[f"{split}/encoded" if encoded else f"{split}/images"][...]
                self.path.with_suffix(f".h5.{split}").write_bytes(images.tobytes())
            if encoded:
                offsets = [file[f"{split}/offsets"][...].astype("<i8") for split in ("train", "test")]
                self.path.with_suffix(".h5.offsets").write_bytes(np.concatenate(offsets).tobytes())
        self.path.with_suffix(".h5.classes").write_text("".join(name + "\n" for name in names))


def main():
    folder, seed, count = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    for number in range(count):
        Writer(folder, number, seed).run()
    for name in ("images", "labels"):
        with h5py.File(folder / f"lzf_{name}.h5", "w") as file:
            for split in ("train", "test"):
                for key, data in (("images", np.zeros((4, 8, 8, 3), "u1")), ("labels", np.zeros(4, "i4"))):
                    file.create_dataset(f"{split}/{key}", data=data, compression="lzf" if key == name else None)
            file.attrs["classes"], file.attrs["mean"], file.attrs["std"] = ["a"], [0.5] * 3, [0.5] * 3


if __name__ == "__main__":
    main()
