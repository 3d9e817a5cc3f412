#!/usr/bin/env bash
# Trains a network in several widths on one GPU: first all widths as the members of one run, then
# each width in a run of its own. Prints a Markdown table of times. Fails unless, for every width,
# both trainings end with exactly the same parameters.
#
#     jobs/compare_shapes.sh CONVOY DATA.h5 OUT
#
# Variables: WIDTHS ("1 2 4 8"). MODEL, a network with a width (wrn16_1). STEPS (1000). BATCH (128).
# BACKEND (cuda). PRECISION (bf16; fp32 with BACKEND=cpu). FLAGS, more flags of convoy train.
set -euo pipefail
case "${1:---help}" in -h | --help) sed -n '2,9p' "$0" | cut -c3-; exit 0 ;; esac
fail() { echo "compare_shapes.sh: $2" >&2; exit "$1"; }
[ $# -eq 3 ] || fail 2 "expected CONVOY, DATA.h5 and OUT; see --help"
convoy=$1 data=$2 out=$3
[ -x "$convoy" ] || fail 1 "$convoy: no such program"
[ -f "$data" ] || fail 1 "$data: no such file"
read -ra widths <<<"${WIDTHS:-1 2 4 8}"
read -ra more <<<"${FLAGS:-}"
model=${MODEL:-wrn16_1} steps=${STEPS:-1000} backend=${BACKEND:-cuda}
flags=(--data "$data" --global-batch "${BATCH:-128}" --backend "$backend" --flip --crop-padding 4
       --eval-every 0 --checkpoint-every-epochs 0 --overwrite "${more[@]}")
[ "$backend" = cpu ] || flags+=(--data-on-device --precision "${PRECISION:-bf16}" --tuning-file "$out/tuning.json")
mkdir -p "$out"
train() { # STEPS FLAGS…
  "$convoy" train "${flags[@]}" --steps "$@"
}
value() { # FILE KEY
  sed -n "s/^ *\"$2\": \"\{0,1\}\([^\",]*\).*/\1/p" "$1" | sed -n 1p
}

# This run measures which kernels and lanes (streams) are fastest, and writes them to the tuning
# file. So it is not timed.
list=$(IFS=,; echo "${widths[*]}")
[ "$backend" = cpu ] || train 20 --model "$model" --members "width=$list" --out "$out/tuning" >/dev/null
train "$steps" --model "$model" --members "width=$list" --out "$out/together" | tee "$out/together.log"
together=$(value "$out/together/members/1/summary.json" step_ms_median)

echo
echo "| width | alone, ms a step | together, ms a step |"
echo "|---|---|---|"
sum=0 number=0
for width in "${widths[@]}"; do
  number=$((number + 1))
  train "$steps" --model "${model%_*}_$width" --out "$out/alone$width" >"$out/alone$width.log"
  alone=$(value "$out/alone$width/summary.json" step_ms_median)
  sum=$(awk "BEGIN { print $sum + $alone }")
  echo "| $width | $alone | |"
  bits=$(value "$out/alone$width/summary.json" parameters_sha256)
  [ -n "$bits" ] || fail 1 "width $width: its summary has no parameters_sha256"
  [ "$bits" = "$(value "$out/together/members/$number/summary.json" parameters_sha256)" ] || fail 1 "width $width: other bits than alone"
done
awk "BEGIN { printf \"| all | %s | %s: %.2f times as fast |\n\", $sum, $together, $sum / $together }"
echo
echo "The bits are those of the runs alone. $(grep -h 'shapes \(run\|take\)' "$out/together.log" || true)"
