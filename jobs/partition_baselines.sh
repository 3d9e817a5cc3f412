#!/usr/bin/env bash
# Compares the default placement of `convoy partition` with that of every baseline algorithm, by the
# makespans in µs that `convoy simulate` predicts. Writes OUT/baselines.md, a table of them. Prints
# each graph and number of devices for which a baseline is faster; the exit status is then 1.
# Usage: jobs/partition_baselines.sh CONVOY OUT [GRAPH[:LATENCY_US]...]
# A GRAPH is a file, a ParDNN folder or generated_FAMILY_NODES; default: every generated family in
# the SIZES (1500 10000). LATENCY_US is 25 by default. Variables: SIZES. DEVICES, numbers of devices
# ("2 4 8 16"). BANDWIDTH_GBPS (130). TIME_LIMIT, seconds of local search (the program's default).
set -euo pipefail
case "${1:---help}" in -h | --help) sed -n '2,8p' "$0" | cut -c3-; exit 0 ;; esac
[ $# -ge 2 ] || { echo "partition_baselines.sh: expected CONVOY and OUT; see --help" >&2; exit 2; }
convoy=$1 out=$2
shift 2
[ -x "$convoy" ] || { echo "partition_baselines.sh: $convoy: no such program" >&2; exit 1; }
if [ $# -eq 0 ]; then
  for family in recurrent crn wide-resnet transformer e3d random sparse; do
    for nodes in ${SIZES:-1500 10000}; do set -- "$@" "generated_${family}_$nodes"; done
  done
fi
mkdir -p "$out"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
baselines=(one-device contiguous heft m-etf metis pardnn)

# number KEY JSON: prints the last number that has this key in JSON, an object on one line.
number() { grep -o "\"$1\":[0-9.e+-]*" <<< "$2" | tail -1 | cut -d: -f2; }

# Places the graph by the algorithm $1 and prints the makespan that the simulator finds. The
# partitioner's output is then in $scratch/placed.
judge() {
  local judged
  local -a limit=()
  [ "$1" != improve ] || [ -z "${TIME_LIMIT:-}" ] || limit=(--time-limit "$TIME_LIMIT")
  "$convoy" partition "${flags[@]}" --algorithm "$1" "${limit[@]}" --out "$scratch/placement.json" --json > "$scratch/placed"
  judged=$("$convoy" simulate "${flags[@]}" --placement "$scratch/placement.json" --json)
  number makespan_us "$judged"
}

{
  columns=${baselines[*]}
  echo "| graph | nodes | K | lower bound | ${columns// / | } | improve | to bound | to best baseline |"
  echo "|---|---|---|---|---|---|---|---|---|---|---|---|---|"
} | tee "$out/baselines.md"
lost=0 rows=0
for argument; do
  graph=${argument%:*} latency=25
  [ "$graph" = "$argument" ] || latency=${argument##*:}
  case $graph in generated_*) graph=${graph//_/:} ;; esac
  for devices in ${DEVICES:-2 4 8 16}; do
    flags=(--graph "$graph" --devices "$devices" --latency-us "$latency" --bandwidth-gbps "${BANDWIDTH_GBPS:-130}")
    makespans=()
    for algorithm in "${baselines[@]}" improve; do makespans+=("$(judge "$algorithm")"); done
    placed=$(< "$scratch/placed")
    verdict=0
    awk -v graph="$(basename "$graph")" -v nodes="$(number nodes "$placed")" -v devices="$devices" \
        -v bound="$(number lower_bound_us "$placed")" -v claimed="$(number makespan_us "$placed")" '
      {
        row = "| " graph " | " nodes " | " devices " | " sprintf("%.0f", bound)
        best = $1
        for (i = 1; i <= NF; ++i) row = row " | " sprintf("%.0f", $i)
        for (i = 1; i < NF; ++i) if ($i < best) best = $i
        printf "%s | %.4f | %.4f |\n", row, (bound > 0 ? $NF / bound : 1), (best > 0 ? $NF / best : 1)
        exit (claimed != $NF ? 3 : ($NF > best ? 4 : 0))
      }' <<< "${makespans[*]}" | tee -a "$out/baselines.md" || verdict=$?
    rows=$((rows + 1))
    [ "$verdict" -eq 0 ] && continue
    lost=$((lost + 1))
    case $verdict in 3) what="the simulator disagrees" ;; 4) what="a baseline is shorter" ;; *) exit 1 ;; esac
    echo "$graph, K = $devices: $what" >> "$scratch/lost"
  done
done
echo "$rows rows, $lost lost"
[ "$lost" -eq 0 ] || { cat "$scratch/lost"; exit 1; }
