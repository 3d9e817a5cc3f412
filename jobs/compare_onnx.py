#!/usr/bin/env python3
"""Compares Convoy with PyTorch on networks of torchvision that go through ONNX files.

Exports each network with its own random weights, trains the file with `convoy train` and the module with
PyTorch in fp32, and prints the differences of: the log-probabilities in evaluation, the loss of the first step,
the gradient of every parameter, the running statistics after a step, and the losses of twenty steps. If the
input of a ReLU is zero up to rounding, fp32 may take it for negative, which changes gradients by more than
rounding does. Small batches make networks with many batch norms chaotic. The last two columns tell how far
PyTorch's own fp32 is from its fp64: a gradient or loss may differ by three times as much. Needs PyTorch with
torchvision, h5py and, for PyTorch's exporter, onnx. On CPUs a fast BLAS (libopenblas0) shortens the steps in fp64.

  jobs/compare_onnx.py --convoy build/cpu/convoy resnet18 mobilenet_v2
  jobs/compare_onnx.py --convoy build/cuda/convoy --backend cuda --jobs 1     # all networks of the list
"""
import argparse, concurrent.futures, json, os, subprocess, sys, tempfile

import h5py
import numpy
import torch
import torchvision

NETWORKS = """alexnet vgg11 vgg16_bn googlenet inception_v3 resnet18 resnet50 resnext50_32x4d wide_resnet50_2
squeezenet1_0 squeezenet1_1 densenet121 mobilenet_v2 mobilenet_v3_small mobilenet_v3_large mnasnet0_5 mnasnet1_0
shufflenet_v2_x0_5 shufflenet_v2_x1_0 efficientnet_b0 efficientnet_b1 efficientnet_v2_s regnet_x_400mf regnet_y_400mf
regnet_y_800mf convnext_tiny vgg13 vgg19_bn resnet34 densenet169 shufflenet_v2_x1_5""".split()
# The largest allowed difference in each column of the table.
LIMITS = {"logits": 1e-4, "loss": 1e-4, "gradient": 1e-3, "statistics": 1e-4, "steps": 1e-3}
MOVE, STEPS, TRIES, CLASSES = 1e-5, 20, 3, 1000  # MOVE: relative change of the weights by a step


def make_module(name):
    """Returns the network without auxiliary heads and without random operations in training."""
    torch.manual_seed(1)
    extra = {"init_weights": True} if name in ("googlenet", "inception_v3") else {}
    if extra:
        extra["aux_logits"] = name == "inception_v3"
    module = getattr(torchvision.models, name)(num_classes=CLASSES, **extra)
    if name == "inception_v3":
        module.AuxLogits, module.aux_logits = None, False
    for part in module.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
        if isinstance(part, torchvision.ops.StochasticDepth):
            part.p = 0.0
        if isinstance(part, torch.nn.BatchNorm2d):  # random statistics, so that a mistake in their use would show
            part.running_mean.uniform_(-0.2, 0.2)
            part.running_var.uniform_(0.8, 1.2)
    return module


def make_images(side, count, seed):
    generator = torch.Generator().manual_seed(seed)
    coarse = torch.rand(count, 3, 9, 9, generator=generator)
    images = torch.nn.functional.interpolate(coarse, (side, side), mode="bilinear")
    images = (images + 0.1 * torch.rand(images.shape, generator=generator)).clamp(0, 1)
    return (images * 255).round().to(torch.uint8), torch.arange(count) * 7 % CLASSES


def write_store(path, images, labels):
    with h5py.File(path, "w") as file:
        pixels = images.permute(0, 2, 3, 1).contiguous().numpy()
        for split in ("train", "test"):
            file[f"{split}/images"], file[f"{split}/labels"] = pixels, labels.numpy().astype(numpy.int64)
        file.attrs["classes"] = [f"class{i:04}" for i in range(CLASSES)]
        file.attrs["mean"], file.attrs["std"] = numpy.full(3, 0.5, numpy.float32), numpy.full(3, 0.25, numpy.float32)


