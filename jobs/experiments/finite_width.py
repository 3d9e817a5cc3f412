#!/usr/bin/env python3
"""Tables and plots of jobs/experiments/finite_width.sh, from the members that it has trained.

It computes the networks' features itself, in numpy, from the exported weights and the first test images, and compares
its predictions with those of `convoy predict`."""
import argparse
import concurrent.futures
import csv
import functools
import importlib.machinery
import importlib.util
import json
import math
import pathlib
import sys

import h5py
import numpy

PARAMETRISATIONS = ("standard", "mup")


def fail(message):
    sys.exit(f"finite_width.py: {message}")


def read_weights(path):
    """Returns the tensors of a safetensors file by name."""
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:8 + length])
    return {name: numpy.frombuffer(raw, "<f4", math.prod(entry["shape"]), 8 + length + entry["data_offsets"][0])
            .reshape(entry["shape"]) for name, entry in header.items() if name != "__metadata__"}


def convolve(x, weight, stride=1):
    pad = weight.shape[2] // 2
    x = numpy.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    windows = numpy.lib.stride_tricks.sliding_window_view(x, weight.shape[2:], axis=(2, 3))[:, :, ::stride, ::stride]
    return numpy.tensordot(windows, weight, axes=((1, 4, 5), (1, 2, 3))).transpose(0, 3, 1, 2)


def norm_relu(x, weights, name):
    scale = weights[name + ".weight"] / numpy.sqrt(weights[name + ".running_var"] + 1e-5)
    shift = weights[name + ".bias"] - weights[name + ".running_mean"] * scale
    return numpy.maximum(x * scale[:, None, None] + shift[:, None, None], 0)


def features_of(weights, x, depth):
    """Returns the input of the last layer of a wide residual network, [images, channels]."""
    x = convolve(x, weights["conv1.weight"])
    for stage in range(1, 4):
        for block in range((depth - 4) // 6):
            name, stride = f"layer{stage}.{block}", 2 if stage > 1 and block == 0 else 1
            y = norm_relu(x, weights, name + ".bn1")
            if name + ".shortcut.weight" in weights:
                x = convolve(y, weights[name + ".shortcut.weight"], stride)
            y = norm_relu(convolve(y, weights[name + ".conv1.weight"], stride), weights, name + ".bn2")
            x = x + convolve(y, weights[name + ".conv2.weight"])
    return norm_relu(x, weights, "bn").mean(axis=(2, 3))


def test_images(path, count):
    with h5py.File(path) as file:
        if "test/images" not in file:
            fail(f"{path}: found no test/images, expected raw pixels (convoy data convert --encode raw)")
        pixels = file["test/images"][:count].astype("f4").transpose(0, 3, 1, 2) / 255
        mean, std = (numpy.asarray(file.attrs[name], "f4")[:, None, None] for name in ("mean", "std"))
    return (pixels - mean) / std


def evaluate(path, images, depth):
    """Returns the feature kernel and the predictions, as probabilities, of exported weights on the images."""
    weights = read_weights(path)
    features = features_of(weights, images, depth)
    logits = features @ weights["fc.weight"].T + weights["fc.bias"]
    odds = numpy.exp(logits - logits.max(axis=1, keepdims=True))
    return features @ features.T / features.shape[1], odds / odds.sum(axis=1, keepdims=True)


def last_test(member):
    """Returns loss and accuracy of the last test of a member."""
    lines = [json.loads(line) for line in (member / "metrics.jsonl").read_text().splitlines()]
    tests = [line for line in lines if "test_loss" in line]
    return (tests[-1]["test_loss"], tests[-1]["test_top1"]) if tests else (math.nan, math.nan)


class Width:
    """The members of one width in one parametrisation."""

    def __init__(self, run, rate, evaluate_all):
        self.losses, self.accuracies, exported = [], [], []
        self.by_rate = {}
        with open(run / "members.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        for row in rows:
            member = run / "members" / row["member"]
            loss, accuracy = last_test(member) if row["status"] == "finished" else (math.inf, math.nan)
            self.by_rate.setdefault(float(row["learning-rate"]), {})[int(row["seed"])] = loss
            if float(row["learning-rate"]) != rate or row["status"] != "finished":
                continue
            self.losses.append(loss)
            self.accuracies.append(accuracy)
            exported.append(member / "weights.safetensors")
        if len(self.losses) < 2:
            fail(f"{run}: found {len(self.losses)} seeds that finished at the rate {rate}, expected two or more")
        self.kernels, self.predictions = map(numpy.array, zip(*evaluate_all(exported)))
        self.fluctuations = {
            "loss": numpy.var(self.losses, ddof=1),
            "predictions": numpy.var(self.predictions, axis=0, ddof=1).mean(),
            "kernel": numpy.var(self.kernels, axis=0, ddof=1).sum() / (self.kernels.mean(axis=0) ** 2).sum()}

    def loss_at(self, rate):
        """Returns the mean loss of seeds 1 and 2, infinite if one of them has diverged."""
        losses = [loss for seed, loss in self.by_rate.get(rate, {}).items() if seed <= 2]
        return float(numpy.mean(losses)) if losses else math.nan

    def best_rate(self):
        return min(self.by_rate, key=lambda rate: (self.loss_at(rate), rate))


def slope_of(widths, values):
    """Returns a of values ~ (1/width)^a by least squares, and its standard error (None for two widths)."""
    x, y = -numpy.log(widths), numpy.log(values)
    x, centred = x - x.mean(), y - y.mean()
    slope = (x @ centred) / (x @ x)
    error = math.sqrt(((centred - slope * x) ** 2).sum() / (len(x) - 2) / (x @ x)) if len(x) > 2 else None
    return slope, error


def check_predictions(path, width):
    """Compares the largest probabilities of the first seed with those that `convoy predict` gives."""
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))[:len(width.predictions[0])]
    named = [float(row["probability_1"]) for row in rows]
    off = float(abs(width.predictions[0].max(axis=1) - named).max())
    if not off < 1e-3:
        fail(f"the probabilities differ from those of convoy predict by {off:.2g}, expected at most 0.001")


