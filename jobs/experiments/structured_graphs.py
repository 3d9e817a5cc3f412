#!/usr/bin/env python3
"""Writes task graphs of known structure, in the JSON that `convoy partition --graph` reads.

    jobs/experiments/structured_graphs.py FAMILY NODES RATIO [--seed N] > GRAPH.json

Node times have a Pareto distribution with a mean of 500 us. At 130 GB/s and without latency, a tensor moves in RATIO
times the mean node time on average. The same arguments give the same graph.
"""
import argparse
import json
import math
import random
import sys


def layered(n, rng):
    """Layers of random width; each task reads one to four of the layer before."""
    w = max(4, int(math.sqrt(n) * 1.2))
    edges = []
    layers = []
    i = 0
    while i < n:
        k = min(n - i, rng.randint(w // 2, 3 * w // 2))
        layers.append(list(range(i, i + k)))
        i += k
    for a, b in zip(layers, layers[1:]):
        for v in b:
            for u in rng.sample(a, min(len(a), rng.randint(1, 4))):
                edges.append((u, v))
    return (i, edges)


def cholesky(n, rng):
    """Tiled Cholesky factorisation."""
    t = 1
    while sum((1 for _ in chol_tasks(t))) < n:
        t += 1
    ids = {}
    edges = []
    for name, deps in chol_tasks(t):
        ids[name] = len(ids)
        edges += [(ids[d], ids[name]) for d in deps]
    return (len(ids), edges)


def chol_tasks(t):
    last = {}
    for k in range(t):

        def task(name, reads, writes):
            deps = {last[x] for x in reads + [writes] if x in last}
            last[writes] = name
            return (name, sorted(deps, key=str))
        yield task(('p', k), [], (k, k))
        for i in range(k + 1, t):
            yield task(('t', k, i), [(k, k)], (i, k))
        for i in range(k + 1, t):
            for j in range(k + 1, i + 1):
                yield task(('u', k, i, j), [(i, k), (j, k)], (i, j))


def lu(n, rng):
    """Tiled LU factorisation."""

    def tasks(t):
        last = {}
        for k in range(t):

            def task(name, reads, writes):
                deps = {last[x] for x in reads + [writes] if x in last}
                last[writes] = name
                return (name, sorted(deps, key=str))
            yield task(('g', k), [], (k, k))
            for i in range(k + 1, t):
                yield task(('r', k, i), [(k, k)], (k, i))
                yield task(('c', k, i), [(k, k)], (i, k))
            for i in range(k + 1, t):
                for j in range(k + 1, t):
                    yield task(('u', k, i, j), [(i, k), (k, j)], (i, j))
    t = 1
    while sum((1 for _ in tasks(t))) < n:
        t += 1
    ids = {}
    edges = []
    for name, deps in tasks(t):
        ids[name] = len(ids)
        edges += [(ids[d], ids[name]) for d in deps]
    return (len(ids), edges)


def gauss(n, rng):
    """Gaussian elimination, column by column."""
    m = 2
    while (m * m + m - 2) // 2 < n:
        m += 1
    ids = {}
    edges = []
    for k in range(m - 1):
        ids['p', k] = len(ids)
        if k:
            edges.append((ids['u', k - 1, k], ids['p', k]))
        for j in range(k + 1, m):
            ids['u', k, j] = len(ids)
            edges.append((ids['p', k], ids['u', k, j]))
            if k:
                edges.append((ids['u', k - 1, j], ids['u', k, j]))
    return (len(ids), edges)


def fft(n, rng):
    """A binary tree of calls, then butterflies."""
    p = 2
    while 2 * p - 1 + p * int(math.log2(p)) < n:
        p *= 2
    if abs(p - 0) > 2 and 2 * p - 1 + p * int(math.log2(p)) > 1.7 * n:
        p //= 2
    ids = 0
    edges = []
    tree = [[0]]
    ids = 1
    while len(tree[-1]) < p:
        row = []
        for u in tree[-1]:
            for _ in range(2):
                row.append(ids)
                edges.append((u, ids))
                ids += 1
        tree.append(row)
    row = tree[-1]
    for s in range(int(math.log2(p))):
        new = []
        for i in range(p):
            new.append(ids)
            ids += 1
        for i in range(p):
            edges.append((row[i], new[i]))
            edges.append((row[i ^ 1 << s], new[i]))
        row = new
    return (ids, edges)


def stencil(n, rng):
    """A wavefront over a square grid."""
    m = int(math.sqrt(n))
    edges = []
    for i in range(m):
        for j in range(m):
            if i + 1 < m:
                edges.append((i * m + j, (i + 1) * m + j))
            if j + 1 < m:
                edges.append((i * m + j, i * m + j + 1))
    return (m * m, edges)


def heat(n, rng):
    """A line of cells over time; each reads its neighbours."""
    w = max(4, int(math.sqrt(n)))
    t = n // w
    edges = []
    for k in range(1, t):
        for i in range(w):
            for d in (-1, 0, 1):
                if 0 <= i + d < w:
                    edges.append(((k - 1) * w + i + d, k * w + i))
    return (w * t, edges)


def series_parallel(n, rng):
    """Random series and parallel compositions."""
    edges = []
    count = [0]

    def new():
        count[0] += 1
        return count[0] - 1

    def build(size):
        if size <= 2:
            a = new()
            b = a
            for _ in range(size - 1):
                c = new()
                edges.append((b, c))
                b = c
            return (a, b)
        if rng.random() < 0.45:
            k = rng.randint(1, size - 1)
            a, b = build(k)
            c, d = build(size - k)
            edges.append((b, c))
            return (a, d)
        s = new()
        width = rng.randint(2, 6)
        rest = size - 2
        t = None
        ends = []
        for i in range(width):
            part = max(1, rest // width)
            a, b = build(part)
            edges.append((s, a))
            ends.append(b)
        t = new()
        for b in ends:
            edges.append((b, t))
        return (s, t)
    build(n)
    return (count[0], edges)


def montage(n, rng):
    """The workflow of the Montage mosaics."""
    w = max(3, n // 7)
    edges = []
    ids = 0
    proj = list(range(w))
    ids = w
    diff = []
    for i in range(w):
        for j in (i + 1, i + 2, i + 5):
            if j < w:
                diff.append(ids)
                edges += [(i, ids), (j, ids)]
                ids += 1
    concat = ids
    ids += 1
    edges += [(d, concat) for d in diff]
    bg = ids
    ids += 1
    edges.append((concat, bg))
    corr = []
    for i in range(w):
        edges += [(bg, ids), (proj[i], ids)]
        corr.append(ids)
        ids += 1
    tbl = ids
    ids += 1
    edges += [(c, tbl) for c in corr]
    add = []
    for i in range(0, w, 8):
        edges.append((tbl, ids))
        edges += [(c, ids) for c in corr[i:i + 8]]
        add.append(ids)
        ids += 1
    shr = []
    for a in add:
        edges.append((a, ids))
        shr.append(ids)
        ids += 1
    edges += [(s, ids) for s in shr]
    ids += 1
    return (ids, edges)


def fork_join(n, rng):
    """Forks of random width and depth that join before the next one begins."""
    edges = []
    ids = 1
    last = 0
    while ids < n:
        w = rng.randint(4, 24)
        ends = []
        for _ in range(w):
            edges.append((last, ids))
            ids += 1
            for _ in range(rng.randint(0, 3)):
                edges.append((ids - 1, ids))
                ids += 1
            ends.append(ids - 1)
        edges += [(x, ids) for x in ends]
        last = ids
        ids += 1
    return (ids, edges)


def transformer(n, rng):
    """A training step: layers with four heads, then backward."""
    heads = 4
    edges = []
    ids = 0
    fwd = []

    def add(*deps):
        nonlocal ids
        for d in deps:
            edges.append((d, ids))
        ids += 1
        return ids - 1
    x = add()
    layers = max(1, n // (2 * (heads * 5 + 8)))
    for _ in range(layers):
        norm = add(x)
        hs = []
        for _ in range(heads):
            q, k, v = (add(norm), add(norm), add(norm))
            s = add(q, k)
            fwd.append([q, k, v, s])
            hs.append(add(s, v))
            fwd.append([hs[-1]])
        cat = add(*hs)
        pr = add(cat)
        res = add(x, pr)
        n2 = add(res)
        up = add(n2)
        act = add(up)
        dn = add(act)
        x = add(res, dn)
        fwd.append([norm, cat, pr, res, n2, up, act, dn, x])
    g = add(x)
    order = list(range(ids - 1))
    succ = {}
    for a, b in edges:
        succ.setdefault(a, []).append(b)
    grad = {}
    top = ids - 1
    pred = {}
    for a, b in edges:
        pred.setdefault(b, []).append(a)
    for v in reversed(range(top)):
        deps = [grad[s] for s in succ.get(v, []) if s in grad] or [g]
        grad[v] = add(*deps + [v])
    return (ids, sorted(set(edges)))


def tree(n, rng):
    """A binary tree that branches out and then joins again."""
    edges = [((i - 1) // 2, i) for i in range(1, n // 2)]
    m = n // 2
    leaves = [i for i in range(m) if 2 * i + 1 >= m]
    ids = m
    while len(leaves) > 1:
        new = []
        for i in range(0, len(leaves), 2):
            for u in leaves[i:i + 2]:
                edges.append((u, ids))
            new.append(ids)
            ids += 1
        leaves = new
    return (ids, edges)


def rand(n, rng):
    """Each task reads one to four tasks not far before it."""
    edges = []
    for v in range(1, n):
        for _ in range(rng.randint(1, 4)):
            u = max(0, v - 1 - int(rng.expovariate(1 / (n / 12))))
            edges.append((u, v))
    return (n, sorted(set(edges)))


FAMILIES = dict(layered=layered, cholesky=cholesky, lu=lu, gauss=gauss, fft=fft, stencil=stencil, heat=heat, sp=series_parallel, montage=montage, forkjoin=fork_join, transformer=transformer, tree=tree, random=rand)


def pareto(rng):
    return (1 - 0.999 * rng.random()) ** (-1 / 1.5)


def make(family, wanted, ratio, seed):
    rng = random.Random(f'{family} {wanted} {ratio} {seed}')
    nodes, edges = FAMILIES[family](wanted, rng)
    edges = sorted(set(edges))
    times = [160 * pareto(rng) for _ in range(nodes)]
    scale = 500 * nodes / sum(times)
    times = [round(time * scale) for time in times]
    sizes = [pareto(rng) for _ in range(nodes)]
    mean = sum(sizes[producer] for producer, _ in edges) / len(edges)
    sizes = [int(size / mean * ratio * 500 * 130e3) for size in sizes]
    return {'nodes': [{'id': node, 'time_us': times[node], 'resident_bytes': 0, 'output_bytes': sizes[node]} for node in range(nodes)],
            'edges': [{'from': producer, 'to': consumer} for producer, consumer in edges]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('family', choices=sorted(FAMILIES))
    parser.add_argument('nodes', type=int, help='wanted; the result comes close')
    parser.add_argument('ratio', type=float, help='of a transfer to the work of a node')
    parser.add_argument('--seed', type=int, default=1)
    options = parser.parse_args()
    if options.nodes < 8 or not options.ratio > 0:
        parser.error('expected 8 nodes or more, and a ratio above 0')
    json.dump(make(options.family, options.nodes, options.ratio, options.seed), sys.stdout)


if __name__ == '__main__':
    main()
