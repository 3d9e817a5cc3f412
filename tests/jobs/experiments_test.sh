#!/usr/bin/env bash
# Tests the scripts of jobs/experiments in their quick modes. Each must print its whole table, write
# the same table to a file, and fill every cell that must have a number.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=support.sh
. "$(dirname "$0")/support.sh"
trap 'rm -rf "$folder"' EXIT

quick() { # SCRIPT: runs it on the CPU; the file SCRIPT.md then holds its table
  BACKEND=cpu timeout 120 "$root/jobs/experiments/$1.sh" --quick "$CONVOY" "$folder/$1" >"$folder/$1.out" 2>"$folder/$1.err" ||
    { cat "$folder/$1.err"; return 1; }
  [ -s "$folder/$1/$1.md" ] || { echo "  no $1.md"; return 1; }
  # The script may print progress before the table.
  [ "$(tail -n "$(wc -l <"$folder/$1/$1.md")" "$folder/$1.out")" = "$(cat "$folder/$1/$1.md")" ] || { echo "  printed another table"; return 1; }
}
rows() { grep -c "^| $2" "$folder/$1/$1.md"; }              # SCRIPT START: prints the number of rows that start so
cell() { awk -F' *[|] *' -v r="$2" -v c="$3" '/^[|]/ && ++n == r + 2 { print $(c + 1) }' "$folder/$1/$1.md"; }  # SCRIPT ROW COLUMN: prints a cell
above() { awk -v found="$1" -v least="$2" 'BEGIN { exit !(found > least) }' || { echo "  found $1, expected more than $2"; return 1; }; }

echo "== gemm_ladder.sh"
check "runs" quick gemm_ladder
check "three rungs" is "$(rows gemm_ladder CPU)" 3
check "the first is plain loops" is "$(cell gemm_ladder 1 6)" 1.0
check "one thread of oneDNN is faster" above "$(cell gemm_ladder 2 6)" 1

echo "== glp4nn.sh"
check "runs" quick glp4nn
check "four networks" is "$(rows glp4nn '[CSG]')" 4
for row in 1 2 3 4; do check "a rate in row $row" above "$(cell glp4nn "$row" 4)" 0; done

echo "== Tables of a GPU, from a program that imitates its benchmarks"
mkdir "$folder/bin"
cat >"$folder/bin/convoy" <<'SH'
#!/bin/sh
case "$1 $2" in
  "bench concurrency")
    for row in "one by one:100" "GLP4NN's streams:50" "GLP4NN's model:125" "fixed, 3 lanes:150" "auto, model alone:155" auto:160.5; do
      printf '{"images_per_second":%s,"ms":1.5,"note":"a, b","schedule":"%s","size":224}\n' "${row#*:}" "${row%:*}"
    done ;;
  "bench gemm") echo '{"correct":true,"math":"bf16","microseconds":2.5,"microseconds_least":2.0,"of_cublas":0.981,"rung":"wgmma"}' ;;
  *) exec "$CONVOY" "$@" ;;
