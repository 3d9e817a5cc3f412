#!/usr/bin/env bash
# Compares the rates of training steps in Convoy and in PyTorch, which use one GPU alternately.
# Usage: jobs/compare_gpu.sh PEER [MODEL:BATCH:SIZE:MODE,…:PRECISION ...]
#   PEER  a Python program that is called as PEER MODEL:BATCH:SIZE:MODE,…:PRECISION and prints one
#         JSON object per mode, with mode, ms and peak_GiB. MODE: eager, graph (one CUDA graph per
#         step) or compile (torch.compile); the fastest mode counts
# Variables: CONVOY, the program to measure (build/cuda/convoy). TUNING, its tuning file (none).
# PYTHON, the interpreter (python3).
set -euo pipefail
case "${1:---help}" in -h | --help) sed -n '2,8p' "$0" | cut -c3-; exit 0 ;; esac
[ -f "$1" ] || { echo "compare_gpu.sh: $1: no such file, expected a Python program; see --help" >&2; exit 2; }
peer=$(realpath -- "$1")
shift
if [ $# -eq 0 ]; then
  for row in resnet50:256:224:bf16 resnet50:32:224:bf16 resnet50:256:224:tf32 googlenet:32:224:bf16 wrn28_10:128:32:bf16 \
    resnet18:128:32:bf16 lenet:128:32:bf16 alexnet:256:224:bf16 vgg16:128:224:bf16; do
    set -- "$@" "${row%:*}:eager,graph,compile:${row##*:}"
  done
fi
cd "$(dirname "$0")/.."
convoy=${CONVOY:-build/cuda/convoy} python=${PYTHON:-python3}
tuning=(${TUNING:+--tuning-file "$TUNING"})
[ -x "$convoy" ] || { echo "compare_gpu.sh: $convoy: no such program; cmake --preset cuda && cmake --build --preset cuda" >&2; exit 1; }

log=$(mktemp)
trap 'rm -f "$log"' EXIT
fields() {  # KEY…: prints these values of the JSON object with the least "ms" in the log
  "$python" -c '
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1]) if line.startswith("{")]
print(*(min(rows, key=lambda row: row["ms"])[key] for key in sys.argv[2:]))' "$log" "$@"
}
measured() { "$@" >"$log" 2>"$log.err" || { cat "$log.err" >&2; rm -f "$log.err"; exit 1; }; rm -f "$log.err"; }

printf '%-28s %12s %8s %12s %7s %12s %12s\n' model:batch:size:precision 'PyTorch/s' mode 'Convoy/s' ratio 'PyTorch GiB' 'Convoy GiB'
for row in "$@"; do
  IFS=: read -r model batch size _ precision <<<"$row"
  measured "$python" "$peer" "$row"
  read -r theirs mode their_peak < <(fields ms mode peak_GiB)
  # Time as many steps as PyTorch does, because a GPU's clocks fall within the first seconds.
  measured "$convoy" bench step --backend cuda --model "$model" --batch "$batch" --size "$size" --precision "$precision" \
    --steps 100 --warmup 8 "${tuning[@]}" --json
  read -r ours our_peak < <(fields ms peak_device_bytes)
  awk -v r="$model:$batch:$size:$precision" -v b="$batch" -v m="$mode" -v t="$theirs" -v o="$ours" -v tp="$their_peak" -v op="$our_peak" \
    'BEGIN {printf "%-28s %12.0f %8s %12.0f %7.2f %12.2f %12.2f\n", r, b / t * 1e3, m, b / o * 1e3, t / o, tp, op / 2^30}'
done
