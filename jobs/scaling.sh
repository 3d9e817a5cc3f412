#!/usr/bin/env bash
# Measures weak and strong scaling: trains a few steps for every model, batch, precision and number
# of ranks, several times.
#
#   jobs/scaling.sh [options] OUT            here, or in a Slurm job with the ranks of the job
#   jobs/scaling.sh --submit [options] OUT -- [flags of sbatch]
#
#   --models M,…          default: resnet50
#   --batches B,…         images per rank (weak) and of all ranks (strong); default: 256
#   --precisions P,…      default: bf16 with --backend cuda, else fp32
#   --ranks N,…           default: those of 1,2,4,8,16 that the job has
#   --scaling weak|strong|both                default: both
#   --backend cuda|cpu    default: cuda if there is a GPU, else cpu
#   --data FILE --size S  default: synthetic images with sides of 224 pixels
#   --steps N             steps of every run; default: 300 with --backend cuda, else 60. A GPU at
#                         its power limit lowers its clocks in the first seconds, so profiles on
#                         GPUs take as many steps as the runs
#   --repeats N           runs of each kind; default: 3
#   --topology FILE       also predicts rates from a profile of one rank; FILE: see jobs/topologies/
#   --collectives FILE    measured all-reduces and their overlap for the prediction: output of
#                         convoy bench collectives --json; default: measured here with --backend
#                         cuda
#   --threads T           threads of each rank at every rank count; default on CPUs: the cores of a
#                         node divided by its ranks at the largest rank count
#
# Every run is a folder OUT/SCALING/MODEL-bBATCH-PRECISION/ranks-N/repeat-K with manifest.json and
# summary.json. Runs that are there already are not repeated, so the same command goes on where a
# stopped one ended. The file "flags" next to the runs keeps their flags. `jobs/report OUT` draws
# the runs.
# Variables: CONVOY, CONVOY_MODULES, CONVOY_LAUNCHER, CONVOY_MPIRUN, see jobs/launch.sh. The exit
# status is 0 if all runs are there, 1 if some failed, 2 for a wrong command line.
set -euo pipefail
# shellcheck disable=SC2034  # for launch.sh
script=scaling.sh
self=$(realpath "$0")
root=$(dirname "$(dirname "$self")")
# shellcheck source-path=SCRIPTDIR source=launch.sh
. "$root/jobs/launch.sh"

models=resnet50 batches=256 precisions='' ranks_wanted='' scalings=both backend='' data=synthetic size=''
steps='' repeats=3 topology='' collectives='' threads='' submit=no out='' given=("$@")
need() { [ -n "$2" ] || usage_error "$1: expected a value"; }
list() { [[ $2 =~ ^[1-9][0-9]*(,[1-9][0-9]*)*$ ]] || usage_error "$1: found '$2', expected whole numbers above 0 with commas between them"; }
names() { [[ $2 =~ ^[^,[:space:]]+(,[^,[:space:]]+)*$ ]] || usage_error "$1: found '$2', expected names with commas between them"; }
make_folder() { mkdir -p "$1" 2>/dev/null || fail "$1: cannot be made"; }
number() { [[ $2 =~ ^[1-9][0-9]*$ ]] || usage_error "$1: found '$2', expected a whole number above 0"; }
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) sed -n '2,31p' "$0" | sed 's/^# \{0,1\}//'; exit 0 ;;
    --submit) submit=yes; shift; continue ;;
    --) shift; break ;;
    --models | --batches | --precisions | --ranks | --scaling | --backend | --data | --size | --steps | --repeats | \
      --topology | --collectives | --threads) need "$1" "${2:-}" ;;
    -*) usage_error "unknown option $1; --help lists them" ;;
    *) [ -z "$out" ] || usage_error "found '$1' after '$out', expected one folder"; out=$1; shift; continue ;;
  esac
  case $1 in
    --models) names "$@"; models=$2 ;;
    --batches) list "$@"; batches=$2 ;;
    --precisions) names "$@"; precisions=$2 ;;
    --ranks) list "$@"; ranks_wanted=$2 ;;
    --scaling) scalings=$2 ;;
    --backend) backend=$2 ;;
    --data) data=$2 ;;
    --size) number "$@"; size=$2 ;;
    --steps) number "$@"; steps=$2 ;;
    --repeats) number "$@"; repeats=$2 ;;
    --topology) topology=$(realpath -m "$2") ;;
    --collectives) collectives=$(realpath -m "$2") ;;
    --threads) number "$@"; threads=$2 ;;
  esac
  shift 2
