#!/usr/bin/env bash
# Trains the four networks of GLP4NN with their operations one at a time, sample by sample on
# streams as in GLP4NN, on as many lanes (streams) as GLP4NN's model gives, on three lanes, and on
# those of `--lanes auto`. Writes a table of rates to OUT/glp4nn.md. A CPU runs only the first way.
#
#     jobs/experiments/glp4nn.sh [--quick] CONVOY OUT
#
# --quick: small batches on the CPU, in less than a minute.
# Variables: NETWORKS, rows NAME:MODEL:BATCH:PIXELS:NOTE. PRECISION (bf16). ROUNDS (3). BACKEND, cpu
# or cuda (cuda if nvidia-smi lists a GPU).
# Paper: Fu, Tang, He, Yu and Sun, "GLP4NN: A Convergence-invariant and Network-agnostic
# Light-weight Parallelization Framework for Deep Neural Networks on Modern GPUs", ICPP 2018. It
# reports up to 4 times the speed of Caffe, which launches one operation at a time. Batches of
# CIFAR10-quick and Siamese are those of the authors' repository Hao-Tju/GLP4NN_Caffe.
set -euo pipefail
case "${1:---help}" in -h | --help) sed -n '2,14p' "$0" | cut -c3-; exit 0 ;; esac
fail() { echo "glp4nn.sh: $2" >&2; exit "$1"; }
quick=no
if [ "$1" = --quick ]; then quick=yes; shift; fi
[ $# -eq 2 ] || fail 2 "expected CONVOY and OUT; see --help"
convoy=$1 out=$2
[ -x "$convoy" ] || fail 1 "$convoy: no such program"
mkdir -p "$out"
if [ "$quick" = no ] && nvidia-smi --list-gpus 2>/dev/null | grep '^GPU ' >/dev/null; then backend=${BACKEND:-cuda}; else backend=${BACKEND:-cpu}; fi
networks=${NETWORKS:-"CIFAR10-quick:cifar10_quick:100:32:the same layers
Siamese:lenet:128:28:a LeNet with 32 and 64 filters instead of 20 and 50; both images of 64 pairs as one batch
CaffeNet:alexnet:256:224:AlexNet in one column, without groups and response normalisation
GoogLeNet:googlenet:32:224:with batch norm, without auxiliary classifiers"}
if [ "$quick" = yes ]; then
  networks=$(sed -E 's/:[0-9]+:(28|32):/:4:\1:/; s/:[0-9]+:224:/:1:224:/' <<<"$networks")
fi

value() { sed -n "s/.*\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p"; }  # KEY: prints its value in the JSON objects on standard input
rate_of() { # SCHEDULE ROWS: images/s of the schedule's row
  grep -F "\"schedule\":\"$1\"" <<<"$2" | value images_per_second
}
{
  if [ "$backend" = cuda ]; then
    echo "| network | of the zoo | pixels, batch | one by one | GLP4NN's streams | GLP4NN's model | fixed, 3 lanes | auto | auto to one by one | auto to GLP4NN's model | difference |"
    echo "|---|---|---|---|---|---|---|---|---|---|---|"
  else
    echo "| network | of the zoo | pixels, batch | CPU, images/s | difference |"
    echo "|---|---|---|---|---|"
  fi
} | tee "$out/glp4nn.md"
while IFS=: read -r name model batch pixels note; do
  if [ "$backend" = cuda ]; then
    rows=$("$convoy" bench concurrency --model "$model" --batch "$batch" --size "$pixels" --precision "${PRECISION:-bf16}" \
      --rounds "${ROUNDS:-3}" --json)
    awk -v head="| $name | $model | $pixels, $batch |" -v note="$note" -v one="$(rate_of "one by one" "$rows")" \
      -v streams="$(rate_of "GLP4NN's streams" "$rows")" -v model="$(rate_of "GLP4NN's model" "$rows")" \
      -v fixed="$(rate_of "fixed, 3 lanes" "$rows")" -v auto="$(rate_of auto "$rows")" 'BEGIN {
        printf "%s %.0f | %.0f | %.0f | %.0f | %.0f | %.2f | %.2f | %s |\n", head, one, streams, model, fixed, auto, auto / one, auto / model, note
      }'
  else
    rate=$("$convoy" bench step --model "$model" --batch "$batch" --size "$pixels" --steps "$([ "$quick" = yes ] && echo 2 || echo 5)" \
      --warmup 1 --json | value images_per_second)
    printf '| %s | %s | %s, %s | %.1f | %s |\n' "$name" "$model" "$pixels" "$batch" "$rate" "$note"
  fi
done <<<"$networks" | tee -a "$out/glp4nn.md"
[ "$backend" = cuda ] || echo "glp4nn.sh: without a GPU operations run one after the other: only rates are shown" >&2
