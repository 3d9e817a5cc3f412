#!/usr/bin/env python3
"""Compares Convoy with PyTorch on networks of torchvision that go through ONNX files.

Exports each network with its own random weights, trains the file with `convoy train` and the module with
PyTorch in fp32, and prints a table of relative differences: of the log-probabilities in evaluation, the loss of
the first step, the running statistics after it, the gradient of every parameter (the worst), and the losses of
twenty steps, in which the loss falls by up to a tenth.

Where an activation has a kink, a rounding error may change its derivative. So there are two comparisons:

  smooth       ReLU, ReLU6 and hard swish are SiLU, hard sigmoid is sigmoid, and max pools average, in the file and
               in PyTorch. Each difference must be within its limit.
  as it is     A gradient or loss may also differ by three times as much as PyTorch's fp32 from its fp64 (columns
               "fp32"). Columns "sides" give that difference when fp32 takes the side of every kink that fp64 took.
               If it is small, kinks alone explain the difference.

Needs PyTorch with torchvision, h5py and, for PyTorch's exporter, onnx. On CPUs a fast BLAS (libopenblas0)
shortens the steps in fp64.

  jobs/compare_onnx.py --convoy build/cpu/convoy --jobs 8 --threads 2     # all networks of the list
  jobs/compare_onnx.py --convoy build/cuda/convoy --backend cuda resnet18 mobilenet_v2
"""
import argparse, collections, concurrent.futures, json, os, subprocess, sys, tempfile

import h5py
import numpy
import torch
import torchvision

import kinks

# The slowest first, so that the comparisons of a full list end at about the same time.
NETWORKS = """vgg19_bn vgg16_bn vgg13 vgg11 wide_resnet50_2 inception_v3 convnext_tiny resnext50_32x4d resnet50 densenet169
densenet121 efficientnet_v2_s resnet34 googlenet efficientnet_b1 efficientnet_b0 mobilenet_v2 mnasnet1_0 regnet_y_800mf
regnet_y_400mf regnet_x_400mf resnet18 mobilenet_v3_large shufflenet_v2_x1_5 shufflenet_v2_x1_0 mnasnet0_5
squeezenet1_0 squeezenet1_1 mobilenet_v3_small shufflenet_v2_x0_5 alexnet""".split()
# The largest allowed difference.
LIMITS = {"logits": 1e-4, "loss": 1e-4, "statistics": 1e-4, "gradient": 1e-3, "losses": 1e-3}
COLUMNS = ["logits", "loss", "statistics", "smooth gradient", "smooth losses", "gradient", "losses", "fp32 gradient",
           "fp32 losses", "sides gradient", "sides losses"]
STEPS, CLASSES = 20, 1000
FALL, MOVE = 0.1, 1e-3  # bounds of the rate: the loss's fall in all steps, the weights' change in one, to first order
SMALL = 0.01


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


def make_images(side, count):
    generator = torch.Generator().manual_seed(0)
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


def train(args, model, store, folder, steps, rate):
    """Trains and returns the losses of the steps and the last checkpoint."""
    run(args.convoy, "train", "--model", model, "--data", store, "--out", folder, "--backend", args.backend,
        "--global-batch", str(args.batch), "--steps", str(steps), "--learning-rate", repr(rate), "--momentum", "0",
        "--weight-decay", "0", "--log-every", "1", "--threads", str(args.threads))
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
    table = os.path.join(folder, "predictions.csv")
    run(args.convoy, "predict", "--model", model, "--data", store, "--out", table, "--top", str(CLASSES), "--backend",
        args.backend, "--batch", str(args.batch), "--threads", str(args.threads))
    result = torch.zeros(args.batch, CLASSES)
    for row, line in enumerate(open(table).read().splitlines()[1:]):
        fields = line.split(",")[1:]
        for name, probability in zip(fields[::2], fields[1::2]):
            result[row, int(name.removeprefix("class"))] = float(probability)
    return result


