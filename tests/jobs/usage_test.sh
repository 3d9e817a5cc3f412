#!/usr/bin/env bash
# What the scripts of jobs/ say to --help and to a wrong command line: at once, before anything is installed, built or
# measured.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=support.sh
. "$(dirname "$0")/support.sh"
trap 'rm -rf "$folder"' EXIT
cd "$folder"

helps() { # SCRIPT
  fails_with 0 timeout 20 "$root/jobs/$1" --help >help 2>errors && [ -s help ] && is "$(cat errors)" ""
}
refuses() { # STATUS WORDS SCRIPT ARGUMENTS…
  local expected=$1 words=$2 script=$3 status=0
  shift 3
  timeout 20 "$root/jobs/$script" "$@" >output 2>errors || status=$?
  is "$status" "$expected" && is "$(wc -l <errors)" 1 && contains errors "$words" && is "$(wc -c <output)" 0
}

for script in quickstart.sh test.sh scaling.sh train.sbatch compare_cpu.sh compare_gpu.sh compare_accuracy.sh \
  partition_memory.sh partition_scaling.sh partition_baselines.sh sanitize_gpu.sh fuzz.sh; do
  check "$script --help" helps "$script"
done
check "quickstart.sh: an unknown flag" refuses 2 "--hlep" quickstart.sh --hlep
check "quickstart.sh: two folders" refuses 2 "found 'b' after 'a'" quickstart.sh a b
check "quickstart.sh: no such folder" refuses 1 "nowhere: no such file" quickstart.sh nowhere
check "scaling.sh: a list where one number belongs" refuses 2 "found '32,64', expected a whole number above 0" scaling.sh out --size 32,64
check "scaling.sh: an unknown option" refuses 2 "unknown option --model;" scaling.sh out --model
check "train.sbatch: no flags" refuses 2 "--out is missing" train.sbatch
check "compare_cpu.sh: no such peer" refuses 2 "peer.py: no such file" compare_cpu.sh peer.py
check "fuzz.sh: a flag for a target" refuses 2 "found '--runs', expected a target" fuzz.sh --runs
check "compare_gpu.sh: no such peer" refuses 2 "peer.py: no such file" compare_gpu.sh peer.py
check "compare_accuracy.sh: too few arguments" refuses 2 "expected DATA.h5 and OUT" compare_accuracy.sh data.h5
check "compare_accuracy.sh: no such data" refuses 1 "data.h5: no such file" compare_accuracy.sh data.h5 out
check "partition_memory.sh: too few arguments" refuses 2 "expected CONVOY, OUT" partition_memory.sh "$CONVOY" out
check "partition_memory.sh: no program" refuses 1 "convoy: no such program" partition_memory.sh ./convoy out graph.json
check "partition_scaling.sh: too few arguments" refuses 2 "expected CONVOY and OUT" partition_scaling.sh "$CONVOY"
check "sanitize_gpu.sh: a flag" refuses 2 "expected a folder" sanitize_gpu.sh --out
check "nothing was written" is "$(find . -type f | sort | xargs)" "./errors ./help ./output"
finish
