#!/usr/bin/env bash
# Measures training steps with less memory. For each network `convoy bench memory` times steps under
# several limits, and the methods of other systems. Writes OUT/MODEL.jsonl, the rows, and
# OUT/memory.md, a table of times relative to the step without a limit. Takes 6 minutes on one GPU.
#
#     jobs/experiments/memory.sh CONVOY OUT
#
# Variables: MODELS, pairs of network and batch ("resnet50:256 …", six in all). STEPS, timed steps
# of a row (8). FLAGS, flags of every row ("--backend cuda --precision bf16").
set -euo pipefail
case "${1:---help}" in -h | --help) sed -n '2,9p' "$0" | cut -c3-; exit 0 ;; esac
[ $# -eq 2 ] || { echo "memory.sh: expected CONVOY and OUT; see --help" >&2; exit 2; }
convoy=$1 out=$2
[ -x "$convoy" ] || { echo "memory.sh: $convoy: no such program" >&2; exit 1; }
mkdir -p "$out"
models=${MODELS:-resnet50:256 resnet152:128 vgg16:256 googlenet:256 densenet121:128 wrn28_10:256}
read -ra flags <<< "${FLAGS:---backend cuda --precision bf16}"

value() { grep -o "\"$1\":[^,}]*" <<< "$2" | cut -d: -f2- | tr -d '"'; }

{
  echo "| network, batch | method | memory, MiB | of all | recomputed | slices | expected | measured | images/s |"
  echo "|---|---|---|---|---|---|---|---|---|"
} | tee "$out/memory.md"
for each in $models; do
  model=${each%:*} batch=${each#*:}
  "$convoy" bench memory --model "$model" --batch "$batch" "${flags[@]}" --steps "${STEPS:-8}" --warmup 3 --json \
    > "$out/$model.jsonl"
  while read -r row; do
    printf '| %s b%s | %s | %.0f | %.2f | %s | %s | %+.1f %% | %+.1f %% | %.0f |\n' "$model" "$batch" \
      "$(value method "$row")" "$(($(value bytes "$row") / 1048576))" "$(value share "$row")" \
      "$(value recomputed "$row")" "$(value slices "$row")" "$(value expected_percent "$row")" \
      "$(value measured_percent "$row")" "$(value images_per_second "$row")"
  done < "$out/$model.jsonl" | tee -a "$out/memory.md"
done

{
  echo
  echo "| network | within | largest batch at 224 pixels (32 for wrn28_10) | largest side at batch 4 |"
  echo "|---|---|---|---|"
} | tee -a "$out/memory.md"
running=()
for each in $models; do
  "$convoy" info --model "${each%:*}" --batch 4 --memory "${flags[@]}" --within 8GiB,16GiB,24GiB,40GiB,80GiB --json \
    > "$out/${each%:*}.within.jsonl" &
  running+=($!)
done
for pid in "${running[@]}"; do wait "$pid"; done
for each in $models; do
  while read -r row; do
    echo "| ${each%:*} | $(($(value bytes "$row") / 1073741824)) GiB | $(value largest_batch "$row") | $(value largest_size "$row") |"
  done < "$out/${each%:*}.within.jsonl"
done | tee -a "$out/memory.md"
