#!/usr/bin/env bash
# Fuzzes the readers of users' files with libFuzzer, the address and the UB sanitizer.
# Usage: jobs/fuzz.sh TARGET [RUNS]
#   TARGET  image, store, archive, webdataset, csv, records, devkit, convert, safetensors or onnx:
#           tests/fuzz/targets.h describes them
#   RUNS    number of inputs; default: 1000000
# Inputs that fail are written to build/fuzz/TARGET. To run one again:
#   build/fuzz/tests/data_fuzz TARGET FILE        (onnx: model_fuzz)
# Needs clang: apt-get install clang libclang-rt-14-dev libomp-dev
set -euo pipefail
case "${1:---help}" in -h | --help) sed -n '2,9p' "$0" | cut -c3-; exit 0 ;; esac
case $1 in -*) echo "fuzz.sh: found '$1', expected a target; see --help" >&2; exit 2 ;; esac
command -v clang++ >/dev/null || { echo "fuzz.sh: no clang++ on the PATH: apt-get install clang libclang-rt-14-dev libomp-dev" >&2; exit 1; }
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
cmake --preset fuzz >/dev/null
program=data_fuzz
[ "$1" != onnx ] || program=model_fuzz
cmake --build --preset fuzz --target "$program"
mkdir -p "build/fuzz/$1"
# HDF5 leaks some memory for damaged files, so ignore these leaks.
export LSAN_OPTIONS="print_suppressions=0:suppressions=$root/tests/lsan.supp"
exec "build/fuzz/tests/$program" "$1" "build/fuzz/$1/inputs" -runs="${2:-1000000}" -max_len=8000 -timeout=20 -report_slow_units=20 -detect_leaks=0 -rss_limit_mb=1024 \
  -artifact_prefix="build/fuzz/$1/"
