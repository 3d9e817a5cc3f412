#!/usr/bin/env bash
# Measures how much the sums of gradients slow a training step on several GPUs of one host. The sums
# are done by the GPUs' copy engines, by NCCL, or by NCCL with a limit on its thread blocks, each of
# which occupies a multiprocessor. Prints a table of step times; writes it to OUT/nccl_blocks.md.
#
#     jobs/experiments/nccl_blocks.sh CONVOY OUT
#
# In the rows of NCCL every rank sees only its own GPU. So copy engines cannot reach the other GPUs,
# and NCCL sums. NCCL's kernels have the highest priority in all rows.
# Variables: RANKS (2), MODEL (resnet50), BATCH (256) of a rank, SIZE (224), LIMITS ("16 8 4 2") of
# NCCL_MAX_CTAS. ROUNDS (3), each with every row once. STEPS (60) of a row. BACKEND (cuda); cpu only
# shows that the script works.
set -euo pipefail
case "${1:---help}" in -h | --help) sed -n '2,12p' "$0" | cut -c3-; exit 0 ;; esac
[ $# -eq 2 ] || { echo "nccl_blocks.sh: expected CONVOY and OUT; see --help" >&2; exit 2; }
convoy=$(realpath -m -- "$1") out=$(realpath -m -- "$2")
[ -x "$convoy" ] || { echo "nccl_blocks.sh: $1: no such program" >&2; exit 1; }
mkdir -p "$out"
ranks=${RANKS:-2} steps=${STEPS:-60}
flags=(--backend cuda --precision bf16)
[ "${BACKEND:-cuda}" = cuda ] || flags=(--backend "$BACKEND" --threads 1)

step() { # COMMAND...: prints the milliseconds of a step, and how many of them it waits for other ranks
  mpirun -np "$ranks" --oversubscribe --bind-to none "$@" "$convoy" bench step "${flags[@]}" --model "${MODEL:-resnet50}" \
    --size "${SIZE:-224}" --batch "${BATCH:-256}" --steps "$steps" --warmup "$((steps / 6))" --json >"$out/step" 2>"$out/errors" ||
    { cat "$out/errors" >&2; exit 1; }
  sed -n 's/.*"ms":\([0-9.e+-]*\).*/\1/p' "$out/step" | tr '\n' ' '
  sed -n 's/.*"exposed_comm_ms":\([0-9.e+-]*\).*/\1/p' "$out/step"
}
# Hides the GPUs of other ranks, so that copy engines cannot sum.
# shellcheck disable=SC2016  # expanded by each rank
alone=(sh -c 'export CUDA_VISIBLE_DEVICES=$OMPI_COMM_WORLD_LOCAL_RANK; exec "$@"' sh)
: >"$out/times"
for _ in $(seq "${ROUNDS:-3}"); do
  row=$(step) || exit 1
  echo "copies $row" >>"$out/times"
  row=$(step "${alone[@]}") || exit 1
  echo "nccl $row" >>"$out/times"
  for limit in ${LIMITS:-16 8 4 2}; do
    row=$(NCCL_MAX_CTAS=$limit step -x NCCL_MAX_CTAS "${alone[@]}") || exit 1
    echo "$limit $row" >>"$out/times"
  done
done
# Prints the medians of the rounds of every row, and the ratio to the first row.
awk -v order="copies nccl ${LIMITS:-16 8 4 2}" '
  function median(all,   list, n, i, j, t) {
    n = split(all, list, " ")
    for (i = 2; i <= n; ++i) for (j = i; j > 1 && list[j] + 0 < list[j - 1] + 0; --j) { t = list[j]; list[j] = list[j - 1]; list[j - 1] = t }
    return list[int((n + 1) / 2)]
  }
  { times[$1] = times[$1] " " $2; waits[$1] = waits[$1] " " $3 }
  END {
    print "| gradients are summed by | step, ms | of the first row | waiting for other ranks, ms |"
    print "|---|---|---|---|"
    name["copies"] = "copy engines"; name["nccl"] = "NCCL"
    n = split(order, rows, " ")
    for (r = 1; r <= n; ++r) {
      row = rows[r]; ms = median(times[row])
      printf "| %s | %.2f | %.3f | %.2f |\n", row in name ? name[row] : "NCCL, at most " row " blocks", ms, ms / median(times["copies"]), median(waits[row])
    }
  }' "$out/times" | tee "$out/nccl_blocks.md"
rm -f "$out/step" "$out/errors"