done
[ -n "$out" ] || usage_error "the folder for the results is missing; --help shows the use"
case $scalings in weak | strong) ;; both) scalings="weak strong" ;; *) usage_error "--scaling: found '$scalings', expected weak, strong or both" ;; esac
[ -z "$topology" ] || [ -r "$topology" ] || fail "--topology $topology: no such file"
[ "$data" = synthetic ] || [ -r "$data" ] || fail "--data $data: no such file"
[ "$data" = synthetic ] || data=$(realpath "$data")
[ -z "${CONVOY:-}" ] || CONVOY=$(realpath "$(command -v "$CONVOY" || echo "$CONVOY")")
make_folder "$out"
out=$(realpath "$out")

if [ "$submit" = yes ]; then
  command -v sbatch >/dev/null || fail "--submit: there is no sbatch on $(hostname)"
  options=()
  for word in "${given[@]}"; do
    [ "$word" != -- ] || break
    [ "$word" = --submit ] || options+=("$word")
  done
  message=$(sbatch --job-name=convoy-scaling --output="$out/slurm-%j.log" "$@" --wrap "exec $(printf '%q ' "$self" "${options[@]}")" 2>&1) ||
    fail "sbatch: $(tail -n 1 <<<"$message" | sed 's/^sbatch: error: //')"
  echo "$message, results and log in $out"
  exit 0
fi
[ $# -eq 0 ] || usage_error "flags of sbatch ('$1') go with --submit"

load_modules
find_program
choose_launcher
gpus=$(nvidia-smi --list-gpus 2>/dev/null | grep -c '^GPU ' || true)
if [ -z "$backend" ]; then backend=cpu; [ "$gpus" -eq 0 ] || backend=cuda; fi
case $backend in cpu) precisions=${precisions:-fp32} ;; cuda) precisions=${precisions:-bf16} ;; *) usage_error "--backend: found '$backend', expected cuda or cpu" ;; esac
[ "$backend" != cuda ] || [ "$gpus" -gt 0 ] || fail "--backend cuda: no GPU on $(hostname)"
if [ "$backend" = cuda ]; then available=$gpus steps=${steps:-300} profiled=$steps; else available=$(nproc) steps=${steps:-60} profiled=10; fi
available=${SLURM_NTASKS:-$available}
# Without --ranks, there are at most as many ranks on the CPU as cores.
[ -z "$ranks_wanted" ] || [ -n "${SLURM_NTASKS:-}" ] || [ "$backend" = cuda ] || available=1000000
mapfile -t rank_counts < <(tr , '\n' <<<"${ranks_wanted:-1,2,4,8,16}" | sort -nu | awk -v most="$available" '$1 <= most')
[ -z "$ranks_wanted" ] || [ "${rank_counts[*]: -1}" = "$(tr , '\n' <<<"$ranks_wanted" | sort -n | tail -n 1)" ] ||
  fail "--ranks $ranks_wanted: this job has $available"
[ "$backend" != cuda ] || check_gpus "${rank_counts[-1]}"
if [ "$backend" = cpu ] && [ -z "$threads" ]; then
  # Give each rank the same number of threads in all runs. By default a single rank would take all
  # cores of its host, and each of two ranks half of them.
  nodes=${SLURM_JOB_NUM_NODES:-1}
  per_node=$(((${SLURM_NTASKS:-${rank_counts[-1]}} + nodes - 1) / nodes))
  threads=${SLURM_CPUS_PER_TASK:-$(($(nproc) / per_node))}
  [ "$threads" -gt 0 ] || threads=1
  echo "Threads of a rank at every rank count: $threads (--threads)"
fi

