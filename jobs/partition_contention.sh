#!/usr/bin/env bash
# Compares the default search of `convoy partition`, a long search, and simulated annealing for as
# long as the long search. Writes OUT/annealing.md with makespans in µs. Fails if the default search
# is more than 3 % worse than annealing, or if the long search is worse than annealing.
#
#     jobs/partition_contention.sh CONVOY ANNEALING OUT [GRAPH:DEVICES]...
#
# ANNEALING is partition_annealing of the tests' build. Default: six graphs of structured_graphs.py.
# Variables: SECONDS_OF_SEARCH (20). CONTENTION (yes; no: transfers do not wait for each other).
set -euo pipefail
case "${1:---help}" in -h | --help) sed -n '2,9p' "$0" | cut -c3-; exit 0 ;; esac
[ $# -ge 3 ] || { echo "partition_contention.sh: expected CONVOY, ANNEALING and OUT; see --help" >&2; exit 2; }
convoy=$1 annealing=$2 out=$3
shift 3
for program in "$convoy" "$annealing"; do
  [ -x "$program" ] || { echo "partition_contention.sh: $program: no such program" >&2; exit 1; }
done
mkdir -p "$out"
seconds=${SECONDS_OF_SEARCH:-20}
contention=(--contention)
[ "${CONTENTION:-yes}" = yes ] || contention=()
if [ $# -eq 0 ]; then
  for graph in cholesky:1:4 fft:10:8 sp:1:8 stencil:10:4 gauss:1:4 montage:10:8; do
    IFS=: read -r family ratio devices <<< "$graph"
    python3 "$(dirname "$0")/experiments/structured_graphs.py" "$family" 1200 "$ratio" > "$out/${family}_$ratio.json"
    set -- "$@" "$out/${family}_$ratio.json:$devices"
  done
fi

place() {  # arguments: graph devices flags...
  local graph=$1 devices=$2 answer
  shift 2
  answer=$("$convoy" partition --graph "$graph" --devices "$devices" "${contention[@]}" --json "$@")
  grep -o '"makespan_us":[0-9.e+-]*' <<< "$answer" | tail -1 | cut -d: -f2
}

{
  echo "| graph | K | default | $seconds s | annealing $seconds s | default to annealing | $seconds s to annealing |"
  echo "|---|---|---|---|---|---|---|"
} | tee "$out/annealing.md"
for argument; do
  graph=${argument%:*} devices=${argument##*:}
  short=$(place "$graph" "$devices")
  long=$(place "$graph" "$devices" --time-limit "$seconds")
  plain=$("$annealing" "$graph" "$devices" "$seconds" "${contention[@]}")
  awk -v graph="$(basename "$graph")" -v devices="$devices" -v short="$short" -v long="$long" -v plain="$plain" 'BEGIN {
    printf "| %s | %d | %.0f | %.0f | %.0f | %.3f | %.3f |\n", graph, devices, short, long, plain, short / plain, long / plain
  }' | tee -a "$out/annealing.md"
done
awk -F'|' 'NR > 2 && ($7 > 1.03 || $8 > 1) { print $2 "K =" $3 ": annealing is shorter"; bad = 1 } END { exit bad }' "$out/annealing.md"