def export(module, path, side, batch):
    options = {"dynamo": False} if "dynamo" in torch.onnx.export.__code__.co_varnames else {}
    torch.onnx.export(module, torch.zeros(batch, 3, side, side), path, input_names=["image"],
                      output_names=["logits"], dynamic_axes={"image": {0: "N"}, "logits": {0: "N"}},
                      training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False, **options)


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        raise RuntimeError((result.stderr.strip() or result.stdout.strip()).splitlines()[-1])
    return result.stdout


def train(args, model, store, folder, steps, rate, *more):
    """Trains and returns the losses of the steps and the last checkpoint."""
    run(args.convoy, "train", "--model", model, "--data", store, "--out", folder, "--backend", args.backend,
        "--global-batch", str(args.batch), "--steps", str(steps), "--learning-rate", repr(rate), "--momentum", "0",
        "--weight-decay", "0", "--log-every", "1", "--threads", str(args.threads), *more)
    rows = [json.loads(line) for line in open(os.path.join(folder, "metrics.jsonl"))]
    checkpoint = max((os.path.join(folder, "checkpoint", name) for name in os.listdir(os.path.join(folder, "checkpoint"))
                      if name.startswith("step-")), key=os.path.getmtime)
    return [row["loss"] for row in rows if "loss" in row], checkpoint


def tensors(checkpoint, group):
    with h5py.File(checkpoint) as file:
        return {name: torch.from_numpy(values[()]) for name, values in file[group].items()}


def relative(found, expected):
    return ((found.double() - expected.double()).norm() / expected.double().norm().clamp_min(1e-20)).item()


def predictions(args, model, store, folder):
    """Returns the probabilities that the file's own weights give."""
    kept, table = os.path.join(folder, "kept"), os.path.join(folder, "predictions.csv")
    # A training with a negligible learning rate turns the model file into a checkpoint.
    train(args, model, store, kept, 1, 1e-30, "--freeze-batch-norm")
    run(args.convoy, "predict", "--checkpoint", kept, "--data", store, "--out", table, "--top", str(CLASSES), "--backend",
        args.backend, "--batch", str(args.batch), "--threads", str(args.threads))
    result = torch.zeros(args.batch, CLASSES)
    for row, line in enumerate(open(table).read().splitlines()[1:]):
        fields = line.split(",")[1:]
        for name, probability in zip(fields[::2], fields[1::2]):
            result[row, int(name.removeprefix("class"))] = float(probability)
    return result


def norm(values):
    return sum(value.double().norm() ** 2 for value in values) ** 0.5


def torch_steps(module, inputs, labels, rate=None):
    """Trains for STEPS steps. Returns the losses, the gradients and running statistics of the first
    step, and the learning rate. If `rate` is None, chooses the rate at which the first step changes
    the parameters by MOVE, relative to their norm."""
    module.train()
    losses, first = [], None
    for _ in range(STEPS):
        module.zero_grad()
        loss = torch.nn.functional.cross_entropy(module(inputs), labels)
        loss.backward()
        losses.append(loss.item())
        if first is None:
            rate = rate or float(f"{(MOVE * norm(module.parameters()) / norm(p.grad for p in module.parameters())).item():.3g}")
            statistics = {name: value.clone().cpu() for name, value in module.named_buffers() if "running" in name}
            first = {name: p.grad.clone().cpu() for name, p in module.named_parameters()}, statistics, rate
        with torch.no_grad():
            for p in module.parameters():
                p -= rate * p.grad
    return losses, *first


def worst_gradient(found, expected):
    """Returns the largest difference and its parameter. Gradients that are zero up to rounding do not count."""
    largest = max(gradient.norm() for gradient in expected.values())
    return max((relative(found[name].reshape(gradient.shape), gradient), name)
               for name, gradient in expected.items() if gradient.norm() > 1e-5 * largest)


def largest_relative(found, expected):
    return max(abs(a - b) / b for a, b in zip(found, expected, strict=True))


