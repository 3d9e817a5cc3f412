#!/usr/bin/env bash
# The gpu tests under compute-sanitizer: bad memory accesses (memcheck) and races in shared memory (racecheck).
# Usage: jobs/sanitize_gpu.sh OUT [PROGRAM ...]
#   PROGRAM  default: build/cuda/tests/kernels_gpu_tests and app_gpu_tests; each is run in SHARDS (8) pieces at a time
# TOOLS: memcheck racecheck. FILTER: of the tests; the one that counts runtime calls is left out, as the sanitizer makes its own.
# One line a piece with what the sanitizer says; logs in OUT. Exit status 1 where it found something or a test failed.
set -euo pipefail
case "${1:---help}" in -h | --help) sed -n '2,6p' "$0" | cut -c3-; exit 0 ;; esac
case $1 in -*) echo "sanitize_gpu.sh: found '$1', expected a folder for the logs; see --help" >&2; exit 2 ;; esac
mkdir -p "$1"
out=$(realpath "$1")
shift
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- build/cuda/tests/kernels_gpu_tests build/cuda/tests/app_gpu_tests
command -v compute-sanitizer >/dev/null || { echo "sanitize_gpu.sh: no compute-sanitizer on the PATH: it is part of the CUDA Toolkit" >&2; exit 1; }
shards=${SHARDS:-8} status=0
for program in "$@"; do [ -x "$program" ] || { echo "sanitize_gpu.sh: $program: no such program; build the preset cuda" >&2; exit 1; }; done

for tool in ${TOOLS:-memcheck racecheck}; do
  for program in "$@"; do
    name=$(basename "$program")
    pieces=()
    for ((shard = 0; shard < shards; ++shard)); do
      GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$shard compute-sanitizer --tool "$tool" --error-exitcode 9 "$program" \
        --gtest_filter="${FILTER:-*-*AStepIsOneLaunch*}" >"$out/$name-$tool-$shard.log" 2>&1 &
      pieces+=($!)
    done
    for ((shard = 0; shard < shards; ++shard)); do
      piece=0
      wait "${pieces[shard]}" || piece=$?
      [ "$piece" -eq 0 ] || status=1
      summary=$(grep -hE '^=+ (ERROR|RACECHECK) SUMMARY' "$out/$name-$tool-$shard.log" | sed 's/^=* //' || echo "no summary")
      passed=$(grep -c '^\[       OK' "$out/$name-$tool-$shard.log" || true)
      echo "$name $tool, piece $shard: status $piece, $passed tests passed, $summary"
    done
  done
done
exit "$status"
