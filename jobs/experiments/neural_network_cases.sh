#!/usr/bin/env bash
# Trains one network in three sizes: serially, over four MPI ranks, and over MPI and CUDA. Prints a
# table with the time of a step, and with the allocations and copies that a step makes in each
# process, and writes it to OUT/neural_network_cases.md.
#
#     jobs/experiments/neural_network_cases.sh [--quick] CONVOY OUT
#
# --quick: small networks and images on the CPU, in less than a minute. Variables:
# NETWORKS ("wrn10_1 wrn10_2 wrn10_4"). BATCH (128), images of a step over all ranks. SIDE (32),
# pixels. STEPS (4), timed steps on the CPU; a GPU runs 100 times as many. RANKS (4), of MPI on the
# CPU. GPUS, ranks with a GPU each (those that nvidia-smi lists). PRECISION (bf16), on GPUs.
# Host allocations are calls such as malloc; host copies are memcpy and memmove of at least 4 KiB.
# Device allocations and copies are calls of the CUDA driver; a captured graph counts as one launch.
# A step's count is the difference of the counts of two runs, divided by their difference in steps.
# Counting needs a C compiler, and CUPTI for the device; cells that cannot be counted stay empty.
set -euo pipefail
case "${1:---help}" in -h | --help) sed -n '2,15p' "$0" | cut -c3-; exit 0 ;; esac
fail() { echo "neural_network_cases.sh: $2" >&2; exit "$1"; }
quick=no
if [ "$1" = --quick ]; then quick=yes; shift; fi
[ $# -eq 2 ] || fail 2 "expected CONVOY and OUT; see --help"
convoy=$(realpath -m -- "$1") out=$2
[ -x "$convoy" ] || fail 1 "$1: no such program"
mkdir -p "$out"
out=$(cd "$out" && pwd)
source=$(cd "$(dirname "$0")" && pwd)/count_calls.c
if [ "$quick" = yes ]; then
  networks=${NETWORKS:-lenet mlp wrn10_1} batch=${BATCH:-16} side=${SIDE:-16} steps=${STEPS:-2} gpus=${GPUS:-0}
else
  networks=${NETWORKS:-wrn10_1 wrn10_2 wrn10_4} batch=${BATCH:-128} side=${SIDE:-32} steps=${STEPS:-4}
  gpus=${GPUS:-$(nvidia-smi --list-gpus 2>/dev/null | grep -c '^GPU ' || true)}
fi
ranks=${RANKS:-4}
[ $((batch % ranks)) -eq 0 ] || fail 2 "BATCH: found $batch, expected a multiple of the $ranks ranks"
[ "$gpus" -eq 0 ] || [ $((batch % gpus)) -eq 0 ] || fail 2 "BATCH: found $batch, expected a multiple of the $gpus GPUs"

compiler=$(command -v cc || command -v gcc || true)
counter='' counts_device=no
if [ -n "$compiler" ]; then
  cuda=${CUDA_HOME:-/usr/local/cuda}
  if [ "$gpus" -gt 0 ] && "$compiler" -O2 -shared -fPIC -DCOUNT_CUDA -I"$cuda/include" -I"$cuda/extras/CUPTI/include" \
    -o "$out/count_calls.so" "$source" -L"$cuda/lib64" -L"$cuda/extras/CUPTI/lib64" -lcupti -ldl 2>"$out/log"; then
    counter=$out/count_calls.so counts_device=yes
    export LD_LIBRARY_PATH=$cuda/lib64:$cuda/extras/CUPTI/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  elif "$compiler" -O2 -shared -fPIC -o "$out/count_calls.so" "$source" -ldl 2>"$out/log"; then
    counter=$out/count_calls.so
  fi
fi
[ -n "$counter" ] || echo "neural_network_cases.sh: no C compiler: allocations and copies are not counted" >&2

# step RANKS FLAGS…: runs `bench step` of the command in the array `program`. A single rank is
# started by mpirun, too, because otherwise Open MPI starts a helper, whose calls would be counted.
step() {
  mpirun -np "$1" --bind-to none --oversubscribe "${program[@]}" bench step "${@:2}" --json
}
counts() { # RANKS STEPS FLAGS…: prints five counts of calls, each summed over the ranks
  local program=(env COUNT_CALLS="$out/counts" LD_PRELOAD="$counter" "$convoy")
  [ "$counts_device" = no ] || program=(env CUDA_INJECTION64_PATH="$counter" "${program[@]:1}")
  rm -f "$out"/counts.*
  step "$1" "${@:3}" --steps "$2" >/dev/null 2>>"$out/log"
  awk '{ for (i = 1; i <= 5; ++i) sum[i] += $i } END { for (i = 1; i <= 5; ++i) printf "%d ", sum[i] }' "$out"/counts.*
}
row() {  # arguments: NETWORK CASE RANKS STEPS FLAGS…
  local network=$1 name=$2 count=$3 length=$4 result before='' after=''
  shift 4
  local program=("$convoy")
  result=$(step "$count" --model "$network" --size "$side" --batch "$((batch / count))" --warmup 2 --steps "$length" "$@" 2>"$out/log") ||
    { cat "$out/log" >&2; exit 1; }
  if [ -n "$counter" ]; then
    before=$(counts "$count" "$length" --model "$network" --size "$side" --batch "$((batch / count))" --warmup 2 "$@")
    after=$(counts "$count" "$((2 * length))" --model "$network" --size "$side" --batch "$((batch / count))" --warmup 2 "$@")
  fi
  sed -n 's/.*"images_per_second":\([0-9.e+]*\).*"ms":\([0-9.e+-]*\).*/\1 \2/p' <<<"$result" |
    awk -v head="| $network | $name | $count |" -v before="$before" -v after="$after" -v calls="$((length * count))" \
      -v device="$counts_device" -v cuda="$([[ $name == *CUDA* ]] && echo yes || echo no)" -v key="$network" -v file="$out/serial" '
      NR == 1 {
        serial = $1
        if (head ~ /serial/) print $1 >file; else getline serial <file
        printf "%s %.3f | %.0f | %.2f |", head, $2, $1, $1 / serial
        split(before, a, " "); split(after, b, " ")
        for (i = 1; i <= 5; ++i)
          if (before == "" || (i > 2 && (device == "no" || cuda == "no"))) printf " |"
          else printf " %.4g |", (b[i] - a[i]) / calls
        print ""
      }'
}
{
  echo "| network | case | ranks | step, ms | images/s | × serial | host allocations | host copies | device allocations | device copies | launches |"
  echo "|---|---|---|---|---|---|---|---|---|---|---|"
  for network in $networks; do
    row "$network" serial 1 "$steps" --backend cpu --threads 1
    row "$network" MPI "$ranks" "$steps" --backend cpu --threads 1
    # The timed run measures kernels and stores the results in the tuning file. So the runs after
    # it, which count calls, do not measure kernels.
    [ "$gpus" -eq 0 ] || row "$network" "MPI and CUDA" "$gpus" "$((100 * steps))" --backend cuda \
      --precision "${PRECISION:-bf16}" --tuning-file "$out/tuning.json"
  done
} | tee "$out/neural_network_cases.md"
rm -f "$out"/counts.* "$out/serial" "$out/log" "$out/count_calls.so"
