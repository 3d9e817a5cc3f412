#!/usr/bin/env bash
# Tests that the scripts of jobs/ answer --help and wrong arguments at once, before they install,
# build or measure anything.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=support.sh
. "$(dirname "$0")/support.sh"
trap 'rm -rf "$folder"' EXIT
cd "$folder"

helps() { # SCRIPT
  fails_with 0 timeout 20 "$root/jobs/$1" --help >help 2>errors && [ -s help ] && is "$(cat errors)" "" && is "$(grep -c pipefail help)" 0
}
refuses() { # STATUS WORDS SCRIPT ARGUMENTS…
  local expected=$1 words=$2 script=$3 status=0
  shift 3
  timeout 20 "$root/jobs/$script" "$@" >output 2>errors || status=$?
  is "$status" "$expected" && is "$(wc -l <errors)" 1 && contains errors "$words" && is "$(wc -c <output)" 0
}

for script in quickstart.sh test.sh scaling.sh train.sbatch compare_cpu.sh compare_gpu.sh compare_accuracy.sh compare_shapes.sh \
  partition_memory.sh partition_scaling.sh partition_baselines.sh partition_contention.sh sanitize_gpu.sh fuzz.sh experiments/sharing_simulation.sh \
  experiments/finite_width.sh experiments/glp4nn.sh experiments/gemm_ladder.sh experiments/neural_network_cases.sh experiments/loader_pressure.sh experiments/nccl_blocks.sh; do
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
check "compare_shapes.sh: too few arguments" refuses 2 "expected CONVOY, DATA.h5 and OUT" compare_shapes.sh "$CONVOY"
check "compare_shapes.sh: no such data" refuses 1 "data.h5: no such file" compare_shapes.sh "$CONVOY" data.h5 out
check "compare_accuracy.sh: no such data" refuses 1 "data.h5: no such file" compare_accuracy.sh data.h5 out
check "partition_memory.sh: too few arguments" refuses 2 "expected CONVOY, OUT" partition_memory.sh "$CONVOY" out
check "partition_memory.sh: no program" refuses 1 "convoy: no such program" partition_memory.sh ./convoy out graph.json
check "partition_scaling.sh: too few arguments" refuses 2 "expected CONVOY and OUT" partition_scaling.sh "$CONVOY"
check "sharing_simulation.sh: too few arguments" refuses 2 "expected CONVOY and OUT" experiments/sharing_simulation.sh "$CONVOY"
check "sharing_simulation.sh: no program" refuses 1 "convoy: no such program" experiments/sharing_simulation.sh ./convoy out
check "loader_pressure.sh: too few arguments" refuses 2 "expected CONVOY and OUT" experiments/loader_pressure.sh "$CONVOY"
check "loader_pressure.sh: no program" refuses 1 "convoy: no such program" experiments/loader_pressure.sh ./convoy out
check "nccl_blocks.sh: too few arguments" refuses 2 "expected CONVOY and OUT" experiments/nccl_blocks.sh "$CONVOY"
check "nccl_blocks.sh: no program" refuses 1 "convoy: no such program" experiments/nccl_blocks.sh ./convoy out
for script in finite_width glp4nn gemm_ladder neural_network_cases; do
  check "$script.sh: too few arguments" refuses 2 "expected " "experiments/$script.sh" "$CONVOY"
  check "$script.sh: no program" refuses 1 "convoy: no such program" "experiments/$script.sh" --quick ./convoy out
done
check "finite_width.sh: no data" refuses 1 "data.h5: no such file" experiments/finite_width.sh "$CONVOY" out data.h5
check "finite_width.sh: an unknown flag" refuses 2 "unknown flag '--quik'" experiments/finite_width.sh --quik "$CONVOY" out
check "sanitize_gpu.sh: a flag" refuses 2 "expected a folder" sanitize_gpu.sh --out
check "check_style.sh --help" helps check_style.sh
check "check_style.sh: no build folder" refuses 2 "--tidy nowhere: found no compile_commands.json" check_style.sh --tidy nowhere
! git -C "$root" rev-parse --git-dir >/dev/null 2>&1 ||  # an archive has no commits
  check "check_style.sh: no such commit" refuses 2 "found 'no-commit', expected a commit" check_style.sh no-commit
