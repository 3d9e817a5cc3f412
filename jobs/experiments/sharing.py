#!/usr/bin/env python3
"""Runs mixes of trainings on one device in three ways and compares their times.

    jobs/experiments/sharing.py CONVOY OUT [--backend cuda] [--mix small,...] [--scale 1] [--plot FILE.svg]

Ways: one after the other (`convoy train`), as processes at the same time, and `convoy share`.
A training's time runs from its manifest.json, which is written before the first step, to its
summary.json. All runs use one tuning file, which the first runs fill. The parameters of every
job must be those of its run alone.
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys

# Keep small images on the device, so that no job waits for the loader.
SMALL = {"size": 32, "classes": 10, "data-on-device": True}
# Each mix has a list of jobs: (name, flags, steps).
MIXES = {
    "small": [("resnet18", {"model": "resnet18", "global-batch": 128, **SMALL}, 6000),
              ("googlenet", {"model": "googlenet", "global-batch": 32}, 2000),
              ("wrn16_4", {"model": "wrn16_4", "global-batch": 128, **SMALL}, 3000),
              ("lenet", {"model": "lenet", "global-batch": 128, **SMALL}, 30000)],
    "cifar": [("resnet18", {"model": "resnet18_cifar", "global-batch": 128, **SMALL}, 3000),
              ("googlenet", {"model": "googlenet", "global-batch": 32}, 2000),
              ("wrn16_4", {"model": "wrn16_4", "global-batch": 128, **SMALL}, 3000),
              ("lenet", {"model": "lenet", "global-batch": 128, **SMALL}, 30000)],
    "two": [("first", {"model": "resnet50", "global-batch": 256}, 200),
            ("second", {"model": "resnet50", "global-batch": 256, "seed": 2}, 200)],
    "large": [("resnet50", {"model": "resnet50", "global-batch": 128}, 300),
              ("vgg16", {"model": "vgg16", "global-batch": 64}, 250),
              ("resnet152", {"model": "resnet152", "global-batch": 64}, 200),
              ("wide", {"model": "wide_resnet50_2", "global-batch": 96}, 200)],
    "tiny": [("lenet", {"model": "lenet", "global-batch": 32, "size": 32, "classes": 10}, 60),
             ("cifar", {"model": "wrn10_1", "global-batch": 16, "size": 32, "classes": 10}, 20)],
}


def flags_of(flags, common):
    return [part for key, value in {**common, **flags}.items()
            for part in ([f"--{key}"] if value is True else [f"--{key}", str(value)])]


class Runs:
    def __init__(self, arguments):
        self.program = arguments.convoy
        self.out = pathlib.Path(arguments.out)
        self.common = {"data": "synthetic", "size": 224, "classes": 1000, "eval-every": 0, "limit-test": 64,
                       "checkpoint-every-epochs": 1000000, "seed": 1, "threads": arguments.threads,
                       "backend": arguments.backend}
        if arguments.backend == "cuda":
            self.common |= {"precision": "bf16", "tuning-file": str(self.out / "tuning.json")}
        self.out.mkdir(parents=True, exist_ok=True)

    def folder(self, *names):
        path = self.out.joinpath(*names)
        shutil.rmtree(path, ignore_errors=True)
        return path

    def train(self, flags, steps, folder):
        line = [self.program, "train", *flags_of(flags, {**self.common, "steps": steps}), "--out", str(folder)]
        return subprocess.Popen(line, stdout=subprocess.DEVNULL)

    @staticmethod
    def times(folder):
        return (folder / "manifest.json").stat().st_mtime, (folder / "summary.json").stat().st_mtime

    @staticmethod
    def sha(folder):
        return json.loads((folder / "summary.json").read_text())["parameters_sha256"]

    def alone(self, mix, jobs):
        seconds, shas = 0, {}
        for name, flags, steps in jobs:
            for last in (False, True):  # the first run fills the tuning file and is not timed
                folder = self.folder(mix, "alone", name)
                if self.train(flags, steps if last else 3, folder).wait() != 0:
                    sys.exit(f"{mix}: {name} alone failed")
            begin, end = self.times(folder)
            seconds += end - begin
            shas[name] = self.sha(folder)
        return seconds, shas

    def processes(self, mix, jobs):
        folders = [self.folder(mix, "processes", name) for name, _, _ in jobs]
        running = [self.train(flags, steps, folder) for (_, flags, steps), folder in zip(jobs, folders)]
        if any([process.wait() != 0 for process in running]):
            return float("nan")
        times = [self.times(folder) for folder in folders]
        return max(end for _, end in times) - min(begin for begin, _ in times)

    def share(self, mix, jobs, shas, way, flags=()):
        folder = self.folder(mix, way)
        folder.mkdir(parents=True)
        text = ""
        for name, own, steps in jobs:
            text += f'[[job]]\nname = "{name}"\n'
            for key, value in {**self.common, "steps": steps, **own}.items():
                text += f"{key} = {json.dumps(value)}\n"
        (folder / "jobs.toml").write_text(text)
        log = (folder / "log.txt").open("w")
        status = subprocess.call([self.program, "share", str(folder / "jobs.toml"), "--out", str(folder), *flags],
                                 stdout=log, stderr=log)
        report = json.loads((folder / "share.json").read_text())
        if status != 0:
            print((folder / "log.txt").read_text())
            return None
        times = [self.times(folder / name) for name, _, _ in jobs]
        same = all(self.sha(folder / name) == shas[name] for name, _, _ in jobs)
        return {"seconds": max(end for _, end in times) - min(begin for begin, _ in times), "same": same,
                "predicted": report.get("predicted_seconds", 0) / report["work_seconds"], "gain": report.get("gain", 1),
                "memory": report["memory_bytes"], "swapped": sum(job["swapped_bytes"] for job in report["jobs"])}


def plot(rows, path):
    """Draws a bar for the seconds of every row, and a mark at the predicted seconds."""
    import matplotlib
    matplotlib.use("svg")
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(figsize=(7, 0.6 + 0.3 * len(rows)), layout="constrained")
    labels = [f"{mix}: {way}" for mix, way, _, _ in rows]
    axes.barh(labels, [seconds for _, _, seconds, _ in rows], color="#5b8db8", label="measured")
    marks = [(seconds * predicted, label) for (_, _, seconds, predicted), label in zip(rows, labels) if predicted]
    if marks:
        axes.scatter(*zip(*marks), marker="|", s=160, linewidths=2.5, color="#d1495b", zorder=3,
                     label="predicted after the first second")
    axes.invert_yaxis()
    axes.set_xlabel("seconds from the first step of the first job to the results of the last")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncol=2, frameon=False)
    figure.savefig(path, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("convoy")
    parser.add_argument("out")
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--mix", default="small,two,large")
    parser.add_argument("--scale", type=float, default=1, help="multiplies the numbers of steps")
    parser.add_argument("--limit", type=float, default=2, help="memory of the last rows: that of all jobs by this")
    parser.add_argument("--ways", default="processes,auto,turns,limited,on-demand")
    parser.add_argument("--plot", help="an SVG file of the table's seconds; needs matplotlib")
    arguments = parser.parse_args()
    runs, rows = Runs(arguments), []
    print("| mix | way | seconds | of one by one | predicted / measured | gain measured first | memory GiB | swapped GiB | bits |")
    print("|---|---|---|---|---|---|---|---|---|")
    for mix in arguments.mix.split(","):
        jobs = [(name, flags, max(3, round(steps * arguments.scale))) for name, flags, steps in MIXES[mix]]
        serial, shas = runs.alone(mix, jobs)
        rows.append((mix, "one by one", serial, None))
        print(f"| {mix} | one by one | {serial:.2f} | 1.000 | | | | | |", flush=True)
        # Jobs that share a device for the first time measure which lanes (streams) to use. Let them
        # do so in a run that is not timed.
        if arguments.backend == "cuda":
            runs.share(mix, [(name, flags, 3) for name, flags, _ in jobs], shas, "first")
        memory = 0
        for way in arguments.ways.split(","):
            if way == "processes":
                together = runs.processes(mix, jobs)
                rows.append((mix, "processes", together, None))
                print(f"| {mix} | processes | {together:.2f} | {together / serial:.3f} | | | | | |", flush=True)
                continue
            limit = ["--memory-limit", str(int(memory / arguments.limit))]
            flags = {"auto": [], "turns": ["--policy", "turns"], "together": ["--policy", "together"],
                     "limited": limit, "on-demand": [*limit, "--no-prefetch"]}[way]
            if flags[:1] == limit[:1] and len(jobs) < 3:
                continue  # half the memory of two jobs may not hold one of them and the other's inputs
            result = runs.share(mix, jobs, shas, way, flags)
            if result is None:
                continue
            memory = result["memory"] if way == "auto" else memory
            rows.append((mix, f"share, {way}", result["seconds"], result["predicted"]))
            print(f"| {mix} | share, {way} | {result['seconds']:.2f} | {result['seconds'] / serial:.3f} | "
                  f"{result['predicted']:.3f} | {result['gain']:.2f} | {result['memory'] / 2**30:.2f} | "
                  f"{result['swapped'] / 2**30:.2f} | {'same' if result['same'] else 'DIFFERENT'} |", flush=True)
    if arguments.plot:
        plot(rows, arguments.plot)


if __name__ == "__main__":
    main()