# The profiles must use the image size and the number of classes of the runs.
if [ "$data" = synthetic ]; then
  size=${size:-224} classes=10
  [ "$size" -le 64 ] || classes=1000
else
  described=$("$CONVOY" data info "$data" 2>&1) || fail "--data ${described#convoy: }"
  read -r height width < <(sed -n 's/^images  *\([0-9]*\)x\([0-9]*\).*/\1 \2/p' <<<"$described")
  [ -n "$size" ] || [ -z "$topology" ] || [ "$height" = "$width" ] ||
    fail "--data $data: found images of ${height}x$width, expected as many rows as columns for a prediction: --size N"
  classes=$(sed -n 's/^classes  *//p' <<<"$described")
fi
common=(--data "$data" --steps "$steps" --backend "$backend" --seed 1 --eval-every 0 --limit-test 64 --no-sync-batch-norm
  --learning-rate 1e-4 --checkpoint-every-epochs 0 --log-every 10)
[ -z "$size" ] || common+=(--size "$size")
size=${size:-$height}
[ "$data" != synthetic ] || common+=(--classes "$classes")
[ -z "$threads" ] || common+=(--threads "$threads")
# keep_flags FOLDER: writes the flags that all runs of the folder have in common to FOLDER/flags.
# Fails if earlier runs in the folder had other flags.
keep_flags() {
  make_folder "$1"
  if ! compgen -G "$1/ranks-*/repeat-*/summary.json" >/dev/null && ! compgen -G "$1/profile-*.jsonl" >/dev/null; then
    { echo "${common[*]}" >"$1/flags"; } 2>/dev/null || fail "$1/flags: cannot be written"
  fi
  local found
  found=$(cat "$1/flags" 2>/dev/null) || fail "$1: found runs without their flags, expected a file \"flags\" beside them: another folder"
  [ "$found" = "${common[*]}" ] || fail "$1: found runs with '$found', expected '${common[*]}': the same flags, or another folder"
}
for model in ${models//,/ }; do for batch in ${batches//,/ }; do for precision in ${precisions//,/ }; do
  for kind in $scalings ${topology:+prediction}; do keep_flags "$out/$kind/$model-b$batch-$precision"; done
done; done; done
# Prints the program's error message if the log has one, else the last line of the log.
reason_of() { grep -m 1 '^convoy: ' "$1" || grep '[a-z]' "$1" | tail -n 1 | grep . || echo "no message in $1"; }
# Ends the running launcher and this script. Without this trap, bash would start the next run after
# ^C, because the launcher handles ^C itself. A signal also ends bash's wait at once.
stop() { # STATUS
  # shellcheck disable=SC2046  # numbers
  kill $(jobs -p) 2>/dev/null || true
  wait
  fail_status=$1 fail "stopped; the same line goes on"
}
trap 'stop 130' INT
trap 'stop 143' TERM
done_runs=0 old_runs=0 failed_runs=0

# one_run FOLDER RANKS TRAINING_FLAGS…: runs a training in FOLDER.part and renames this folder at
# the end, so that a folder with results is complete.
one_run() {
  local folder=$1 ranks=$2
  shift 2
  if [ -s "$folder/summary.json" ]; then
    old_runs=$((old_runs + 1))
    return
  fi
  rm -rf "$folder.part"
  make_folder "$folder.part"
  launch "$ranks" "$CONVOY" train "$@" --out "$folder.part"
  "${launch[@]}" >"$folder.part/log" 2>&1 &
  if wait "$!" && [ -s "$folder.part/summary.json" ]; then
    rm -rf "$folder" "$folder.part/checkpoint"
    mv "$folder.part" "$folder"
    done_runs=$((done_runs + 1))
    echo "${folder#"$out"/}: $(sed -n 's/.*"images_per_second": *\([0-9.]*\).*/\1/p' "$folder/summary.json") images/s"
  else
    failed_runs=$((failed_runs + 1))
    echo "$script: ${folder#"$out"/} failed: $(reason_of "$folder.part/log")" >&2
  fi
}

measured_collectives=()
measure_collectives() {
  if [ -n "$collectives" ]; then measured_collectives=(--collectives "$collectives"); return; fi
  [ "$backend" = cuda ] || return 0
  make_folder "$out/prediction"
  local ranks file
  for ranks in "${rank_counts[@]}"; do
    [ "$ranks" -gt 1 ] || continue
    file=$out/prediction/collectives-$ranks.jsonl
    if [ ! -s "$file" ]; then
      launch "$ranks" "$CONVOY" bench collectives --backend cuda --operations all-reduce,gradients,overlap \
        --milliseconds 2 --json
      "${launch[@]}" >"$file.part" 2>"$file.log" &
      wait "$!" || fail "the collectives of $ranks ranks failed: $(reason_of "$file.log")"
      mv "$file.part" "$file"
    fi
    measured_collectives+=(--collectives "$file")
  done
}
# Check the topology before anything is measured. Its field device.gflops may be missing, because
# only estimates without measurements need it.
[ -z "$topology" ] || message=$("$CONVOY" simulate --model "${models%%,*}" --topology "$topology" --ranks 1 --batch 1 \
  --precision "${precisions%%,*}" --json 2>&1 >/dev/null) || [[ $message == *device.gflops* ]] ||
  fail "--topology $topology: ${message#convoy: }"
[ -z "$topology" ] || measure_collectives

# Measures one rank at all batches of the experiment, and predicts the rates of all numbers of ranks
# from these profiles.
predict() {  # arguments: MODEL BATCH PRECISION
  local model=$1 batch=$2 precision=$3 folder=$out/prediction/$1-b$2-$3 sizes=("$2") ranks profile flags
  for ranks in "${rank_counts[@]}"; do [ "$((batch / ranks))" -eq 0 ] || sizes+=("$((batch / ranks))"); done
  flags=()
  for batch in $(printf '%s\n' "${sizes[@]}" | sort -nru); do
    profile=$folder/profile-b$batch-$profiled.jsonl
    if ! grep -qs '"ms_mean"' "$profile"; then  # measure again if an older program made the profile
      launch 1 "$CONVOY" bench step --model "$model" --batch "$batch" --size "$size" --classes "$classes" \
        --backend "$backend" --precision "$precision" --steps "$profiled" --layers --json ${threads:+--threads "$threads"}
      "${launch[@]}" >"$profile.part" 2>"$profile.log" &
      wait "$!" || fail "the profile of $model failed: $(reason_of "$profile.log")"
      mv "$profile.part" "$profile"
    fi
    flags+=(--profile "$profile")
  done
  flags+=("${measured_collectives[@]}")
  "$CONVOY" simulate --model "$model" --topology "$topology" --batch "$2" --global-batch "$2" --precision "$precision" --classes "$classes" \
    --ranks "$(IFS=,; echo "${rank_counts[*]},$((2 * rank_counts[-1])),$((4 * rank_counts[-1]))")" \
    "${flags[@]}" --json >"$folder/prediction.jsonl.part" || fail "the prediction of $model failed"
  mv "$folder/prediction.jsonl.part" "$folder/prediction.jsonl"
}

for model in ${models//,/ }; do for batch in ${batches//,/ }; do for precision in ${precisions//,/ }; do
  [ -z "$topology" ] || predict "$model" "$batch" "$precision"
  for scaling in $scalings; do for ranks in "${rank_counts[@]}"; do
    global=$batch
    [ "$scaling" = strong ] || global=$((batch * ranks))
    if [ "$global" -lt "$ranks" ]; then
      echo "scaling.sh: $model, $global images over $ranks ranks: left out, less than one each" >&2
      continue
    fi
    for ((repeat = 1; repeat <= repeats; ++repeat)); do
      one_run "$out/$scaling/$model-b$batch-$precision/ranks-$ranks/repeat-$repeat" "$ranks" --model "$model" \
        --precision "$precision" --global-batch "$global" "${common[@]}"
    done
  done; done
done; done; done
echo "$done_runs runs done, $old_runs were there, $failed_runs failed; jobs/report $out"
[ "$failed_runs" -eq 0 ]
