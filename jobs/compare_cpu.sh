#!/usr/bin/env bash
# Compares the rates of training steps in Convoy and in PyTorch on this machine's CPU. Then compares
# Convoy on two ranks with Convoy on one rank.
# Usage: jobs/compare_cpu.sh PEER [MODEL:BATCH:SIZE ...]
#   PEER  a Python program that is called as PEER --device cpu --threads N
#         MODEL:BATCH:SIZE:eager:fp32 and prints one JSON object with "ms", the milliseconds of the
#         median step (it needs PyTorch and torchvision)
# Variables: CONVOY, the program to measure (build/release/convoy). THREADS of each program (2).
# PYTHON, the interpreter (python3). PAIRS, the number of runs on one rank, and of runs on two (6).
set -euo pipefail
case "${1:---help}" in -h | --help) sed -n '2,9p' "$0" | cut -c3-; exit 0 ;; esac
[ -f "$1" ] || { echo "compare_cpu.sh: $1: no such file, expected a Python program; see --help" >&2; exit 2; }
peer=$(realpath -- "$1")
shift
[ $# -gt 0 ] || set -- resnet18:128:32 resnet50:16:224 googlenet:16:224 lenet:128:32
cd "$(dirname "$0")/.."
convoy=${CONVOY:-build/release/convoy} threads=${THREADS:-2} python=${PYTHON:-python3} pairs=${PAIRS:-6}
[ -x "$convoy" ] || { echo "compare_cpu.sh: $convoy: no such program; cmake --preset release && cmake --build --preset release" >&2; exit 1; }

log=$(mktemp)
trap 'rm -f "$log"' EXIT
field() { sed -n "s/.*\"$1\": *\([0-9.]*\).*/\1/p" "$log" | sed -n 1p; }
peak() { sed -n 's/^peak_kb //p' "$log"; }
measured() { /usr/bin/time -f 'peak_kb %M' "$@" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }; }

printf '%-18s %12s %12s %7s %14s %14s\n' model:batch:size 'PyTorch/s' 'Convoy/s' ratio 'PyTorch MiB' 'Convoy MiB'
for row in "$@"; do
  IFS=: read -r model batch size <<<"$row"
  steps=10 peer_steps=4
  [ "$size" -le 64 ] || steps=4 peer_steps=1
  measured "$python" "$peer" --device cpu --threads "$threads" --steps "$peer_steps" --warmup 1 "$row:eager:fp32"
  theirs=$(field ms) their_peak=$(peak)
  measured "$convoy" bench step --model "$model" --batch "$batch" --size "$size" --threads "$threads" --steps "$steps" \
    --warmup 2 --json
  ours=$(field ms) our_peak=$(peak)
  awk -v r="$row" -v b="$batch" -v t="$theirs" -v o="$ours" -v tp="$their_peak" -v op="$our_peak" \
    'BEGIN {printf "%-18s %12.1f %12.1f %7.2f %14.0f %14.0f\n", r, b / t * 1e3, b / o * 1e3, t / o, tp / 1024, op / 1024}'
done

# Alternate between one and two ranks, so that other work on the machine slows both alike.
times=$(for ((pair = 0; pair < pairs; ++pair)); do
  for ranks in 1 2; do
    measured mpirun -np "$ranks" --bind-to none "$convoy" bench step --model resnet18 --batch 128 --size 32 --threads 1 \
      --steps 10 --json
    echo "$ranks $(field ms)"
  done
done)
sort -k1,1n -k2,2n <<<"$times" | awk '
  function median(ranks, n) { n = runs[ranks]; return (ms[ranks, int((n + 1) / 2)] + ms[ranks, int(n / 2) + 1]) / 2 }
  { ms[$1, ++runs[$1]] = $2 }
  END {
    one = median(1); two = median(2)
    printf "resnet18:128:32, ranks of one thread, medians of %d pairs: one %.1f images/s, two %.1f images/s, %.2f times (best by best %.2f)\n",
      runs[1], 128e3 / one, 256e3 / two, 2 * one / two, 2 * ms[1, 1] / ms[2, 1]
  }'
