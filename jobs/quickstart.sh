#!/usr/bin/env bash
# Goes from nothing to a trained network: installs what is missing, builds, gets images, trains.
# Usage: jobs/quickstart.sh [SET [flags of `convoy data convert`]]
# SET is an HDF5 file, or a data set that `convoy data convert` reads. Without SET the script
# downloads CIFAR-10; if that fails, it makes images of simple figures. If there are NVIDIA GPUs and
# nvcc, it builds for them and trains by jobs/recipes/cifar10.toml on one or two of them. Otherwise
# it trains a smaller network on the CPU.
set -euo pipefail
case "${1:-}" in -h | --help) sed -n '2,7p' "$0" | cut -c3-; exit 0 ;; esac
case "${1:-}" in -*) echo "quickstart.sh: unknown flag '$1'; see --help" >&2; exit 2 ;; esac
case "${2:--}" in -*) ;; *) echo "quickstart.sh: found '$2' after '$1', expected one file or folder" >&2; exit 2 ;; esac
[ -z "${1:-}" ] || [ -e "$1" ] || { echo "quickstart.sh: $1: no such file or folder" >&2; exit 1; }
given=${1:+$(realpath -- "$1")}
convert_flags=("${@:2}")
cd "$(dirname "$0")/.."
. jobs/setup.sh

# Prints the number of GPUs that the CUDA backend supports.
usable_gpus() {
  { nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null || true; } |
    awk '$1 >= 8.0 { ++n } END { print n + 0 }'
}
ranks=2 preset=release backend=() device='the CPU'
gpus=$(usable_gpus)
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null || true)
if [ "$gpus" -gt 0 ] && [ -z "$nvcc" ]; then
  echo "quickstart.sh: found a GPU, but no nvcc (CUDA Toolkit 12.4 or newer) to build for it: using the CPU"
elif [ "$gpus" -gt 0 ] && ! CUDACXX=${CUDACXX:-$nvcc} cmake --preset release-cuda; then
  echo "quickstart.sh: the build for GPUs cannot be configured, for the reason above: using the CPU"
elif [ "$gpus" -gt 0 ]; then
  preset=release-cuda backend=(--backend cuda)
  device="$(nvidia-smi --query-gpu=name --format=csv,noheader | sed -n 1p)"
  [ "$gpus" -ge 2 ] || ranks=1
fi
[ "$preset" != release ] || cmake --preset release
cmake --build --preset "$preset"
convoy=build/$preset/convoy
work=quickstart-data
mkdir -p "$work"

cifar_url=https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz
cifar_sha256=c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd

# Makes $work/cifar10.h5, or fails. The archive gets its final name only when the download is
# complete.
get_cifar() {
  local archive=$work/cifar-10-binary.tar.gz
  [ ! -e "$work/cifar10.h5" ] || return 0
  if [ ! -e "$archive" ]; then
    echo "Downloading $cifar_url (162 MiB)"
    curl -fL --progress-bar --connect-timeout 10 --max-time 900 -o "$archive.part" "$cifar_url" || return 1
    if ! echo "$cifar_sha256  $archive.part" | sha256sum --check --status; then
      echo "The download's checksum is not CIFAR-10's" >&2
      rm "$archive.part"
      return 1
    fi
    mv "$archive.part" "$archive"
  fi
  "$convoy" data convert "$archive" "$work/cifar10.h5"
}

# train MODEL [flags of convoy train]: prints the run and sets $accuracy to the test accuracy.
train() {
  local model=$1 out=$work/run-$1 start=$SECONDS
  shift
  rm -rf "$out"
  echo
  echo "== $model, $ranks ranks on $device"
  # By default Open MPI would bind each rank to one core.
  mpirun -np "$ranks" --bind-to none --oversubscribe "$convoy" train --model "$model" --data "$data" --size 32 \
    "${backend[@]}" --out "$out" --seed 1 --log-every 100 "$@"
  accuracy=$(sed -n 's/.*"test_accuracy": *\([0-9.eE+-]*\).*/\1/p' "$out/summary.json" | sed -n 1p)
  echo "$model: test accuracy $accuracy after $((SECONDS - start)) s, results in $out"
}
# The number of steps does not depend on the data, so the time of the training is known beforehand.
short=(--steps 2000 --global-batch 100 --schedule one-cycle)

synthetic=no
if [ -n "$given" ] && [ -f "$given" ] && [ "$(head -c 4 "$given" | tail -c 3)" = HDF ]; then
  data=$given
elif [ -n "$given" ]; then
  data=$work/images.h5
  "$convoy" data convert "$given" "$data" --size 32 "${convert_flags[@]}"
elif get_cifar; then
  data=$work/cifar10.h5
else
  echo "CIFAR-10 cannot be had here: drawing a set of figures instead"
  data=$work/synthetic.h5 synthetic=yes
  [ -e "$data" ] || "$convoy" data synth "$data" --classes 10 --size 32 --train 20000 --test 2000 --seed 1
fi
"$convoy" data info "$data"

if [ "$synthetic" = yes ]; then
  train linear "${short[@]}" --learning-rate 0.001
  linear_accuracy=$accuracy
fi
network=cifar10_quick
if [ "$preset" = release-cuda ]; then
  network=resnet18_cifar
  train "$network" --config jobs/recipes/cifar10.toml --precision bf16
else
  train "$network" "${short[@]}" --learning-rate 0.02 --weight-decay 5e-4 --flip
fi
echo
[ "$synthetic" = no ] || echo "Test accuracy of a linear model:  $linear_accuracy"
echo "Test accuracy of $network:   $accuracy"
echo "Trained on $device, $ranks ranks, by $convoy"
