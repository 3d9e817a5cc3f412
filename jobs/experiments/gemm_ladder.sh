#!/usr/bin/env bash
# Times one matrix product in several implementations, from plain loops to tuned kernels, on the CPU
# and, if there is one, on the GPU. Prints the table and writes it to OUT/gemm_ladder.md.
#
#     jobs/experiments/gemm_ladder.sh [--quick] CONVOY OUT
#
# The product is the forward pass of a linear layer, [M, K] times [N, K] transposed. On the CPU it
# is timed in training steps of the network `linear`: in plain loops (backend reference), by one
# thread and by all. On the GPU `convoy bench gemm` checks and times each implementation.
# --quick: a small product on the CPU, in less than a minute. Variables: M, N (1024 each), rows of
# the product and of the weights. SIDE (32): K is 3 SIDE SIDE. BACKEND: cpu leaves out the GPU.
# MILLISECONDS (5), the length of one sample. A time on the GPU comes from five samples.
set -euo pipefail
case "${1:---help}" in -h | --help) sed -n '2,12p' "$0" | cut -c3-; exit 0 ;; esac
fail() { echo "gemm_ladder.sh: $2" >&2; exit "$1"; }
quick=no
if [ "$1" = --quick ]; then quick=yes; shift; fi
[ $# -eq 2 ] || fail 2 "expected CONVOY and OUT; see --help"
convoy=$1 out=$2
[ -x "$convoy" ] || fail 1 "$convoy: no such program"
mkdir -p "$out"
if [ "$quick" = yes ]; then m=${M:-64} n=${N:-64} side=${SIDE:-16}; else m=${M:-1024} n=${N:-1024} side=${SIDE:-32}; fi
k=$((3 * side * side))
gpu=no
if [ "$quick" = no ] && [ "${BACKEND:-}" != cpu ] && nvidia-smi --list-gpus 2>/dev/null | grep '^GPU ' >/dev/null; then gpu=yes; fi

value() { sed -n "s/.*\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p"; }  # KEY: prints its value in the JSON objects on standard input
first=''  # microseconds of the plain loops
row() { # DEVICE PRECISION RUNG MICROSECONDS CUBLAS: prints a row; CUBLAS is the time of cuBLAS divided by MICROSECONDS
  first=${first:-$4}
  awk -v head="| $1 | $2 | $3 |" -v us="$4" -v first="$first" -v operations="$((2 * m * n * k))" -v cublas="$5" 'BEGIN {
    printf "%s %.1f | %.1f | %.1f | %s |\n", head, us, operations / us * 1e-3, first / us, cublas == "" ? "" : sprintf("%.3f", cublas)
  }'
}
on_cpu() {  # arguments: RUNG BACKEND [FLAGS…]
  local us
  us=$("$convoy" bench step --model linear --classes "$n" --batch "$m" --size "$side" --backend "${@:2}" --steps 2 \
    --warmup 1 --layers --json | grep -F '"op":"linear_forward"' | value ms | awk '{ print 1e3 * $1 }')
  row CPU fp32 "$1" "$us" ""
}
{
  echo "Product ${m}x${n}x$k:"
  echo
  echo "| device | precision | rung | µs | GFLOP/s | × plain loops | × cuBLAS |"
  echo "|---|---|---|---|---|---|---|"
  on_cpu "plain loops" reference --threads 1
  on_cpu "oneDNN, one thread" cpu --threads 1
  on_cpu "oneDNN, all cores" cpu
  if [ "$gpu" = yes ]; then
    "$convoy" bench gemm --shape "${m}x${n}x$k" --precision fp32,tf32,bf16 --milliseconds "${MILLISECONDS:-5}" --json >"$out/gemm.jsonl"
    while read -r line; do
      row GPU "$(value math <<<"$line")" "$(value rung <<<"$line")" "$(value microseconds <<<"$line")" "$(value of_cublas <<<"$line")"
    done <"$out/gemm.jsonl"
  fi
} | tee "$out/gemm_ladder.md"
