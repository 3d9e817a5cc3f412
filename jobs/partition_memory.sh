#!/usr/bin/env bash
# Places each graph on 4 devices under ten memory limits. They fall from the peak of the placement
# without a limit to the partitioner's lower bound, below which certainly nothing fits.
# Checks each placement by `convoy simulate --memory`. Writes OUT/memory.md with makespans in µs,
# "none" if it is proven that nothing fits, and "not found" without such a proof.
# Usage: jobs/partition_memory.sh CONVOY OUT GRAPH[:LATENCY_US]...
# A GRAPH is a file, a ParDNN folder or generated_FAMILY_NODES. The variable TIME_LIMIT has the
# seconds of local search for each limit (0.5).
set -euo pipefail
case "${1:---help}" in -h | --help) sed -n '2,8p' "$0" | cut -c3-; exit 0 ;; esac
[ $# -ge 3 ] || { echo "partition_memory.sh: expected CONVOY, OUT and graphs; see --help" >&2; exit 2; }
convoy=$1 out=$2
shift 2
[ -x "$convoy" ] || { echo "partition_memory.sh: $convoy: no such program" >&2; exit 1; }
mkdir -p "$out"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# numbers KEY JSON: prints all numbers that have this key in JSON, an object on one line.
numbers() { grep -o "\"$1\":[0-9.e+-]*" <<< "$2" | cut -d: -f2; }
largest() { sort -g | tail -1; }

# Places a graph: step GRAPH LATENCY LIMIT. Prints the makespan, "none", "not found", or "WRONG" if
# the simulator rejects the placement.
step() {
  local flags=(--graph "$1" --devices 4 --latency-us "$2" --memory "$3") answer
  if answer=$("$convoy" partition "${flags[@]}" --time-limit "${TIME_LIMIT:-0.5}" --out "$scratch/placement.json" --json \
              2> "$scratch/error"); then
    if ! "$convoy" simulate "${flags[@]}" --placement "$scratch/placement.json" > /dev/null; then
      echo "WRONG"
      return
    fi
    printf '%.0f\n' "$(grep -o '"makespan_us":[0-9.e+-]*' <<< "$answer" | tail -1 | cut -d: -f2)"
  elif grep -q '"proven":true' <<< "$answer"; then
    echo "none"
  elif grep -q '"proven":false' <<< "$answer"; then
    echo "not found"
  else
    cat "$scratch/error" >&2
    return 1
  fi
}

{
  echo "| graph | from MiB | to MiB | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 |"
  echo "|---|---|---|---|---|---|---|---|---|---|---|---|---|"
} | tee "$out/memory.md"
for argument; do
  graph=${argument%:*} latency=25
  [ "$graph" = "$argument" ] || latency=${argument##*:}
  case $graph in generated_*) graph=${graph//_/:} ;; esac
  open=$("$convoy" partition --graph "$graph" --devices 4 --latency-us "$latency" --time-limit "${TIME_LIMIT:-0.5}" --json)
  peak=$(numbers peak_bytes "$open" | largest) floor=$(numbers memory_floor_bytes "$open")
  row="| $(basename "$graph") | $(awk "BEGIN{printf \"%.1f | %.1f\", $peak/1048576, $floor/1048576}")"
  for i in 0 1 2 3 4 5 6 7 8 9; do
    row+=" | $(step "$graph" "$latency" $((peak - (peak - floor) * i / 9)))"
  done
  echo "$row |" | tee -a "$out/memory.md"
done
! grep -q WRONG "$out/memory.md"