esac
SH
printf '#!/bin/sh\necho "GPU 0: NVIDIA H100"\n' >"$folder/bin/nvidia-smi"
chmod +x "$folder"/bin/*
on_gpu() { # SCRIPT: writes its table to the file gpu/SCRIPT.md
  PATH=$folder/bin:$PATH M=64 N=64 SIDE=16 timeout 120 "$root/jobs/experiments/$1.sh" "$folder/bin/convoy" "$folder/gpu" >"$folder/$1.out" 2>&1 ||
    { cat "$folder/$1.out"; return 1; }
}
check "glp4nn.sh runs" on_gpu glp4nn
check "its ratios are of the right rows" contains "$folder/gpu/glp4nn.md" "| 224, 32 | 100 | 50 | 125 | 150 | 160 | 1.60 | 1.28 |"
check "gemm_ladder.sh runs" on_gpu gemm_ladder
check "it has a row for the rung" contains "$folder/gpu/gemm_ladder.md" "| GPU | bf16 | wgmma | 2.5 | 2516.6 |"

echo "== neural_network_cases.sh"
check "runs" quick neural_network_cases
check "two cases of three networks" is "$(rows neural_network_cases '[lmw]')" 6
check "the serial case on one rank" is "$(cell neural_network_cases 1 2), $(cell neural_network_cases 1 3)" "serial, 1"
check "the other on four" is "$(cell neural_network_cases 2 2), $(cell neural_network_cases 2 3)" "MPI, 4"
for row in 1 2 3 4 5 6; do check "a rate in row $row" above "$(cell neural_network_cases "$row" 5)" 0; done
# A step allocates nothing on a GPU, but a little on the host, in the kernels' libraries.
if command -v cc >/dev/null; then check "a step allocates little" above 5000 "$(cell neural_network_cases 1 7)"; fi

echo "== finite_width.sh"
if /usr/bin/python3 -c 'import numpy, h5py, matplotlib' 2>/dev/null; then
  check "runs" quick finite_width
  check "two widths and all rates" is "$(rows finite_width standard), $(rows finite_width mup)" "6, 6"
  for row in 1 2 3 4; do check "a variance of the kernel in row $row" above "$(cell finite_width "$row" 7)" 0; done
  check "width 1 is the same in both" is "$(cell finite_width 1 3) $(cell finite_width 1 7)" "$(cell finite_width 3 3) $(cell finite_width 3 7)"
  check "width 2 is not" fails_with 1 is "$(cell finite_width 2 7)" "$(cell finite_width 4 7)"
  check "five plots on a page" is "$(grep -o '<picture>' "$folder/finite_width/index.html" | wc -l)" 5
else
  echo "numpy, h5py or matplotlib is not installed: finite_width.sh is not tested"
fi

echo "== sharing.py"
python=/usr/bin/python3 plot=(--plot "$folder/sharing.svg")
$python -c 'import matplotlib' 2>/dev/null || plot=()
check "runs" timeout 120 $python "$root/jobs/experiments/sharing.py" "$CONVOY" "$folder/sharing" --backend cpu --mix tiny --scale 0.1 --ways auto \
  --threads 1 "${plot[@]}" >"$folder/sharing.md"
[ ${#plot[@]} -eq 0 ] || check "a plot is written" test -s "$folder/sharing.svg"
check "the jobs have the bits of their runs alone" grep -q '^| tiny | share, auto | .*| same |$' "$folder/sharing.md"

echo "== loader_pressure.sh"
check "runs" env BACKEND=cpu MODEL=lenet SIZE=32 BATCH=8 LIMIT=27500000 IMAGES=16 ROUNDS=1 STEPS=6 timeout 120 \
  "$root/jobs/experiments/loader_pressure.sh" "$CONVOY" "$folder/pressure" >"$folder/pressure.md"
check "two steps are timed next to three loads" is "$(grep -cE '^\|( [a-z0-9 ]+ \|){2} [0-9.]+ \| [0-9.]+ \|$' "$folder/pressure.md")" 6

echo "== nccl_blocks.sh"
check "runs" env BACKEND=cpu MODEL=lenet SIZE=28 BATCH=8 LIMITS=2 ROUNDS=1 STEPS=6 timeout 120 \
  "$root/jobs/experiments/nccl_blocks.sh" "$CONVOY" "$folder/nccl" >"$folder/nccl.md"
check "three ways have a time, a ratio and a wait" is "$(grep -cE '^\| [A-Za-z0-9 ,]+ \|( [0-9.]+ \|){3}$' "$folder/nccl.md")" 3

echo "== serving.py"
check "runs" timeout 120 "$root/jobs/experiments/serving.py" "$CONVOY" "$folder/serving" --backend cpu --model lenet --size 28 --batch 8 \
  --steps 20 --loads 0.2 --overload 200 --seconds 1 --threads 1 --goal 100 >"$folder/serving.md"
check "three ways have latencies and a training's rate" is "$(grep -cE '^\| 0.20 \|( [a-z ]+ \|) [0-9.]+ \| [0-9.]+ \| [0-9]+ \| [0-9.]+ \|$' "$folder/serving.md")" 3
check "a burst has latencies before and after it" grep -qE '^\| 0.20 \| 64 requests \| [0-9.]+ \| [0-9.]+ \| [0-9.]+ \|$' "$folder/serving.md"
finish
