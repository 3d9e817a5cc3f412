#!/usr/bin/env bash
# Installs what is missing, builds, runs the tests; with a CUDA Toolkit builds for GPUs too, and with a GPU runs its tests.
# Usage: jobs/test.sh [CTest options]
set -euo pipefail
cd "$(dirname "$0")/.."
case "${1:-}" in -h | --help) sed -n '2,3p' "$0" | cut -c3-; exit 0 ;; esac
for_tests=yes
. jobs/setup.sh
cmake --preset cpu
cmake --build --preset cpu
ctest --preset cpu "$@"
if [ -n "$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)" ]; then
  CUDACXX=${CUDACXX:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)} cmake --preset cuda
  # What ptxas says where it cannot keep wgmma instructions behind one another, which costs up to half of their rate.
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  cmake --build --preset cuda 2>&1 | tee "$log"
  if grep -E '\(C75[0-9]{2}\)' "$log" | sort -u >&2; then
    echo "test.sh: the kernels named above lose speed" >&2
    cmake --build --preset cuda --target clean  # or the next build would not compile them, and say nothing
    exit 1
  fi
  if nvidia-smi --list-gpus 2>/dev/null | grep -q '^GPU '; then
    ctest --preset cuda -L gpu "$@"
  fi
else
  echo "No nvcc here: the CUDA backend was not built."
fi
