#!/usr/bin/env python3
"""Prints comments of the sources, drawn at random, for a reader who does not know the code.

Each comes with the head of its file and some lines around. The reader says back what the comment says; how many
were understood at once is in docs/results/checks.md.

  tests/sample_comments.py SEED COUNT
"""
import random
import re
import subprocess
import sys

if len(sys.argv) != 3 or not all(word.isdigit() for word in sys.argv[1:]):
    sys.exit(__doc__)
seed, count = map(int, sys.argv[1:])


def comments(lines, mark):
    """Yields (first, end) of blocks of comment lines, and of comments behind code."""
    at = 0
    while at < len(lines):
        text = lines[at].strip()
        if text.startswith(mark) and not text.startswith("#!") and "NOLINT" not in text and "shellcheck" not in text:
            end = at
            while end < len(lines) and lines[end].strip().startswith(mark):
                end += 1
            yield at, end
            at = end
            continue
        behind = None if text.startswith(mark) else re.search(r"\s" + re.escape(mark) + r"\s+\S.{12,}", lines[at])
        if behind and "namespace" not in lines[at] and '"' not in lines[at][behind.start():]:
            yield at, at + 1
        at += 1


names = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True).stdout.split("\n")
found = []
for name in names:
    if name.endswith((".h", ".cpp", ".cu", ".cuh", ".py", ".sh")):
        lines = open(name, encoding="utf-8").read().split("\n")
        mark = "#" if name.endswith((".py", ".sh")) else "//"
        found += [(name, lines, mark, first, end) for first, end in comments(lines, mark)]
random.seed(seed)
print(len(found), "comments")
for number, (name, lines, mark, first, end) in enumerate(random.sample(found, count), 1):
    head = 0
    while head < len(lines) and lines[head].startswith((mark, "#!")):
        head += 1
    print(f"\n### {number}. {name}:{first + 1}")
    if first >= head > 0:
        print("\n".join(lines[:min(head, 14)]) + "\n    [...]")
    print("\n".join(lines[max(0, first - 8):end + 10]))