def tables(runs, widths):
    lines = ["| parametrisation | width | test loss | test accuracy | variance of the loss | of predictions | of the kernel, relative |",
             "|---|---|---|---|---|---|---|"]
    for name in PARAMETRISATIONS:
        for width in widths:
            run = runs[name][width]
            f = run.fluctuations
            lines.append(f"| {name} | {width} | {numpy.mean(run.losses):.4f} ± {numpy.std(run.losses, ddof=1):.4f} | "
                         f"{100 * numpy.mean(run.accuracies):.2f} % | {f['loss']:.3g} | {f['predictions']:.3g} | {f['kernel']:.3g} |")
    lines += ["", "Exponents a of variance ~ (1/width)^a; the theory of wide networks gives 1:", "",
              "| parametrisation | loss | predictions | kernel |", "|---|---|---|---|"]
    for name in PARAMETRISATIONS:
        cells = []
        for key in ("loss", "predictions", "kernel"):
            slope, error = slope_of(widths, [runs[name][width].fluctuations[key] for width in widths])
            cells.append(f"{slope:.2f}" + ("" if error is None else f" ± {error:.2f}"))
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines += ["", "Test loss of two seeds by learning rate; bold is the best rate of a width:", "",
              "| parametrisation | learning rate | " + " | ".join(f"width {width}" for width in widths) + " |",
              "|---|---|" + "---|" * len(widths)]
    for name in PARAMETRISATIONS:
        for rate in sorted(runs[name][widths[0]].by_rate):
            cells = []
            for width in widths:
                run, loss = runs[name][width], runs[name][width].loss_at(rate)
                text = f"{loss:.4f}" if math.isfinite(loss) else "diverged"
                cells.append(f"**{text}**" if rate == run.best_rate() else text)
            lines.append(f"| {name} | {rate:g} | " + " | ".join(cells) + " |")
    lines.append("")
    for name in PARAMETRISATIONS:
        best = ", ".join(f"{runs[name][width].best_rate():g}" for width in widths)
        lines.append(f"Best rates of {name} at widths {', '.join(map(str, widths))}: {best}.")
    return "\n".join(lines) + "\n"


def load_report():
    """Returns jobs/report as a module, or None without matplotlib."""
    path = str(pathlib.Path(__file__).resolve().parent.parent / "report")
    loader = importlib.machinery.SourceFileLoader("report", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("report", loader))
    try:
        import matplotlib  # noqa: F401  jobs/report ends the program if it is missing
    except ImportError:
        return None
    loader.exec_module(module)
    return module


