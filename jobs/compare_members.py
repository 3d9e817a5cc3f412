#!/usr/bin/env python3
"""Rates of many trainings of one network on one GPU: members of Convoy next to other ways, in one run.

usage: compare_members.py [--convoy PROGRAM] [--members N] [--batch B] [NETWORK ...]

For each network (lenet, cifar10_quick, resnet18, wrn16_4: the default) of 32 x 32 pixels in bf16 it prints one table row
per way, with images per second of all trainings by wall time and the ratio of Convoy's members to it:

  alone         one training in Convoy
  members       N members of one Convoy process
  processes     N Convoy processes that share the GPU by time slices. The sum of their rates, a little too high, because
                they do not start and end at the same time
  torch alone   one training in PyTorch: the faster of one CUDA graph per step and torch.compile
  torch vmap    N trainings in PyTorch by torch.func: vmap over the stacked weights, compiled. Batch norm keeps no
                running statistics, which vmap does not support
  torch fused   N trainings in PyTorch as one network with grouped convolutions, as in HFTA (Wang et al., MLSys 2021):
                the faster of one CUDA graph per step and torch.compile
"""
import argparse
import json
import subprocess
import sys
import time

SIZE, CLASSES = 32, 10


def convoy(args, network, members=1, steps=100):
    return [args.convoy, "bench", "step", "--backend", "cuda", "--precision", "bf16", "--model", network, "--batch",
            str(args.batch), "--size", str(SIZE), "--members", str(members), "--steps", str(steps), "--json"]


def rate_of(text):
    return json.loads(text)["images_per_second"]


def processes(args, network):
    # Every process trains for several seconds, so that all of them run most of the time.
    alone = rate_of(subprocess.check_output(convoy(args, network)))
    steps = max(50, int(8 * alone / args.batch / args.members))
    running = [subprocess.Popen(convoy(args, network, steps=steps), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
               for _ in range(args.members)]
    outputs = [process.communicate() for process in running]
    failed = [error for process, (_, error) in zip(running, outputs) if process.returncode != 0]
    if failed:
        raise RuntimeError(failed[0].decode().strip())
    return sum(rate_of(output) for output, _ in outputs)


def make_model(network):
    from torch import nn

    def wide_block(inputs, outputs, stride):
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.bn1, self.bn2 = nn.BatchNorm2d(inputs), nn.BatchNorm2d(outputs)
                self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
                self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
                same = inputs == outputs and stride == 1
                self.shortcut = None if same else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

            def forward(self, x):
                y = self.bn1(x).relu()
                skip = x if self.shortcut is None else self.shortcut(y)
                return self.conv2(self.bn2(self.conv1(y)).relu()) + skip
        return Block()

    if network == "lenet":
        return nn.Sequential(nn.Conv2d(3, 32, 5, 1, 2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 5, 1, 2), nn.ReLU(),
                             nn.MaxPool2d(2), nn.Flatten(), nn.Linear(4096, 512), nn.ReLU(), nn.Linear(512, CLASSES))
    if network == "cifar10_quick":
        return nn.Sequential(nn.Conv2d(3, 32, 5, 1, 2), nn.MaxPool2d(3, 2, ceil_mode=True), nn.ReLU(),
                             nn.Conv2d(32, 32, 5, 1, 2), nn.ReLU(), nn.AvgPool2d(3, 2, ceil_mode=True),
                             nn.Conv2d(32, 64, 5, 1, 2), nn.ReLU(), nn.AvgPool2d(3, 2, ceil_mode=True), nn.Flatten(),
                             nn.Linear(1024, 64), nn.Linear(64, CLASSES))
    if network.startswith("wrn"):
        depth, width = map(int, network[3:].split("_"))
        layers, channels = [nn.Conv2d(3, 16, 3, 1, 1, bias=False)], 16
        for stage in range(3):
            for block in range((depth - 4) // 6):
                outputs = 16 * width * 2**stage
                layers.append(wide_block(channels, outputs, 2 if stage and not block else 1))
                channels = outputs
        return nn.Sequential(*layers, nn.BatchNorm2d(channels), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                             nn.Linear(channels, CLASSES))
    import torchvision
    return getattr(torchvision.models, network)(num_classes=CLASSES)


def fuse(module, members):
    """Widens every layer of a network to `members` groups, in place."""
    import torch
    from torch import nn

    class Linears(nn.Module):
        def __init__(self, inputs, outputs):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(members, inputs, outputs) / inputs**0.5)
            self.bias = nn.Parameter(torch.zeros(members, 1, outputs))

        def forward(self, x):
            grouped = x.reshape(x.shape[0], members, -1).transpose(0, 1)
            return torch.baddbmm(self.bias.to(torch.bfloat16), grouped.to(torch.bfloat16),
                                 self.weight.to(torch.bfloat16)).transpose(0, 1).flatten(1)

    for name, child in module.named_children():
        if isinstance(child, nn.Conv2d):
            setattr(module, name, nn.Conv2d(child.in_channels * members, child.out_channels * members, child.kernel_size,
                                            child.stride, child.padding, groups=members, bias=child.bias is not None))
        elif isinstance(child, nn.BatchNorm2d):
            setattr(module, name, nn.BatchNorm2d(child.num_features * members))
        elif isinstance(child, nn.Linear):
            setattr(module, name, Linears(child.in_features, child.out_features))
        else:
            fuse(child, members)
    return module


def torch_rate(way, mode, network, members, batch):
    import torch
    from torch import nn
    torch.backends.cudnn.benchmark = True
    x = torch.randn(batch, 3, SIZE, SIZE, device="cuda").to(memory_format=torch.channels_last)
    y = torch.randint(0, CLASSES, (batch,), device="cuda")
    trainings = 1 if way == "alone" else members
    if way == "vmap":
        from torch.func import functional_call, replace_all_batch_norm_modules_, stack_module_state
        models = [replace_all_batch_norm_modules_(make_model(network)).to("cuda") for _ in range(members)]
        parameters, buffers = stack_module_state(models)
        parameters = {name: value.detach().requires_grad_() for name, value in parameters.items()}

        def losses():
            def of_one(weights, state):
                return nn.functional.cross_entropy(functional_call(models[0], (weights, state), (x,)), y)
            return torch.vmap(of_one, randomness="different")(parameters, buffers).sum()
        trained, loss_of = list(parameters.values()), losses
    else:
        model = make_model(network)
        if trainings > 1:
            model = fuse(model, members)
            x = x.repeat(1, members, 1, 1).to(memory_format=torch.channels_last)
        model = model.to("cuda").to(memory_format=torch.channels_last)
        labels = y.repeat_interleave(trainings)

        def losses():
            return nn.functional.cross_entropy(model(x).reshape(-1, CLASSES), labels) * trainings
        trained, loss_of = list(model.parameters()), losses
    if mode == "compile":
        loss_of = torch.compile(loss_of)
    optimizer = torch.optim.SGD(trained, lr=1e-3, momentum=0.9, weight_decay=5e-5, fused=True)

    def step():
        optimizer.zero_grad(set_to_none=mode != "graph")
        with torch.autocast("cuda", torch.bfloat16):
            loss = loss_of()
        loss.backward()
        optimizer.step()

    go = step
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(8):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    if mode == "graph":
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        go = graph.replay
    times = []
    for _ in range(4):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(20):
            go()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) / 20)
    return trainings * batch / sorted(times[1:])[1]


