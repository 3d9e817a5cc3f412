#!/usr/bin/env bash
# Installs what is missing, builds and runs the tests. With a CUDA Toolkit it also builds for GPUs,
# and with a GPU it runs the tests for GPUs.
# Usage: jobs/test.sh [CTest options], such as -L fast (two minutes of tests) or -R partition
# CONVOY_TEST_DATA: a folder with graphs/ and cifar10-images.tar.xz for the tests that need them.
set -euo pipefail
cd "$(dirname "$0")/.."
case "${1:-}" in -h | --help) sed -n '2,5p' "$0" | cut -c3-; exit 0 ;; esac
for_tests=yes
. jobs/setup.sh
data=(${CONVOY_TEST_DATA:+"-DCONVOY_TEST_DATA=$CONVOY_TEST_DATA"})
cmake --preset cpu "${data[@]}"
cmake --build --preset cpu
# Run one more test than there are cores, because tests that start ranks wait half of the time.
ctest --preset cpu -j $(($(nproc) + 1)) "$@"
if [ -n "$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)" ]; then
  CUDACXX=${CUDACXX:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)} cmake --preset cuda "${data[@]}"
  # Keep the output of the build: ptxas prints a C75xx message if it cannot issue wgmma instructions
  # back to back, which may halve their rate.
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  cmake --build --preset cuda 2>&1 | tee "$log"
  if grep -E '\(C75[0-9]{2}\)' "$log" | sort -u >&2; then
    echo "test.sh: the kernels named above lose speed" >&2
    # Remove the kernels, because the next build would not compile them again and so report nothing.
    cmake --build --preset cuda --target clean
    exit 1
  fi
  if nvidia-smi --list-gpus 2>/dev/null | grep '^GPU ' >/dev/null; then
    ctest --preset cuda -L gpu "$@"
  fi
else
  echo "No nvcc here: the CUDA backend was not built."
fi
