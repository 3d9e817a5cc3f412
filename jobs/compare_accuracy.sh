#!/usr/bin/env bash
# Compares the test accuracy after the same recipe in Convoy and in PyTorch
# (jobs/accuracy_torch.py), on one GPU, over several seeds.
# Usage: jobs/compare_accuracy.sh DATA.h5 OUT [SEED ...]       (default seeds: 1 2 3)
# Variables: EPOCHS (20). MODERN=1 adds TrivialAugment, random erasing, mixup and averaged weights,
# and compares the accuracy of the averaged weights. CONVOY: the program (build/cuda/convoy).
# PYTHON: an interpreter with torch, torchvision and h5py (python3).
set -euo pipefail
case "${1:---help}" in -h | --help) sed -n '2,7p' "$0" | cut -c3-; exit 0 ;; esac
[ $# -ge 2 ] || { echo "compare_accuracy.sh: expected DATA.h5 and OUT; see --help" >&2; exit 2; }
[ -f "$1" ] || { echo "compare_accuracy.sh: $1: no such file, expected an HDF5 file" >&2; exit 1; }
data=$(realpath -- "$1") out=$(realpath -m -- "$2")
shift 2
[ $# -gt 0 ] || set -- 1 2 3
cd "$(dirname "$0")/.."
convoy=${CONVOY:-build/cuda/convoy} python=${PYTHON:-python3} epochs=${EPOCHS:-20}
[ -x "$convoy" ] || { echo "compare_accuracy.sh: $convoy: no such program; cmake --preset cuda && cmake --build --preset cuda" >&2; exit 1; }
mkdir -p "$out"
recipe=(--data-on-device) key=test_accuracy theirs_too=()
if [ -n "${MODERN:-}" ]; then
  recipe=(--auto-augment trivial --random-erasing 0.1 --mixup 0.2 --ema 0.999)
  key=ema_test_accuracy theirs_too=(--modern)
fi
for seed in "$@"; do
  "$convoy" train --backend cuda --precision bf16 --model resnet18_cifar --data "$data" "${recipe[@]}" --epochs "$epochs" \
    --global-batch 128 --schedule one-cycle --learning-rate 0.1 --momentum 0.9 --weight-decay 5e-4 --crop-padding 4 --flip \
    --seed "$seed" --out "$out/convoy-$seed" >"$out/convoy-$seed.log" 2>&1 || { tail -n 1 "$out/convoy-$seed.log" >&2; exit 1; }
  "$python" jobs/accuracy_torch.py "$data" "${theirs_too[@]}" --epochs "$epochs" --seed "$seed" >"$out/torch-$seed.json"
  ours=$(sed -n 's/.*"'"$key"'": *\([0-9.]*\).*/\1/p' "$out/convoy-$seed/summary.json")
  theirs=$(sed -n 's/.*"'"$key"'": *\([0-9.]*\).*/\1/p' "$out/torch-$seed.json")
  printf 'seed %s: Convoy %s PyTorch %s\n' "$seed" "$ours" "$theirs"
done