def name_ticks(report, axes, places, names):
    axes.set_xticks(places, names)
    axes.xaxis.set_minor_locator(report.NullLocator())


def draw(report, theme, runs, widths):
    colors = dict(zip(PARAMETRISATIONS, theme["series"]))
    for key, title in (("loss", "variance of the test loss"), ("predictions", "variance of predictions"),
                       ("kernel", "relative variance of the feature kernel")):
        figure, axes = report.pyplot.subplots()
        axes.set(title=title + " over seeds", xlabel="1 / width", xscale="log", yscale="log")
        for name in PARAMETRISATIONS:
            values = [runs[name][width].fluctuations[key] for width in widths]
            slope, _ = slope_of(widths, values)
            x = 1 / numpy.array(widths, float)
            axes.plot(x, values, "o", color=colors[name], label=f"{name}, slope {slope:.2f}")
            middle = math.exp(numpy.log(values).mean() - slope * numpy.log(x).mean())
            axes.plot(x, middle * x ** slope, color=colors[name], linewidth=1)
        name_ticks(report, axes, 1 / numpy.array(widths, float), [f"1/{width}" for width in widths])
        axes.legend()
        yield key, figure
    for name in PARAMETRISATIONS:
        figure, axes = report.pyplot.subplots()
        axes.set(title=f"learning rates, {name}", xlabel="learning rate", ylabel="test loss", xscale="log")
        for place, width in enumerate(widths):
            rates = [rate for rate in sorted(runs[name][width].by_rate) if math.isfinite(runs[name][width].loss_at(rate))]
            axes.plot(rates, [runs[name][width].loss_at(rate) for rate in rates], marker="o", color=colors[name],
                      alpha=(place + 1) / len(widths), label=f"width {width}")
        every = sorted(runs[name][widths[0]].by_rate)
        name_ticks(report, axes, every, [f"{rate:g}" for rate in every])
        axes.legend()
        yield f"rates-{name}", figure


def write_page(report, runs, widths, out):
    files = {}
    for theme_name, theme in report.THEMES.items():
        report.style(theme)
        for plot, figure in draw(report, theme, runs, widths):
            path = out / f"finite_width-{plot}-{theme_name}.png"
            figure.savefig(path)
            report.pyplot.close(figure)
            files.setdefault(plot, {})[theme_name] = path
    parts = [report.head_of("Networks of finite width"),
             "<p>Yang, Hu et al., “Tensor Programs V”, 2022 (arXiv 2203.03466): the learning rate that transfers across widths. "
             "Bordelon and Pehlevan, “Dynamics of Finite Width Kernel and Prediction Fluctuations in Mean Field Neural "
             "Networks”, 2023 (arXiv 2304.03408): variances over the initial weights fall as 1/width.</p>",
             '<div class="plots">', *(report.picture(pictures, plot) for plot, pictures in files.items()), "</div>"]
    (out / "index.html").write_text("".join(parts) + "</body></html>\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=pathlib.Path, help="folder that finite_width.sh has filled")
    parser.add_argument("--data", type=pathlib.Path, required=True, help="the HDF5 file that was trained on")
    parser.add_argument("--rate", type=float, required=True, help="learning rate of the seeds")
    parser.add_argument("--images", type=int, required=True, help="test images of predictions and kernels")
    parser.add_argument("--depth", type=int, required=True, help="of the networks")
    arguments = parser.parse_args()
    widths = sorted(int(path.name) for path in (arguments.out / "mup").iterdir())
    images = test_images(arguments.data, arguments.images)
    with concurrent.futures.ProcessPoolExecutor() as pool:
        evaluate_all = functools.partial(pool.map, functools.partial(evaluate, images=images, depth=arguments.depth))
        runs = {name: {width: Width(arguments.out / name / str(width), arguments.rate, evaluate_all)
                       for width in widths} for name in PARAMETRISATIONS}
    check_predictions(arguments.out / "predicted.csv", runs["mup"][widths[0]])
    text = tables(runs, widths)
    (arguments.out / "finite_width.md").write_text(text)
    print(text, end="")
    report = load_report()
    if report is None:
        print("finite_width.py: matplotlib is missing: no plots", file=sys.stderr)
    else:
        write_page(report, runs, widths, arguments.out)


if __name__ == "__main__":
    main()
