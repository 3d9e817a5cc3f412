#!/usr/bin/env python3
"""Compares exported files with torchvision and ONNX Runtime.

usage: exported_check.py FOLDER [--cuda]

FOLDER holds, for each network, NAME.safetensors and NAME.onnx of one checkpoint, and NAME.folded.onnx if it was exported
with --fold-batch-norm, where NAME is that of the zoo. Each safetensors file must load into torchvision's model of that
name with strict=True, and ONNX Runtime's logits of each graph must be that model's within 1e-4, for batches of one and
of five images. --cuda runs the graphs on CUDAExecutionProvider. Needs torch, torchvision and onnxruntime.

    for m in resnet18 mobilenet_v2 convnext_tiny; do
      convoy train --model $m --data synthetic --size 64 --limit-train 32 --limit-test 8 --steps 2 --global-batch 16 \
        --learning-rate 1e-4 --out $m
      convoy export --checkpoint $m --out files/$m.safetensors
      convoy export --checkpoint $m --out files/$m.onnx
      convoy export --checkpoint $m --fold-batch-norm --out files/$m.folded.onnx
    done
    exported_check.py files
"""
import collections
import json
import pathlib
import struct
import sys

import numpy as np
import onnxruntime
import torch
import torchvision

TYPES = {"F32": np.float32, "I64": np.int64}


def read_safetensors(file):
    data = file.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__")
    tensors = collections.OrderedDict()
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        array = np.frombuffer(data[begin:end], TYPES[entry["dtype"]]).reshape(entry["shape"])
        tensors[name] = torch.from_numpy(array.copy())
    return tensors


def model_of(name, file):
    tensors = read_safetensors(file)
    head = [value for key, value in tensors.items() if key.endswith(".bias")][-1]
    options = {"aux_logits": False, "init_weights": False} if name in ("googlenet", "inception_v3") else {}
    model = getattr(torchvision.models, name)(num_classes=len(head), **options)
    tensors._metadata = model.state_dict()._metadata  # MNASNet refuses a state without its version
    model.load_state_dict(tensors, strict=True)
    return model.eval()


def worst_distance(session, model, shape):
    worst = 0
    for batch in (1, 5):
        images = torch.randn(batch, *shape, generator=torch.Generator().manual_seed(batch))
        with torch.no_grad():
            expected = model(images).numpy()
        found = session.run(None, {session.get_inputs()[0].name: images.numpy()})[0]
        if not np.isfinite(expected).all():
            raise SystemExit(f"{type(model).__name__}: the logits are not finite; train with a smaller rate")
        found, expected = found.astype(np.float64), expected.astype(np.float64)
        worst = max(worst, float(np.linalg.norm(found - expected) / np.linalg.norm(expected)))
    return worst


def main():
    folder = pathlib.Path(sys.argv[1])
    providers = ["CUDAExecutionProvider"] if "--cuda" in sys.argv else ["CPUExecutionProvider"]
    torch.backends.cuda.matmul.allow_tf32 = False
    failed = checked = 0
    for weights in sorted(folder.glob("*.safetensors")):
        name = weights.name.removesuffix(".safetensors")
        model = model_of(name, weights)
        for graph in sorted([*folder.glob(f"{name}.onnx"), *folder.glob(f"{name}.folded.onnx")]):
            session = onnxruntime.InferenceSession(str(graph), providers=providers)
            distance = worst_distance(session, model, session.get_inputs()[0].shape[1:])
            checked += 1
            failed += not distance < 1e-4
            print(f"{graph.name}: logits within {distance:.1e}{'' if distance < 1e-4 else '  FAILED'}")
    print(f"{checked - failed} passed, {failed} failed")
    return failed > 0 or checked == 0


sys.exit(main())
