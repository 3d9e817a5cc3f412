#!/usr/bin/env bash
# Time and memory of the partitioner against the size of the graph: writes OUT/scaling.tsv and OUT/scaling.svg
# (matplotlib), and says whether the four limits that the project sets itself hold.
#
#     jobs/partition_scaling.sh CONVOY OUT [REPEATS]
#
# CONVOY is a release build's program. Processor time (user + system) is what a busy machine leaves comparable; the wall
# is the best of the repeats.
set -euo pipefail
convoy=${1:?usage: jobs/partition_scaling.sh CONVOY OUT [REPEATS]}
out=${2:?usage: jobs/partition_scaling.sh CONVOY OUT [REPEATS]}
repeats=${3:-3}
mkdir -p "$out"
table="$out/scaling.tsv"
printf 'family\tnodes\tedges\tdevices\twall_s\tcpu_s\trss_mb\tratio\tlimit_s\n' > "$table"

# family, nodes, devices, limit in seconds ("-": none)
measure() {
  local file="$out/graph.json" best_wall=1e9 best_cpu=1e9 rss=0 json
  "$convoy" partition --graph "generated:$1:$2" --devices 1 --algorithm one-device --write-graph "$file" > "$out/log"
  for _ in $(seq "$repeats"); do
    json=$(/usr/bin/time -o "$out/time" -f '%e %U %S %M' "$convoy" partition --graph "$file" --devices "$3" --json)
    read -r wall user system kb < "$out/time"
    best_wall=$(awk "BEGIN{print ($wall<$best_wall)?$wall:$best_wall}")
    best_cpu=$(awk "BEGIN{c=$user+$system; print (c<$best_cpu)?c:$best_cpu}")
    rss=$((kb / 1024))
  done
  rm -f "$file"
  printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$1" "$(jq -r '"\(.nodes)\t\(.edges)"' <<< "$json")" "$3" "$best_wall" \
    "$best_cpu" "$rss	$(jq .ratio <<< "$json")	$4" | tee -a "$table"
}
measure random 10000 4 0.3
for nodes in 10000 30000; do measure sparse $nodes 4 -; done
measure sparse 100000 4 2
for nodes in 30000 100000; do measure sparse $nodes 16 -; done
measure e3d 205000 16 5
measure sparse 300000 16 -
measure sparse 1000000 16 30

"${PYTHON:-/usr/bin/python3}" - "$table" "$out/scaling.svg" << 'PYTHON'
import csv, sys
import matplotlib
matplotlib.use("svg")
import matplotlib.pyplot as plt
rows = list(csv.DictReader(open(sys.argv[1]), delimiter="\t"))
figure, axes = plt.subplots(figsize=(6, 4))
for family, devices, marker in [("sparse", "4", "o"), ("sparse", "16", "s"), ("random", "4", "^"), ("e3d", "16", "v")]:
    part = sorted((int(r["nodes"]) + int(r["edges"]), float(r["cpu_s"])) for r in rows
                  if r["family"] == family and r["devices"] == devices)
    if part:
        axes.loglog(*zip(*part), marker=marker, label=f"{family}, K = {devices}")
size = [2e4, 5e6]
axes.loglog(size, [s * 5e-6 for s in size], "k:", label="linear, 5 µs a node or edge")
axes.set_xlabel("nodes + edges")
axes.set_ylabel("processor seconds, loading included")
axes.legend()
figure.tight_layout()
figure.savefig(sys.argv[2])
PYTHON
awk -F'\t' 'NR > 1 && $9 != "-" { print $1, $2, "K=" $4 ":", $5, "s wall of", $9, ($5 <= $9) ? "holds" : "DOES NOT HOLD"; bad += $5 > $9 }
            END { exit bad > 0 }' "$table"
