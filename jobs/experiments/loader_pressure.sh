#!/usr/bin/env bash
# Measures whether loading and decoding images on the host slows a GPU's kernels, or its copies from
# and to host memory. Prints a table of step times and writes it to OUT/loader_pressure.md.
#
#     jobs/experiments/loader_pressure.sh CONVOY OUT
#
# Two steps are timed on synthetic images: one whose images and activations all stay on the device,
# and one that keeps activations in host memory, so that copies run all the time. Meanwhile another
# process crops photographs (decoded, or stored as pixels) as fast as it can, on all cores but two.
# Variables: MODEL (resnet50), BATCH (256), SIZE (224), LIMIT (4GiB), the memory limit of the copying
# step. IMAGES (2048), photographs to make. ROUNDS (3), each with every row once. STEPS (60) of a row.
# BACKEND (cuda); cpu shows only that the script works.
set -euo pipefail
case "${1:---help}" in -h | --help) sed -n '2,12p' "$0" | cut -c3-; exit 0 ;; esac
[ $# -eq 2 ] || { echo "loader_pressure.sh: expected CONVOY and OUT; see --help" >&2; exit 2; }
convoy=$(realpath -m -- "$1") out=$(realpath -m -- "$2")
[ -x "$convoy" ] || { echo "loader_pressure.sh: $1: no such program" >&2; exit 1; }
mkdir -p "$out"
model=${MODEL:-resnet50} batch=${BATCH:-256} limit=${LIMIT:-4GiB} rounds=${ROUNDS:-3} steps=${STEPS:-60}
flags_of_all=(--backend cuda --precision bf16 --tuning-file "$out/tuning.json")
[ "${BACKEND:-cuda}" = cuda ] || flags_of_all=(--backend "$BACKEND")
threads=$(($(nproc) > 3 ? $(nproc) - 2 : 1))
if [ ! -f "$out/raw.h5" ]; then
  "$convoy" data photographs "$out/photos" --train "${IMAGES:-2048}" --test 16 --width 500 --height 375 --quality 90 --classes 16 >"$out/log"
  "$convoy" data convert "$out/photos" "$out/jpeg.h5" --encode keep >>"$out/log"
  "$convoy" data convert "$out/photos" "$out/raw.h5" --encode raw --size 256 >>"$out/log"
fi

loader=
trap '[ -z "$loader" ] || kill "$loader" 2>/dev/null || true' EXIT
start_load() { # KIND (none, decode or read): starts a loader process of this kind
  loader=
  case $1 in
    none) return ;;
    decode) set -- --data "$out/jpeg.h5" --output images ;;
    read) set -- --data "$out/raw.h5" --output cuts ;;
  esac
  "$convoy" bench loader "$@" --crop 224 --global-batch 256 --augment resized-crop,flip --threads "$threads" --seconds 600 >/dev/null 2>>"$out/log" &
  loader=$!
  sleep 2  # until the loader has opened the store and fills batches
}
stop_load() {
  [ -n "$loader" ] || return 0
  kill -0 "$loader" 2>/dev/null || { echo "loader_pressure.sh: the loader ended; see $out/log" >&2; exit 1; }
  kill "$loader"
  wait "$loader" 2>/dev/null || true
  loader=
}
: >"$out/times"
for _ in $(seq "$rounds"); do
  for load in none decode read; do
    start_load "$load"
    for step in resident copying; do
      flags=()
      [ "$step" = resident ] || flags=(--memory-limit "$limit" --host-memory 64GiB)
      "$convoy" bench step "${flags_of_all[@]}" "${flags[@]}" --model "$model" --size "${SIZE:-224}" --batch "$batch" --steps "$steps" \
        --warmup "$((steps / 6))" --json >"$out/step" 2>"$out/errors" || { cat "$out/errors" >&2; exit 1; }
      sed -n "s/.*\"ms\":\([0-9.e+-]*\).*/$step $load \1/p" "$out/step" >>"$out/times"
    done
    stop_load
  done
done
# Prints the median of the rounds of every row, and its ratio to the row without a load.
awk -v threads="$threads" '
  function median(key,   list, n, i, j, t) {
    n = split(times[key], list, " ")
    for (i = 2; i <= n; ++i) for (j = i; j > 1 && list[j] + 0 < list[j - 1] + 0; --j) { t = list[j]; list[j] = list[j - 1]; list[j - 1] = t }
    return list[int((n + 1) / 2)]
  }
  { times[$1 " " $2] = times[$1 " " $2] " " $3 }
  END {
    print "| activations | on the host | step, ms | of the step without a load |"
    print "|---|---|---|---|"
    split("resident copying", steps, " "); split("none decode read", loads, " ")
    where["resident"] = "on the device"; where["copying"] = "partly in host memory"
    what["none"] = "nothing"; what["decode"] = threads " threads decode and cut photographs"; what["read"] = threads " threads cut stored pixels"
    for (s = 1; s <= 2; ++s) for (l = 1; l <= 3; ++l) {
      ms = median(steps[s] " " loads[l])
      printf "| %s | %s | %.2f | %.3f |\n", where[steps[s]], what[loads[l]], ms, ms / median(steps[s] " none")
    }
  }' "$out/times" | tee "$out/loader_pressure.md"
rm -f "$out/step" "$out/errors"
