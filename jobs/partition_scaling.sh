#!/usr/bin/env bash
# Measures how time and memory of the partitioner grow with the size of the graph. Writes
# OUT/scaling.tsv and OUT/scaling.svg, and says whether four limits of time are kept.
#
#     jobs/partition_scaling.sh CONVOY OUT [REPEATS]
#     jobs/partition_scaling.sh --draw SCALING.tsv PLOT.svg
#
# CONVOY is the program of a release build. Compare processor times (user + system): other work on
# the machine changes them little. The wall time is the best of the repeats. Needs bash and awk.
set -euo pipefail
case "${1:---help}" in -h | --help) sed -n '2,9p' "$0" | cut -c3-; exit 0 ;; esac
[ $# -ge 2 ] || { echo "partition_scaling.sh: expected CONVOY and OUT; see --help" >&2; exit 2; }
convoy=$1 out=$2

# Draws processor seconds over the number of nodes and edges, both on logarithmic axes, with one
# line for each graph family and number of devices.
draw() {
  awk -F'\t' '
    function x(size) { return 70 + 430 * (log(size) - log(2e4)) / (log(8e6) - log(2e4)) }
    function y(time) { return 330 - 300 * (log(time) - log(0.05)) / (log(100) - log(0.05)) }
    function text(at_x, at_y, anchor, words) {
      printf "<text x=\"%.0f\" y=\"%.0f\" text-anchor=\"%s\">%s</text>\n", at_x, at_y, anchor, words
    }
    NR > 1 {
      name = $1 ", K = " $4
      if (!(name in points)) names[++count] = name
      at = sprintf("%.1f,%.1f", x($2 + $3), y($6))
      points[name] = points[name] " " at
    }
    END {
      split("#1f6feb #d9480f #0f8f6f #8250df", colour, " ")
      print "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 520 380\" font-family=\"sans-serif\" font-size=\"11\">"
      print "<rect width=\"520\" height=\"380\" fill=\"#ffffff\"/>"
      for (decade = -1; decade <= 2; ++decade) {
        printf "<path d=\"M70 %.1fH500\" stroke=\"#d9dee3\"/>\n", y(10 ^ decade)
        text(64, y(10 ^ decade) + 4, "end", 10 ^ decade " s")
      }
      for (decade = 5; decade <= 6; ++decade) {
        printf "<path d=\"M%.1f 30V330\" stroke=\"#d9dee3\"/>\n", x(10 ^ decade)
        text(x(10 ^ decade), 346, "middle", decade == 5 ? "100,000" : "1,000,000")
      }
      text(285, 366, "middle", "nodes + edges")
      text(70, 20, "start", "processor time of convoy partition, loading included")
      printf "<path d=\"M%.1f %.1fL%.1f %.1f\" stroke=\"#59636e\" stroke-dasharray=\"3 3\"/>\n", x(2e4), y(0.1), x(8e6), y(40)
      text(x(2.2e4), y(0.1) - 30, "start", "dashed: 5 µs a node or edge")
      for (i = 1; i <= count; ++i) {
        printf "<polyline points=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\"/>\n", points[names[i]], colour[i]
        n = split(points[names[i]], dots, " ")
        for (d = 1; d <= n; ++d) {
          split(dots[d], place, ",")
          printf "<circle cx=\"%s\" cy=\"%s\" r=\"3\" fill=\"%s\"/>\n", place[1], place[2], colour[i]
        }
        printf "<circle cx=\"86\" cy=\"%d\" r=\"3\" fill=\"%s\"/>\n", 38 + 16 * i, colour[i]
        text(94, 42 + 16 * i, "start", names[i])
      }
      print "</svg>"
    }' "$1" > "$2"
}
if [ "$convoy" = --draw ]; then
  [ $# -eq 3 ] || { echo "partition_scaling.sh: --draw: expected SCALING.tsv and PLOT.svg" >&2; exit 2; }
  draw "$out" "$3"
  exit
fi
[ -x "$convoy" ] || { echo "partition_scaling.sh: $convoy: no such program" >&2; exit 1; }

repeats=${3:-3}
mkdir -p "$out"
table="$out/scaling.tsv"
printf 'family\tnodes\tedges\tdevices\twall_s\tcpu_s\trss_mb\tratio\tlimit_s\n' > "$table"
number() { grep -o "\"$1\":[0-9.e+-]*" <<< "$json" | tail -1 | cut -d: -f2; }
least() { awk -v a="$1" -v b="$2" 'BEGIN { print (a < b) ? a : b }'; }

# Measures one graph: measure FAMILY NODES DEVICES LIMIT. LIMIT is in seconds; "-" means none.
measure() {
  local file="$out/graph.json" best_wall=1e9 best_cpu=1e9 json TIMEFORMAT='%R %U %S' wall user system
  "$convoy" partition --graph "generated:$1:$2" --devices 1 --algorithm one-device --write-graph "$file" > "$out/log"
  for _ in $(seq "$repeats"); do
    { time "$convoy" partition --graph "$file" --devices "$3" --json > "$out/json" 2> "$out/log"; } 2> "$out/time"
    json=$(< "$out/json")
    read -r wall user system < "$out/time"
    best_wall=$(least "$wall" "$best_wall")
    best_cpu=$(least "$(awk "BEGIN { print $user + $system }")" "$best_cpu")
  done
  rm -f "$file"
  printf '%s\t%s\t%s\t%s\t%s\t%s\t%.0f\t%s\t%s\n' "$1" "$(number nodes)" "$(number edges)" "$3" "$best_wall" "$best_cpu" \
    "$(awk "BEGIN { print $(number peak_rss_bytes) / 1e6 }")" "$(number ratio)" "$4" | tee -a "$table"
}
measure random 10000 4 0.3
for nodes in 10000 30000; do measure sparse $nodes 4 -; done
measure sparse 100000 4 2
for nodes in 30000 100000; do measure sparse $nodes 16 -; done
measure e3d 205000 16 5
measure sparse 300000 16 -
measure sparse 1000000 16 30

draw "$table" "$out/scaling.svg"
awk -F'\t' 'NR > 1 && $9 != "-" { print $1, $2, "K=" $4 ":", $5, "s wall of", $9, ($5 <= $9) ? "holds" : "DOES NOT HOLD"; bad += $5 > $9 }
            END { exit bad > 0 }' "$table"
