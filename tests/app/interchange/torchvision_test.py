#!/usr/bin/python3
"""Weights of torchvision's networks go into Convoy and come out again.

usage: torchvision_test.py CONVOY [NETWORK | timm/NAME=NETWORK ...]

For each network: a safetensors file of torchvision's state_dict starts a training that changes nothing. The test loss must
be PyTorch's, and the export the file that went in, to the bit. The exported ONNX graph must give the logits of PyTorch's
model, with its batch norms and with these folded, and its weights must come back through --init and --model.
timm/NAME=NETWORK starts from timm's weights for the same network, whose names are others. Needs python3-torch,
-torchvision, -onnx and -h5py.
"""
import collections
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

try:
    import h5py
    import numpy as np
    import torch
    import torchvision
    import onnx_in_torch
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

FAST = ["mobilenet_v3_small", "shufflenet_v2_x0_5"]
SIZES = {"inception_v3": 96, "vgg11": 224, "vgg16": 224, "vgg16_bn": 224, "alexnet": 224}
OPTIONS = {"inception_v3": {"aux_logits": False}, "googlenet": {"aux_logits": False}}
CLASSES = 6
TYPES = {"F32": np.float32, "I64": np.int64}


def read_safetensors(file):
    data = pathlib.Path(file).read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    assert length % 8 == 0 and header.pop("__metadata__")["format"] == "pt"
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        array = np.frombuffer(data[begin:end], TYPES[entry["dtype"]]).reshape(entry["shape"])
        tensors[name] = torch.from_numpy(array.copy())
    return tensors


def write_safetensors(file, tensors):
    header, blocks, at = {"__metadata__": {"format": "pt"}}, [], 0
    for name, tensor in tensors.items():
        block = tensor.numpy().tobytes()
        kind = "I64" if tensor.dtype == torch.int64 else "F32"
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [at, at + len(block)]}
        blocks.append(block)
        at += len(block)
    text = json.dumps(header).encode()
    pathlib.Path(file).write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blocks))


def model_of(name, classes=CLASSES):
    torch.manual_seed(1)
    if name.startswith("timm/"):
        import timm
        return varied(timm.create_model(name[5:], num_classes=classes))
    options = {"init_weights": False} if name in OPTIONS else {}
    return varied(getattr(torchvision.models, name)(num_classes=classes, **OPTIONS.get(name, {}), **options))


def varied(model):
    # A new network has default statistics, norms and biases. Change them, because a test would not
    # notice if Convoy lost them and used the defaults.
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.uniform_(-0.1, 0.1)
            module.running_var.uniform_(0.8, 1.2)
            module.weight.data.uniform_(0.7, 1.3)
            module.bias.data.uniform_(-0.1, 0.1)
        elif isinstance(module, (torch.nn.Conv2d, torch.nn.Linear)) and module.bias is not None:
            module.bias.data.uniform_(-0.1, 0.1)
    return model.eval()


def write_store(file, size):
    random = np.random.default_rng(1)
    images = random.integers(0, 256, (CLASSES, size, size, 3), dtype=np.uint8)
    labels = np.arange(CLASSES)
    with h5py.File(file, "w") as store:
        for split in ("train", "test"):
            store[f"{split}/images"], store[f"{split}/labels"] = images, labels
        store.attrs["mean"], store.attrs["std"] = [0.4, 0.5, 0.6], [0.3, 0.25, 0.2]
        store.attrs["classes"] = [f"class {i}" for i in range(CLASSES)]
    scaled = (images / 255 - [0.4, 0.5, 0.6]) / [0.3, 0.25, 0.2]
    return torch.from_numpy(scaled.transpose(0, 3, 1, 2).astype(np.float32)), torch.from_numpy(labels)


def distance(found, expected):
    return float((found - expected).norm() / expected.norm())


def expect(holds, what):
    if not holds:
        raise AssertionError(what)


def check(convoy, name, folder):
    name, _, network = name.partition("=")
    network = network or name

    def run(*words):
        done = subprocess.run([convoy, *words], cwd=folder, capture_output=True, text=True)
        expect(done.returncode == 0, f"convoy {' '.join(words)}: {done.stderr}")
        return done.stdout

    model = model_of(name)
    images, labels = write_store(folder / "data.h5", SIZES.get(network, 64))
    write_safetensors(folder / "in.safetensors", model.state_dict())
    # A run must train at least one parameter. This one trains the last bias, at a rate that is too
    # small to change it.
    last = [key for key in getattr(torchvision.models, network)().state_dict() if key.endswith(".bias")][-1]
    def start(weights, out):
        return run("train", "--model", network, "--data", "data.h5", "--init", weights, "--steps", "1",
                   "--global-batch", "2", "--freeze", "*", "--rate", f"{last}=1e-30", "--out", out)

    text = start("in.safetensors", "run")
    for bad in ("not in the file", "of another shape", "not used", "is drawn"):
        expect(bad not in text, text)
    with torch.no_grad():
        logits = model(images)
    loss = float(torch.nn.functional.cross_entropy(logits, labels))
    found = json.loads(run("evaluate", "--checkpoint", "run", "--data", "data.h5", "--json"))["test_loss"]
    expect(abs(found - loss) <= 1e-4 * abs(loss), f"test loss {found}, expected {loss}")

    if network != name:
        print(f"{name}: test loss within {abs(found / loss - 1):.0e}")
        return
    run("export", "--checkpoint", "run", "--out", "out.safetensors")
    tensors = read_safetensors(folder / "out.safetensors")
    for key, value in model.state_dict().items():
        if value.dtype == torch.float32:
            expect(torch.equal(tensors[key], value), f"{key} differs after its way through Convoy")
    fresh = model_of(name)
    # MNASNet refuses a state without a version, which only PyTorch's own files hold.
    if name.startswith("mnasnet"):
        tensors = collections.OrderedDict(tensors)
        tensors._metadata = model.state_dict()._metadata
    fresh.load_state_dict(tensors, strict=True)
    with torch.no_grad():
        expect(torch.equal(fresh(images), logits), "logits after load_state_dict differ")

    distances = []
    for file, flags in (("out.onnx", []), ("folded.onnx", ["--fold-batch-norm"])):
        run("export", "--checkpoint", "run", "--out", file, *flags)
        distances.append(distance(onnx_in_torch.run(str(folder / file), images), logits))
        expect(distances[-1] < 1e-4, f"logits of {file} differ by {distances[-1]:.1e}")
    start("out.onnx", "again")
    shas = [json.loads((folder / out / "summary.json").read_text())["parameters_sha256"] for out in ("run", "again")]
    expect(shas[0] == shas[1], "parameters differ after their way through an ONNX file")
    found = json.loads(run("evaluate", "--model", "out.onnx", "--data", "data.h5", "--json"))["test_loss"]
    expect(abs(found - loss) <= 1e-4 * abs(loss), f"test loss of the ONNX file {found}, expected {loss}")
    print(f"{name}: test loss within {abs(found / loss - 1):.0e}, logits of ONNX within {max(distances):.0e}")


def main():
    torch.set_num_threads(2)
    for name in sys.argv[2:] or FAST:
        with tempfile.TemporaryDirectory() as folder:
            check(sys.argv[1], name, pathlib.Path(folder))


main()
