#!/usr/bin/env bash
# Runs the GPU tests under compute-sanitizer, which finds bad memory accesses (memcheck) and races
# in shared memory (racecheck).
# Usage: jobs/sanitize_gpu.sh OUT [PROGRAM ...]
#   PROGRAM  default: build/cuda/tests/app_gpu_tests, kernels_gpu_tests and kernels_tests; with at
#            least RANKS (2) GPUs also comm_mpi_tests and app_mpi_tests. Each test is one process,
#            or RANKS processes, and JOBS (8) tests run at a time
# Variables: TOOLS (memcheck racecheck). FILTER, a filter of the tests. By default these are left
# out: tests that count runtime calls (the sanitizer makes calls, too), the test that measures time,
# and tests that do not call CUDA. Racecheck is slow, so it checks fewer shapes (tests/brief.h) and
# skips cuBLAS. With several ranks two false alarms are turned off: NCCL's kernels read words of
# four bytes where fewer were allocated, and its CUDA calls return errors while it looks for kernels
# for the GPU.
# Prints one line per tool and program with the findings, and one per test that failed; the logs are
# in OUT. The exit status is 1 if there was a finding or a failure.
set -euo pipefail
case "${1:---help}" in -h | --help) sed -n '2,15p' "$0" | cut -c3-; exit 0 ;; esac
case $1 in -*) echo "sanitize_gpu.sh: found '$1', expected a folder for the logs; see --help" >&2; exit 2 ;; esac
mkdir -p "$1"
out=$(realpath "$1")
shift
cd "$(dirname "$0")/.."
ranks=${RANKS:-2}
if [ $# -eq 0 ]; then
  set -- build/cuda/tests/{app_gpu,kernels_gpu,kernels}_tests
  [ "$(nvidia-smi --list-gpus 2>/dev/null | grep -c '^GPU ')" -lt "$ranks" ] || set -- "$@" build/cuda/tests/{comm,app}_mpi_tests
fi
command -v compute-sanitizer >/dev/null || { echo "sanitize_gpu.sh: no compute-sanitizer on the PATH: it is part of the CUDA Toolkit" >&2; exit 1; }
for program in "$@"; do [ -x "$program" ] || { echo "sanitize_gpu.sh: $program: no such program; build the preset cuda" >&2; exit 1; }; done
read -ra tools <<<"${TOOLS:-memcheck racecheck}"
export OMP_NUM_THREADS=1  # the processes share the cores, so each gets one thread

tests_of() {
  local all='*-*AStepIsOneLaunch*'
  case $1 in *_mpi_tests) all='*Nccl*:*Cuda*-*TakesAsLong*:*AStepIsOneLaunch*' ;; esac
  "$1" --gtest_filter="${FILTER:-$all}" --gtest_list_tests | awk '/^[^ ]/ { suite = $1 } /^ / { print suite $1 }'
}
# shellcheck disable=SC2317  # called by xargs
log_of() { echo "$out/$(basename "$2")-$1-$(tr / _ <<<"$3").log"; }
# shellcheck disable=SC2317
run_one() {
  local log status=0 command=(compute-sanitizer --tool "$1" --error-exitcode 9)
  log=$(log_of "$@")
  [ "$1" != racecheck ] || export CONVOY_BRIEF_TESTS=1
  if [[ $2 == *_mpi_tests ]]; then
    command=(mpirun -np "$ranks" --oversubscribe --bind-to none "${command[@]}" --kernel-name-exclude kernel_substring=nccl)
    [ "$1" != memcheck ] || command+=(--report-api-errors no)
  fi
  "${command[@]}" "$2" --gtest_color=no --gtest_filter="$3" >"$log" 2>&1 || status=$?
  # The sanitizer prints this for a test that does not call CUDA. Such a test does not count.
  if grep -q "terminated before first instrumented API call" "$log" && grep -q '^\[  PASSED  \] 1 test' "$log"; then
    rm "$log"
    return
  fi
  [ "$status" -eq 0 ] || echo "$(basename "$2") $1, $3: status $status"
}
export -f run_one log_of
export out ranks
for program in "$@"; do
  for tool in "${tools[@]}"; do
    [ "$tool" = racecheck ] && not_ours='/cublas$' || not_ours='^$'
    tests_of "$program" | { grep -v "$not_ours" || true; } | sed "s|^|$tool $program |"
  done
done >"$out/queue"
xargs -P "${JOBS:-8}" -L 1 bash -c 'run_one "$@"' run_one <"$out/queue" | tee "$out/failed"

with_line() { { grep -lE "$@" || true; } | wc -l; }
status=0
[ ! -s "$out/failed" ] || status=1
for program in "$@"; do
  for tool in "${tools[@]}"; do
    name=$(basename "$program")
    mapfile -t logs < <(compgen -G "$out/$name-$tool-*.log")
    [ "${#logs[@]}" -gt 0 ] || { echo "$name $tool: no test"; status=1; continue; }
    clean=$(with_line '^=+ (ERROR SUMMARY: 0 errors|RACECHECK SUMMARY: 0 hazards)' "${logs[@]}")
    passed=$(with_line '^\[  PASSED  \] 1 test' "${logs[@]}")
    echo "$name $tool: ${#logs[@]} tests, $passed passed, $clean without a report"
    [ "$clean" -eq "${#logs[@]}" ] || status=1
  done
done
exit "$status"
