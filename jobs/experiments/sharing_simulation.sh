#!/usr/bin/env bash
# Runs the policies of `convoy simulate --jobs` on random jobs that share one device. Divides each
# policy's time by a lower bound. Writes OUT/sharing.md, a Markdown table, and the jobs to
# OUT/jobs. The exit status is 1 if `auto` is ever slower than `fifo` (first come, first served).
#
#     jobs/experiments/sharing_simulation.sh CONVOY OUT
#
# Variables: CASES, job files per row of the table (20). CLIENTS, numbers of jobs ("8 64").
# TIME_LIMIT, seconds of the genetic search (1).
# A copy to the device takes 20 to 180 µs if copies are the bottleneck, else 10 to 90. The kernels
# of a job take 20 to 180 µs if kernels are the bottleneck, else 10 to 90. Every other job copies
# its data back. Jobs have 1 to 4 kernels with gaps of up to twice a kernel's time. Data moves at 25
# GB/s. A limited device has memory for 2.5 jobs of average size, or for the largest job if that is
# more.
set -euo pipefail
case "${1:---help}" in -h | --help) sed -n '2,14p' "$0" | cut -c3-; exit 0 ;; esac
[ $# -eq 2 ] || { echo "sharing_simulation.sh: expected CONVOY and OUT; see --help" >&2; exit 2; }
convoy=$1 out=$2
[ -x "$convoy" ] || { echo "sharing_simulation.sh: $convoy: no such program" >&2; exit 1; }
mkdir -p "$out/jobs"
scratch=$(mktemp)
trap 'rm -f "$scratch"' EXIT

# Prints random jobs. Uses Park and Miller's random numbers, so that every version of awk prints the
# same jobs.
draw_jobs() {  # arguments: MIX CLIENTS LIMITED SEED
  awk -v mix="$1" -v clients="$2" -v limited="$3" -v seed="$4" '
    function unit() { state = state * 16807 % 2147483647; return state / 2147483647 }
    function time(long) { return long ? 20 + 160 * unit() : 10 + 80 * unit() }
    BEGIN {
      state = 1 + seed
      for (i = 0; i < 8; ++i) unit()
      for (job = 1; job <= clients; ++job) {
        copy = time(mix == "copy-bound")
        busy = time(mix == "compute-bound")
        kernels = 1 + int(4 * unit())
        bytes = int(25000 * copy)
        total += bytes
        if (bytes > largest) largest = bytes
        times = gaps = ""
        for (k = 1; k <= kernels; ++k) {
          times = times (k > 1 ? ", " : "") sprintf("%.3f", busy / kernels)
          if (k > 1) gaps = gaps (k > 2 ? ", " : "") sprintf("%.3f", 2 * busy / kernels * unit())
        }
        line = sprintf("{\"name\": \"%d\", \"copy_us\": %.3f, \"kernels\": [%s], \"idle_us\": [%s], \"bytes\": %d", \
                       job, copy, times, gaps, bytes)
        if (job % 2 == 0) line = line sprintf(", \"copy_back_us\": %.3f", copy)
        list = list (job > 1 ? ",\n" : "") line "}"
      }
      memory = 2.5 * total / clients
      if (memory < largest) memory = largest
      printf "{%s\"clients\": [\n%s]}\n", limited == "yes" ? sprintf("\"memory_bytes\": %d, ", memory) : "", list
    }'
}

{
  echo "| mix | jobs | memory | none | fifo | weight | johnson | genetic | exact | auto to fifo | swapped by auto |"
  echo "|---|---|---|---|---|---|---|---|---|---|---|"
} | tee "$out/sharing.md"
worse=0
for mix in balanced copy-bound compute-bound; do
  for clients in ${CLIENTS:-8 64}; do
    for limited in no yes; do
      : >"$scratch"
      for ((seed = 1; seed <= ${CASES:-20}; ++seed)); do
        jobs=$out/jobs/$mix-$clients-$limited-$seed.json
        draw_jobs "$mix" "$clients" "$limited" "$seed" >"$jobs"
        "$convoy" simulate --jobs "$jobs" --time-limit "${TIME_LIMIT:-1}" --json >>"$scratch"
      done
      # Prints a row of the table. It has the geometric mean of makespan / lower bound for each
      # policy.
      awk -v mix="$mix" -v clients="$clients" -v limited="$limited" '
        function text(key) { match($0, "\"" key "\":\"?[^,\"]*"); return substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3) }
        function number(key) { return text(key) + 0 }
        {
          policy = substr(text("policy"), 2)
          makespan = number("makespan_us")
          sum[policy] += log(makespan / number("bound_us"))
          ++count[policy]
          if (policy == "fifo") fifo = makespan
          if ($0 ~ /"auto":true/) { chosen = makespan; swapped += number("swapped_bytes") }
          if (policy == (clients > 9 ? "genetic" : "exact")) {  # the last policy that was run on these jobs
            ++files
            gain += log(chosen / fifo)
            if (chosen > fifo) worse = 1
          }
        }
        function ratio(policy) { return count[policy] ? sprintf("%.3f", exp(sum[policy] / count[policy])) : "" }
        END {
          printf "| %s | %d | %s | %s | %s | %s | %s | %s | %s | %.3f | %.1f MB |\n", mix, clients,
                 limited == "yes" ? "for 2.5" : "unlimited", ratio("none"), ratio("fifo"), ratio("weight"),
                 ratio("johnson"), ratio("genetic"), ratio("exact"), exp(gain / files), swapped / files / 1e6
          exit worse
        }' "$scratch" | tee -a "$out/sharing.md" || worse=$((worse + 1))
    done
  done
done
[ "$worse" -eq 0 ] || { echo "$worse rows in which auto is worse than first come"; exit 1; }