def norm(values):
    return sum(value.double().norm() ** 2 for value in values) ** 0.5


def choose_rate(loss, parameters):
    gradient = norm(p.grad for p in parameters)
    return float(f"{min(FALL * loss / (STEPS * gradient ** 2), MOVE * norm(parameters) / gradient):.3g}")


def torch_steps(module, inputs, labels, rate=None):
    """Trains for STEPS steps. Returns the losses, the gradients and running statistics of the first step, and the rate."""
    module.train()
    losses, first = [], None
    for _ in range(STEPS):
        module.zero_grad()
        loss = torch.nn.functional.cross_entropy(module(inputs), labels)
        loss.backward()
        losses.append(loss.item())
        if first is None:
            rate = rate or choose_rate(losses[0], list(module.parameters()))
            statistics = {name: value.clone().cpu() for name, value in module.named_buffers() if "running" in name}
            first = {name: p.grad.clone().cpu() for name, p in module.named_parameters()}, statistics, rate
        with torch.no_grad():
            for p in module.parameters():
                p -= rate * p.grad
    return losses, *first


def worst_gradient(found, expected):
    """Returns the largest difference, relative to the parameter's gradient, and the parameter's name. A gradient below
    a share SMALL of its layer's is (nearly) zero in exact arithmetic, such as that of a bias, or of a scale and ReLU,
    before a batch norm. The difference is then relative to that share of the layer's."""
    layers = collections.defaultdict(list)
    for name, gradient in expected.items():
        layers[name.rpartition(".")[0]].append(gradient)
    return max((norm([found[name].reshape(gradient.shape).double() - gradient]).item() /
                max(norm([gradient]), SMALL * norm(layers[name.rpartition(".")[0]])).item(), name)
               for name, gradient in expected.items())


def largest_relative(found, expected):
    return max(abs(a - b) / b for a, b in zip(found, expected, strict=True))


def side_and_batch(name):
    """Returns sizes for which batch norms take their statistics of 36 or more values."""
    return (224, 2) if name.startswith(("alexnet", "vgg")) else (160, 8) if name == "inception_v3" else (64, 16)


def compare(name, args, folder, smooth):
    """Compares the network, or the smooth one, and returns the differences by column."""
    kinks.replace_functions(kinks.SMOOTH if smooth else {})
    side, batch = side_and_batch(name)
    side, args.batch = args.size or side, args.batch or batch
    module = make_module(name)
    images, labels = make_images(side, args.batch)
    inputs = ((images.float() / 255 - 0.5) / 0.25).to(args.backend)
    model, store = os.path.join(folder, "model.onnx"), os.path.join(folder, "data.h5")
    export(module, model, side, args.batch)
    if smooth:
        kinks.refuse(model)
    write_store(store, images, labels)
    labels = labels.to(args.backend)
    before = {n: p.detach().clone() for n, p in module.named_parameters()}
    module.to(args.backend)
    with torch.no_grad():
        expected = torch.log_softmax(module.eval()(inputs), 1).cpu()
    losses, gradients, statistics, rate = torch_steps(module, inputs, labels)
    result = {}
    if not smooth:
        sides = kinks.Sides()
        kinks.replace_functions(sides.functions())
        exact, exact_gradients, _, _ = torch_steps(make_module(name).double().to(args.backend), inputs.double(), labels, rate)
        sides.repeats = True
        repeated, repeated_gradients, _, _ = torch_steps(make_module(name).to(args.backend), inputs, labels, rate)
        result = {"fp32 gradient": worst_gradient(gradients, exact_gradients)[0],
                  "fp32 losses": largest_relative(losses, exact),
                  "sides gradient": worst_gradient(repeated_gradients, exact_gradients)[0],
                  "sides losses": largest_relative(repeated, exact)}
    huge = 2.0 ** 26  # a rate so large that the change of the parameters gives the gradient without loss of digits
    ours, one = train(args, model, store, os.path.join(folder, "one"), 1, huge)
    after = tensors(one, "parameters")
    if set(before) != set(after):
        raise RuntimeError("names differ: " + ", ".join(sorted(set(before) ^ set(after))[:3]))
    gradient, worst = worst_gradient({n: (before[n] - after[n].reshape(before[n].shape)) / huge for n in before},
                                     gradients)
    found_statistics = tensors(one, "statistics")
    twenty, _ = train(args, model, store, os.path.join(folder, "twenty"), STEPS, rate)
    found = predictions(args, model, store, folder)
    shown = found > 1e-30  # smaller probabilities have few or no correct digits in fp32
    return result | {
        "logits": relative(found[shown].log(), expected[shown]),
        "loss": abs(ours[0] - losses[0]) / losses[0],
        "statistics": max((relative(found_statistics[n], s) for n, s in statistics.items()), default=0.0),
        "gradient": gradient, "losses": largest_relative(twenty, losses), "worst": worst, "fall": 1 - losses[-1] / losses[0]}