check "nothing was written" is "$(find . -type f | sort | xargs)" "./errors ./help ./output"

echo "== quickstart.sh builds for the GPUs of the machine"
# Make fake programs that print their arguments. cmake fails, so that nothing is built or trained.
mkdir bin
# shellcheck disable=SC2016  # expanded by the program
printf '#!/bin/sh\necho "cmake $*"\nexit 1\n' >bin/cmake
printf '#!/bin/sh\n' >bin/nvcc
printf '#!/bin/sh\necho install ok installed\n' >bin/dpkg-query  # all packages are installed
chmod +x bin/*
# quickstart CAPABILITIES: runs quickstart.sh on a machine whose GPUs have these compute
# capabilities. Prints its calls of cmake and its messages.
quickstart() {
  # shellcheck disable=SC2016  # expanded by the program
  printf '#!/bin/sh\nfor word in %s; do echo "$word"; done\n' "$1" >bin/nvidia-smi
  chmod +x bin/nvidia-smi
  PATH=$folder/bin:$PATH "$root/jobs/quickstart.sh" 2>&1 | grep -E '^(cmake|quickstart.sh)' | xargs || true
}
reason="quickstart.sh: the build for GPUs cannot be configured, for the reason above: using the CPU"
check "for GPUs first, then without" is "$(quickstart "9.0 9.0")" "cmake --preset release-cuda $reason cmake --preset release"
check "not for a GPU that is too old" is "$(quickstart 7.5)" "cmake --preset release"
check "not without a GPU" is "$(quickstart "")" "cmake --preset release"

# Copy the scripts. A fake program convoy prints its arguments and writes a result.
mkdir -p tree/build/release-cuda tree/build/release
cp -r "$root/jobs" tree/jobs
printf '#!/bin/sh\n' >bin/cmake
# shellcheck disable=SC2016  # expanded by the programs
printf '#!/bin/sh\nwhile [ "${1#*convoy}" = "$1" ]; do shift; done\nexec "$@"\n' >bin/mpirun
cat >tree/build/release/convoy <<'END'
#!/bin/sh
[ "$1" = train ] || exit 0
echo "trains $*"
while [ "$1" != --out ]; do shift; done
mkdir -p "$2"
echo '{"test_accuracy": 0.9}' >"$2/summary.json"
END
cp tree/build/release/convoy tree/build/release-cuda/convoy
printf '\211HDF\r\n' >tree/data.h5
chmod +x bin/* tree/build/*/convoy
# shellcheck disable=SC2016  # expanded by the program
trains() { # CAPABILITIES: as quickstart, but with data; the output is in the file trained
  printf '#!/bin/sh\nfor word in %s; do echo "$word"; done\n' "$1" >bin/nvidia-smi
  PATH=$folder/bin:$PATH tree/jobs/quickstart.sh tree/data.h5 >trained 2>&1
}
trains "9.0 9.0"
check "on GPUs it trains by a recipe" contains trained "--config jobs/recipes/cifar10.toml --precision bf16"
check "and says so" contains trained "Test accuracy of resnet18_cifar:   0.9"
trains ""
check "on a CPU a small network" contains trained "trains train --model cifar10_quick"
printf '#!/bin/sh\nexit 127\n' >bin/nvidia-smi
printf '#!/bin/sh\necho "cmake $*"\nexit 1\n' >bin/cmake
check "nor without nvidia-smi" is "$(PATH=$folder/bin:$PATH "$root/jobs/quickstart.sh" 2>&1 | grep '^cmake' || true)" "cmake --preset release"
finish