def best_of_torch(args, way, network, modes):
    rates = []
    for mode in modes:
        # Each mode runs in a process of its own, so that its memory and code cannot slow the next
        # mode.
        run = subprocess.run([sys.executable, __file__, "--torch", f"{way}:{mode}", "--members", str(args.members),
                              "--batch", str(args.batch), network], capture_output=True, text=True)
        if run.returncode == 0:
            rates.append(float(run.stdout.strip().splitlines()[-1]))
        else:
            print(f"{network}, torch {way}, {mode}: {run.stderr.strip().splitlines()[-1][:200]}", file=sys.stderr)
    return max(rates, default=None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--convoy", default="build/cuda/convoy")
    parser.add_argument("--members", type=int, default=16)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--torch", help=argparse.SUPPRESS)
    parser.add_argument("networks", nargs="*", default=["lenet", "cifar10_quick", "resnet18", "wrn16_4"])
    args = parser.parse_args()
    if args.torch:
        print(torch_rate(*args.torch.split(":"), args.networks[0], args.members, args.batch))
        return
    print(f"{'network':<16} {'way':<12} {'images/s':>12} {'members are':>14}")
    for network in args.networks:
        members = rate_of(subprocess.check_output(convoy(args, network, args.members)))
        ways = [("alone", lambda: rate_of(subprocess.check_output(convoy(args, network)))),
                ("members", lambda: members),
                ("processes", lambda: processes(args, network)),
                ("torch alone", lambda: best_of_torch(args, "alone", network, ["graph", "compile"])),
                ("torch vmap", lambda: best_of_torch(args, "vmap", network, ["compile"])),
                ("torch fused", lambda: best_of_torch(args, "fused", network, ["graph", "compile"]))]
        for name, measure in ways:
            rate = measure()
            print(f"{network:<16} {name:<12} {'failed' if rate is None else format(rate, '12.0f'):>12} "
                  f"{'' if rate is None else format(members / rate, '13.2f') + 'x':>14}", flush=True)


if __name__ == "__main__":
    main()