def compare_both(name, args):
    """Returns the differences of the network as it is, and those of the smooth one as "smooth ..."."""
    results = []
    for smooth in (True, False):
        with tempfile.TemporaryDirectory() as folder:
            results.append(compare(name, args, folder, smooth))
    smooth, result = results
    for column in ("logits", "loss", "statistics"):  # Kinks do not matter to these.
        result[column] = max(result[column], smooth[column])
    return {f"smooth {key}": value for key, value in smooth.items()} | result


def beyond(result):
    """Returns the columns that are beyond their limit and, with kinks, beyond three times PyTorch's own rounding."""
    allowed = dict(LIMITS)
    for column in ("gradient", "losses"):
        allowed["smooth " + column] = LIMITS[column]
        allowed[column] = max(LIMITS[column], 3 * result["fp32 " + column])
    return [column for column, limit in allowed.items() if not result[column] <= limit]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", default=NETWORKS)
    parser.add_argument("--convoy", default="build/cpu/convoy", help="the program")
    parser.add_argument("--backend", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--batch", type=int, help="images (16, fewer where a network takes larger ones)")
    parser.add_argument("--size", type=int, help="pixels a side (64, more where a network needs it)")
    parser.add_argument("--threads", type=int, default=1, help="of each comparison")
    parser.add_argument("--jobs", type=int, default=1, help="comparisons at the same time")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    if args.one:
        print(json.dumps(compare_both(args.networks[0], args)))
        return 0
    options = [f"--{key}={value}" for key, value in vars(args).items()
               if key not in ("networks", "jobs", "one") and value is not None]
    threads = {name: str(args.threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}

    def compare_apart(name):
        result = subprocess.run([sys.executable, __file__, "--one", *options, name], capture_output=True, text=True,
                                env=os.environ | threads)
        if result.returncode == 0:
            return json.loads(result.stdout.splitlines()[-1])
        return {"error": result.stderr.strip().splitlines()[-1]}

    failed = 0
    print(f"| network | {' | '.join(COLUMNS)} |\n|{'---|' * (len(COLUMNS) + 1)}", flush=True)
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        started = {pool.submit(compare_apart, name): name for name in args.networks}
        for future in concurrent.futures.as_completed(started):
            name, result = started[future], future.result()
            too_far = [] if "error" in result else beyond(result)
            failed += bool(too_far) or "error" in result
            cells = [result["error"]] if "error" in result else [f"{result[column]:.0e}" for column in COLUMNS]
            print(f"| {name} | {' | '.join(cells)} |", flush=True)
            for column in too_far:
                print(f"{name}: beyond: {column}; worst gradient: {result['worst']}", file=sys.stderr)
    print(f"{len(args.networks) - failed} of {len(args.networks)} within " +
          ", ".join(f"{column} {limit:g}" for column, limit in LIMITS.items()))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
