#!/usr/bin/env bash
# Training-step rates on one GPU, Convoy beside PyTorch, turn by turn in one run.
# Usage: jobs/compare_gpu.sh PEER [MODEL:BATCH:SIZE:MODE:PRECISION ...]
#   PEER  a Python program that is called as: PEER MODEL:BATCH:SIZE:MODE:PRECISION and prints one JSON object with ms and
#         peak_GiB; MODE: eager, graph (one CUDA graph a step) or compile (torch.compile)
# CONVOY: the program to measure (build/cuda/convoy). TUNING: its tuning file (none). PYTHON: the interpreter (python3).
set -euo pipefail
case "${1:---help}" in -h | --help) sed -n '2,6p' "$0" | cut -c3-; exit 0 ;; esac
[ -f "$1" ] || { echo "compare_gpu.sh: $1: no such file, expected a Python program; see --help" >&2; exit 2; }
peer=$(realpath -- "$1")
shift
[ $# -gt 0 ] || set -- resnet50:256:224:compile:bf16 resnet50:32:224:graph:bf16 resnet50:256:224:compile:tf32 \
  googlenet:32:224:graph:bf16 wrn28_10:128:32:compile:bf16 resnet18:128:32:graph:bf16 lenet:128:32:graph:bf16 \
  alexnet:256:224:compile:bf16 vgg16:128:224:compile:bf16
cd "$(dirname "$0")/.."
convoy=${CONVOY:-build/cuda/convoy} python=${PYTHON:-python3}
tuning=(${TUNING:+--tuning-file "$TUNING"})
[ -x "$convoy" ] || { echo "compare_gpu.sh: $convoy: no such program; cmake --preset cuda && cmake --build --preset cuda" >&2; exit 1; }

log=$(mktemp)
trap 'rm -f "$log"' EXIT
field() { sed -n "s/.*\"$1\": *\([0-9.]*\).*/\1/p" "$log" | head -n 1; }
measured() { "$@" >"$log" 2>"$log.err" || { cat "$log.err" >&2; rm -f "$log.err"; exit 1; }; rm -f "$log.err"; }

printf '%-34s %12s %12s %7s %12s %12s\n' model:batch:size:mode:precision 'PyTorch/s' 'Convoy/s' ratio 'PyTorch GiB' 'Convoy GiB'
for row in "$@"; do
  IFS=: read -r model batch size _ precision <<<"$row"
  steps=100
  [ "$size" -le 64 ] || steps=30
  measured "$python" "$peer" "$row"
  theirs=$(field ms) their_peak=$(field peak_GiB)
  measured "$convoy" bench step --backend cuda --model "$model" --batch "$batch" --size "$size" --precision "$precision" \
    --steps "$steps" --warmup 5 "${tuning[@]}" --json
  ours=$(field ms) our_peak=$(field peak_device_bytes)
  awk -v r="$row" -v b="$batch" -v t="$theirs" -v o="$ours" -v tp="$their_peak" -v op="$our_peak" \
    'BEGIN {printf "%-34s %12.0f %12.0f %7.2f %12.2f %12.2f\n", r, b / t * 1e3, b / o * 1e3, t / o, tp, op / 2^30}'
done
