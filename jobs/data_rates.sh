#!/usr/bin/env bash
# Compares the rates of training on stored images in several formats with the rate of training on
# synthetic images.
# Usage: jobs/data_rates.sh OUT [MODEL:BATCH ...]
#   OUT    a folder for the images, the stores and the logs; existing stores are used again
# Default: resnet50:256. Variables: IMAGES, the number of photographs to make (8192). STEPS of each
# run (150). RANKS, the number of GPUs (1). PYTHON, an interpreter with Pillow and numpy (python3).
# CONVOY, the program (build/cuda/convoy).
set -euo pipefail
case "${1:---help}" in -h | --help) sed -n '2,8p' "$0" | cut -c3-; exit 0 ;; esac
out=$(realpath -m -- "$1")
shift
[ $# -gt 0 ] || set -- resnet50:256
cd "$(dirname "$0")/.."
convoy=$(realpath -- "${CONVOY:-build/cuda/convoy}") python=${PYTHON:-python3}
[ -x "$convoy" ] || { echo "data_rates.sh: $convoy: no such program; cmake --preset cuda && cmake --build --preset cuda" >&2; exit 1; }
images=${IMAGES:-8192} steps=${STEPS:-150} ranks=${RANKS:-1}
mkdir -p "$out"
[ -d "$out/photos" ] || "$convoy" data photographs "$out/photos" --train "$images" --test 256 --width 500 --height 375 --quality 96 --classes 16 >"$out/photos.log"
convert() { # STORE FLAGS…
  [ -f "$out/$1.h5" ] || "$convoy" data convert "$out/photos" "$out/$1.h5" "${@:2}" >"$out/convert-$1.log"
}
convert raw256 --encode raw --size 256
convert jpeg256 --encode jpeg:90 --short-side 256
convert photos --encode seekable
convert kept --encode keep
printf '%-14s %-10s %10s %8s %10s %12s\n' network data images/s ratio step/ms waiting
for row in "$@"; do
  model=${row%:*} batch=${row#*:}
  for data in synthetic raw256 jpeg256 photos kept synthetic; do
    flags=(--data "$out/$data.h5" --random-resized-crop --flip)
    [ "$data" != synthetic ] || flags=(--data synthetic --classes 1000)
    name=$model-$data
    rm -rf "${out:?}/$name"
    mpirun -np "$ranks" --bind-to none "$convoy" train --backend cuda --precision bf16 --model "$model" "${flags[@]}" \
      --out "$out/$name" --size 224 --global-batch $((batch * ranks)) --steps "$steps" --learning-rate 0.01 --eval-every 0 --limit-test 256 \
      --checkpoint-every-epochs 0 >"$out/$name.log" 2>&1 ||
      { grep -a "^convoy" "$out/$name.log" >&2; exit 1; }
    "$python" - "$out/$name/summary.json" "$model:$batch" "$data" "$out/base" <<'PY'
import json, pathlib, sys
summary, base = json.load(open(sys.argv[1])), pathlib.Path(sys.argv[4])
rate = summary["images_per_second"]
if sys.argv[3] == "synthetic":
    base.write_text(str(rate))
print(f"{sys.argv[2]:<14} {sys.argv[3]:<10} {rate:>10.0f} {rate / float(base.read_text()):>8.3f} {summary['step_ms_median']:>10.2f} "
      f"{100 * summary['data_wait_ms'] / summary['step_ms_median']:>11.1f}%")
PY
  done
done
