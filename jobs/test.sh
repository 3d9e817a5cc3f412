#!/usr/bin/env bash
# Installs what is missing, builds, runs the tests. Usage: jobs/test.sh [CTest options]
set -euo pipefail
cd "$(dirname "$0")/.."
case "${1:-}" in -h | --help) sed -n '2p' "$0" | cut -c3-; exit 0 ;; esac
for_tests=yes
. jobs/setup.sh
cmake --preset cpu
cmake --build --preset cpu
ctest --preset cpu "$@"
if [ -n "$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)" ]; then
  CUDACXX=${CUDACXX:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)} cmake --preset cuda
  cmake --build --preset cuda
else
  echo "No nvcc here: the CUDA backend was not built."
fi