def compare(name, args, seed, folder):
    side = args.size or (224 if name.startswith(("alexnet", "vgg")) else 160 if name == "inception_v3" else 64)
    module = make_module(name)
    images, labels = make_images(side, args.batch, seed)
    inputs = ((images.float() / 255 - 0.5) / 0.25).to(args.backend)
    model, store = os.path.join(folder, name + ".onnx"), os.path.join(folder, "data.h5")
    export(module, model, side, args.batch)
    write_store(store, images, labels)
    before = {n: p.detach().clone() for n, p in module.named_parameters()}
    module.to(args.backend)
    with torch.no_grad():
        expected = torch.log_softmax(module.eval()(inputs), 1).cpu()
    losses, gradients, statistics, rate = torch_steps(module, inputs, labels.to(args.backend))
    exact, exact_gradients, _, _ = torch_steps(make_module(name).double().to(args.backend), inputs.double(),
                                               labels.to(args.backend), rate)
    huge = 1e4  # a rate so large that the change of the parameters gives the gradient without loss of digits
    ours, one = train(args, model, store, os.path.join(folder, "one"), 1, huge)
    after = tensors(one, "parameters")
    if set(before) != set(after):
        raise RuntimeError("names differ: " + ", ".join(sorted(set(before) ^ set(after))[:3]))
    found_statistics = tensors(one, "statistics")
    twenty, _ = train(args, model, store, os.path.join(folder, "twenty"), STEPS, rate)
    gradient, worst = worst_gradient({n: (before[n] - after[n].reshape(before[n].shape)) / huge for n in before}, gradients)
    found = predictions(args, model, store, folder)
    shown = found > 1e-30  # smaller probabilities have few or no correct digits in fp32
    return {"logits": relative(found[shown].log(), expected[shown]),
            "loss": abs(ours[0] - losses[0]) / losses[0],
            "gradient": gradient,
            "statistics": max((relative(found_statistics[n], s) for n, s in statistics.items()), default=0.0),
            "steps": largest_relative(twenty, losses),
            "fp32 gradient": worst_gradient(gradients, exact_gradients)[0],
            "fp32 steps": largest_relative(losses, exact),
            "parameters": len(before), "worst": worst}


def beyond(result):
    """Returns the columns that are beyond their limit and beyond three times PyTorch's own rounding."""
    return [column for column, limit in LIMITS.items()
            if not result[column] <= max(limit, 3 * result.get("fp32 " + column, 0))]


def best_of_tries(name, args):
    for seed in range(TRIES):
        with tempfile.TemporaryDirectory() as folder:
            result = compare(name, args, seed, folder)
        if not beyond(result):
            break
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", default=NETWORKS)
    parser.add_argument("--convoy", default="build/cpu/convoy", help="the program")
    parser.add_argument("--backend", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--size", type=int, help="pixels a side (64, more where a network needs it)")
    parser.add_argument("--threads", type=int, default=2, help="of each comparison")
    parser.add_argument("--jobs", type=int, default=1, help="comparisons at the same time")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    if args.one:
        print(json.dumps(best_of_tries(args.networks[0], args)))
        return 0
    options = [f"--{key}={value}" for key, value in vars(args).items()
               if key not in ("networks", "jobs", "one") and value is not None]

    def compare_apart(name):
        result = subprocess.run([sys.executable, __file__, "--one", *options, name], capture_output=True, text=True)
        if result.returncode == 0:
            return json.loads(result.stdout.splitlines()[-1])
        return {"error": result.stderr.strip().splitlines()[-1]}

    failed = 0
    columns = [*LIMITS, "fp32 gradient", "fp32 steps"]
    print(f"{'network':20}" + "".join(f"{column:>14}" for column in columns) + "  parameters")
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        started = {pool.submit(compare_apart, name): name for name in args.networks}
        for future in concurrent.futures.as_completed(started):
            name, result = started[future], future.result()
            if "error" in result:
                print(f"{name:20}  {result['error']}", flush=True)
                failed += 1
                continue
            too_far = beyond(result)
            failed += bool(too_far)
            print(f"{name:20}" + "".join(f"{result[column]:14.1e}" for column in columns) +
                  f"{result['parameters']:12}" + (f"  beyond: {', '.join(too_far)} ({result['worst']})" if too_far else ""),
                  flush=True)
    print(f"{len(args.networks) - failed} of {len(args.networks)} within " +
          ", ".join(f"{column} {limit:g}" for column, limit in LIMITS.items()))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
