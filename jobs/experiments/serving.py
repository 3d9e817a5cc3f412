#!/usr/bin/env python3
"""Measures a prediction service next to a training on one device.

    jobs/experiments/serving.py CONVOY OUT [--backend cuda] [--loads 0.2,0.5] [--multiprocessors 32,64]

The service answers single JPEG images with resnet50 in batches of 8, with a goal for its latency. First it runs alone, with
more requests than it can answer, which gives its capacity. Then requests come by a Poisson process at shares of the capacity,
while resnet50 trains with a batch of 256:
  goal            trainings go on while the goal is kept, in turns with the service
  priorities      service and training run at the same time, and free multiprocessors go to the service first (--no-hold)
  always hold     trainings wait whenever the service has a request (no goal)
  N for itself    service and training run at the same time, each on its own part of the multiprocessors (multiprocessors = N)
The last rows send a burst in the middle of the load. "Of what is left" is the training's rate, divided by its rate alone times
the share of time that the service's load leaves. --ways takes a part of the rows: goal, priorities, always hold, parts, burst.
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import time


def percentile(values, share):
    return sorted(values)[max(0, int(share * len(values) + 0.5) - 1)] if values else float("nan")


class Experiment:
    def __init__(self, flags):
        self.flags = flags
        self.out = pathlib.Path(flags.out)
        self.out.mkdir(parents=True, exist_ok=True)
        self.common = {"backend": flags.backend}
        if flags.backend == "cuda":
            self.common |= {"precision": "bf16", "tuning-file": str(self.out / "tuning.json")}
        self.training = {"model": flags.model, "data": "synthetic", "size": flags.size, "classes": 1000,
                         "global-batch": flags.batch, "eval-every": 0, "limit-test": 8, "log-every": 10,
                         "checkpoint-every-epochs": 1000000, **self.common}
        self.client = pathlib.Path(__file__).parent.parent / "predict_client.py"

    def convoy(self, *words):
        with open(self.out / "log.txt", "a") as log:
            if subprocess.call([self.flags.convoy, *map(str, words)], stdout=log, stderr=log) != 0:
                sys.exit(f"serving.py: convoy {words[0]} failed, see {self.out}/log.txt")

    def prepare(self):
        """Draws the images and makes the checkpoint that the service uses. Returns the training's rate alone."""
        images = self.out / "images"
        if not images.exists():
            self.convoy("data", "photographs", images, "--width", 256, "--height", 256, "--quality", 90, "--classes", 2,
                        "--train", 200, "--test", 10)
        self.images = [str(path) for path in images.glob("train/*/*")]
        run = self.out / "run"
        shutil.rmtree(run, ignore_errors=True)
        words = [word for key, value in self.training.items() for word in (f"--{key}", value)]
        self.convoy("train", *words, "--steps", self.flags.steps, "--out", run)
        return self.rate(run, 1)

    @staticmethod
    def rate(folder, skip, end=None):
        """Returns images a second of wall time from the log's records skip to end."""
        records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        rates = [record["images_per_second"] for record in records if "loss" in record][skip:end]
        # Average by the harmonic mean, because all records cover the same number of images.
        return len(rates) / sum(1 / rate for rate in rates) if rates else float("nan")

    def run(self, name, requests, seconds, train, goal=True, flags=(), burst=0, multiprocessors=0):
        folder = self.out / name
        shutil.rmtree(folder, ignore_errors=True)
        jobs = [{"name": "service", "kind": "predict", "checkpoint": str(self.out / "run"), "batch": 8, "threads": self.flags.threads,
                 "multiprocessors": multiprocessors, **self.common, **({"latency-goal": self.flags.goal} if goal else {})}]
        if train:
            jobs.append({"name": "training", "steps": 1000000, "threads": 2, **self.training})
        text = "".join("[[job]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in job.items()) for job in jobs)
        (self.out / "jobs.toml").write_text(text)
        with open(self.out / f"{name}.txt", "w") as log:
            share = subprocess.Popen([self.flags.convoy, "share", str(self.out / "jobs.toml"), "--out", str(folder), *flags],
                                     stdout=log, stderr=log)
        ready = [folder / "service" / "socket"] + ([folder / "training" / "metrics.jsonl"] if train else [])
        while not all(path.exists() and (path.is_socket() or path.read_text().count("\n") > 2) for path in ready):
            if share.poll() is not None:
                sys.exit(f"serving.py: convoy share ended, see {self.out}/{name}.txt")
            time.sleep(0.05)
        skip = (folder / "training" / "metrics.jsonl").read_text().count("\n") + 1 if train else 0
        latencies = self.out / f"{name}.latencies"
        reply = subprocess.run([str(self.client), str(ready[0]), *self.images, "--rate", str(requests), "--seconds", str(seconds),
                                "--poisson", "--burst", str(burst), "--latencies", str(latencies)], capture_output=True, text=True)
        end = (folder / "training" / "metrics.jsonl").read_text().count("\n") if train else 0
        # On a busy machine the training may log nothing during a short load. Then its next record counts.
        for _ in range(600):
            if end > skip or not train:
                break
            time.sleep(0.05)
            end = (folder / "training" / "metrics.jsonl").read_text().count("\n")
        share.terminate()
        share.wait()
        if reply.returncode != 0:
            sys.exit(f"serving.py: {name}: {reply.stdout}{reply.stderr}")
        result = json.loads(reply.stdout.splitlines()[-1])
        result["pairs"] = [tuple(map(float, line.split())) for line in latencies.read_text().splitlines()]
        result["training"] = self.rate(folder / "training", skip, end) if train else float("nan")
        return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("convoy")
    parser.add_argument("out")
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--steps", type=int, default=100, help="of the training alone")
    parser.add_argument("--threads", type=int, default=8, help="of the service")
    parser.add_argument("--goal", type=float, default=15, help="latency goal in ms")
    parser.add_argument("--loads", default="0.2,0.5", help="shares of the capacity")
    parser.add_argument("--multiprocessors", default="32,64", help="of the service in the last way; none with --backend cpu")
    parser.add_argument("--ways", default="goal,priorities,always hold,parts,burst", help="rows to measure")
    parser.add_argument("--overload", type=float, default=20000, help="requests a second that the service cannot answer")
    parser.add_argument("--seconds", type=float, default=5, help="length of each load")
    flags = parser.parse_args()
    experiment = Experiment(flags)
    alone = experiment.prepare()
    full = experiment.run("capacity", flags.overload, 1, train=False)
    capacity = full["answered"] / full["seconds"]
    print(f"The training alone: {alone:.0f} images/s. The service alone: up to {capacity:.0f} images/s.\n")
    print("| load | way | p50 ms | p99 ms | training's images/s | of what is left |")
    print("|---|---|---|---|---|---|")
    chosen = flags.ways.split(",")
    ways = {"goal": {}, "priorities": {"flags": ["--no-hold"]}, "always hold": {"goal": False}}
    ways = {way: options for way, options in ways.items() if way in chosen}
    if "parts" in chosen and flags.backend == "cuda":
        ways |= {f"{count} for itself": {"multiprocessors": count} for count in map(int, flags.multiprocessors.split(","))}
    for load in map(float, flags.loads.split(",")):
        for way, options in ways.items():
            row = experiment.run(f"{way.replace(' ', '-')}-{load}", load * capacity, flags.seconds, True, **options)
            print(f"| {load:.2f} | {way} | {row['latency_ms']['p50']} | {row['latency_ms']['p99']} | {row['training']:.0f} | "
                  f"{row['training'] / (alone * (1 - load)):.2f} |", flush=True)
    if "burst" not in chosen:
        return
    print("\n| load | burst | p99 ms before it | longest ms | p99 ms of those due more than 100 ms after it |")
    print("|---|---|---|---|---|")
    for load in map(float, flags.loads.split(",")):
        row = experiment.run(f"burst-{load}", load * capacity, flags.seconds, True, burst=64)
        middle = flags.seconds / 2
        print(f"| {load:.2f} | 64 requests | {percentile([ms for due, ms in row['pairs'] if due < middle], 0.99):.1f} | "
              f"{row['latency_ms']['max']} | {percentile([ms for due, ms in row['pairs'] if due > middle + 0.1], 0.99):.1f} |", flush=True)


if __name__ == "__main__":
    main()
