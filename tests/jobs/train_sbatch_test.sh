#!/usr/bin/env bash
# Tests jobs/train.sbatch under a real Slurm on this machine: the normal end, a time limit, a
# preemption, scancel, a killed rank, a lost node, and the messages if something is missing.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=support.sh
. "$(dirname "$0")/support.sh"

cleanup() {
  "$root/tests/jobs/slurm.sh" stop "$folder/slurm" 2>/dev/null || true
  rm -rf "$folder"
}
trap cleanup EXIT
status=0
"$root/tests/jobs/slurm.sh" start "$folder/slurm" 4 2>"$folder/why" || status=$?
[ "$status" -ne 77 ] || skip "$(cat "$folder/why")"
[ "$status" -eq 0 ] || { cat "$folder/why"; exit 1; }
# shellcheck disable=SC1091  # written by slurm.sh
. "$folder/slurm/environment"
unset CONVOY_ROOT CONVOY_LAUNCHER CONVOY_MODULES
cd "$folder"

data=$folder/figures.h5
"$CONVOY" data synth "$data" --classes 10 --size 32 --train 600 --test 60 --seed 3 >/dev/null
steps=60
flags=(--model lenet --data "$data" --global-batch 32 --steps "$steps" --seed 1 --momentum 0.9 --flip --threads 1
  --log-every 1 --checkpoint-every-steps 7 --timeout 60)

submit() { # NAME SBATCH_FLAGS… -- TRAINING_FLAGS…: prints the job's number
  local name=$1 sbatch=()
  shift
  while [ "$1" != -- ]; do sbatch+=("$1"); shift; done
  shift
  sbatch --parsable --time=5 --signal=B:USR1@60 --output="$folder/$name.log" --job-name="$name" "${sbatch[@]}" \
    "$root/jobs/train.sbatch" "$@"
}
train() { # NAME SBATCH_FLAGS…
  local name=$1
  shift
  submit "$name" "$@" -- "${flags[@]}" --out "$folder/$name"
}
job_field() { scontrol --oneliner show job "$1" | sed -n "s/.* $2=\([^ ]*\).*/\1/p"; }
state_is() { [[ " $2 " == *" $(job_field "$1" JobState) "* ]]; }
ended() { # JOB SECONDS: waits for at most SECONDS until the job has ended
  await "$2" state_is "$1" "COMPLETED FAILED CANCELLED TIMEOUT NODE_FAIL OUT_OF_MEMORY" && return
  squeue --long
  sinfo --Node --long
  tail -n 5 -- *.log slurm/*.log
  return 1
}

hold_one() {
  local ranks
  await 60 logged "$1" 10
  mapfile -t ranks < <(ranks_of "$folder/$1")
  [ "${#ranks[@]}" -gt 0 ] || { echo "no ranks of $1 are left to be held"; return 1; }
  kill -STOP "${ranks[@]}"
}
# hold NAME…: stops the ranks of these jobs during training, as soon as they have started. They go
# on when they get SIGCONT.
hold() {
  local name holder holders=()
  for name; do
    hold_one "$name" &
    holders+=($!)
  done
  for holder in "${holders[@]}"; do wait "$holder"; done
}
release() { # NAME
  local ranks
  mapfile -t ranks < <(ranks_of "$folder/$1")
  kill -CONT "${ranks[@]}" 2>/dev/null || true
}
any_awake() { # NAME: succeeds if at least one held rank of the job runs again
  local rank
  for rank in $(ranks_of "$folder/$1"); do
    [[ $(ps -o state= -p "$rank") == T* ]] || return 0
  done
  return 1
}
went_on_where_it_stopped() { # NAME
  local stopped
  stopped=$(sed -n 's/^stopped by a signal after step \([0-9]*\);.*/\1/p' "$1.log")
  [ -n "$stopped" ] || { echo "  no checkpoint by a signal in $1.log"; return 1; }
  is "$(sed -n 's/^ *resumed  *after step //p' "$1.log")" "$stopped"
}

echo "== The normal end, with 2 and 4 ranks and both launchers"
two=$(CONVOY_LAUNCHER=srun train two --ntasks=2)
ended "$two" 240
four=$(CONVOY_LAUNCHER=srun train four --nodes=2 --ntasks-per-node=2)
ended "$four" 240
by_mpirun=$(CONVOY_LAUNCHER=mpirun train by_mpirun --nodes=2 --ntasks-per-node=2)
ended "$by_mpirun" 240
for job in "$two" "$four" "$by_mpirun"; do check "job $job completes" is "$(job_field "$job" JobState)" COMPLETED; done
check "4 ranks end with the same parameters under srun and mpirun" is "$(sha_of by_mpirun)" "$(sha_of four)"
check "rank 3 is on the second node" grep -qE "rank 3  +node2" four.log

echo "== A time limit shorter than the training"
# Slurm counts limits in minutes and checks them every half minute. The test stops the ranks until
# Slurm acts, so that the limit is too short on any machine.
limited=$(train limited --ntasks=2 --time=1 --signal=B:USR1@58)
await 60 logged limited 10
mapfile -t ranks < <(ranks_of "$folder/limited")
check "two ranks run" is "${#ranks[@]}" 2
kill -STOP "${ranks[@]}"
await 60 grep -q 'SIGUSR1: the ranks finish' limited.log
kill -CONT "${ranks[@]}"
ended "$limited" 240
check "the job ran twice" is "$(job_field "$limited" Restarts)" 1
check "it completes" is "$(job_field "$limited" JobState)" COMPLETED
check "it resumed" grep -q 'resumed  *after step' limited.log
check "its parameters are those of the run that was not stopped" is "$(sha_of limited)" "$(sha_of two)"

echo "== A time limit shorter than the start-up"
printf '#!/bin/sh\ntrap "exit 75" USR1\nwhile :; do sleep 0.1; done\n' >slow_start
chmod +x slow_start
slow=$(CONVOY=$folder/slow_start train slow --ntasks=1 --time=1 --signal=B:USR1@58)
ended "$slow" 120
check "the job fails" is "$(job_field "$slow" JobState)" FAILED
check "it is not put back" is "$(job_field "$slow" Restarts)" 0
check "the reason" contains slow.log "the time limit came before the job's first checkpoint"

echo "== A job of higher priority"
# Slurm sends SIGCONT and SIGTERM to the stopped ranks. If srun started them, all ranks get the
# signals. If mpirun did, the ranks on the first node belong to the job's script, which Slurm does
# not signal yet. As soon as one rank runs again, the test lets the others go on.
launchers="srun mpirun"
declare -A job_of
for launcher in $launchers; do
  job_of[$launcher]=$(CONVOY_LAUNCHER=$launcher train "preempted_$launcher" --nodes=2 --ntasks-per-node=1)
done
hold preempted_srun preempted_mpirun
urgent=$(sbatch --parsable --partition=urgent --nodes=4 --exclusive --output=urgent.log --wrap=true)
for launcher in $launchers; do
  await 30 any_awake "preempted_$launcher"
  sleep 0.3  # Slurm's second signal comes soon after the first
  release "preempted_$launcher"
done
ended "$urgent" 60
for launcher in $launchers; do
  ended "${job_of[$launcher]}" 240
  check "$launcher: the job ran twice" is "$(job_field "${job_of[$launcher]}" Restarts)" 1
  check "$launcher: it completes" is "$(job_field "${job_of[$launcher]}" JobState)" COMPLETED
  check "$launcher: it went on where it was stopped" went_on_where_it_stopped "preempted_$launcher"
  check "$launcher: its parameters are those of the run that was not stopped" is "$(sha_of "preempted_$launcher")" "$(sha_of two)"
done
check "within the grace time the script puts its job back" contains preempted_srun.log "preempted, back into the queue"

echo "== scancel, of the job and of its script alone"
declare -A told
for launcher in $launchers; do
  job_of[$launcher]=$(CONVOY_LAUNCHER=$launcher train "cancelled_$launcher" --ntasks=2)
  told[$launcher]=$(CONVOY_LAUNCHER=$launcher train "told_$launcher" --ntasks=2)
done
hold cancelled_srun told_srun cancelled_mpirun told_mpirun
scancel "${job_of[@]}"
scancel --batch --signal=TERM "${told[@]}"
for launcher in $launchers; do
  await 30 grep -q 'SIGTERM: the ranks finish' "told_$launcher.log"
  release "told_$launcher"
  ended "${told[$launcher]}" 30
  check "$launcher: told to stop the job ends with 75" is "$(job_field "${told[$launcher]}" ExitCode)" 75:0
  check "$launcher: and its checkpoint" contains "told_$launcher.log" "train.sbatch: stopped with a checkpoint"
  ended "${job_of[$launcher]}" 30
  check "$launcher: the job is cancelled" is "$(job_field "${job_of[$launcher]}" JobState)" CANCELLED
  check "$launcher: the user reads what happened" contains "cancelled_$launcher.log" "train.sbatch: stopped with a checkpoint"
  job_of[$launcher]=$(CONVOY_LAUNCHER=$launcher train "cancelled_$launcher" --ntasks=2)
done
for launcher in $launchers; do
  ended "${job_of[$launcher]}" 240
  check "$launcher: submitted again it goes on where it was stopped" went_on_where_it_stopped "cancelled_$launcher"
  check "$launcher: and ends with the same parameters" is "$(sha_of "cancelled_$launcher")" "$(sha_of two)"
done

echo "== A rank killed"
killed=$(train killed --nodes=2 --ntasks-per-node=1)
await 60 logged killed 10
mapfile -t ranks < <(ranks_of "$folder/killed")
kill -KILL "${ranks[1]}"
ended "$killed" 30
check "the job fails" is "$(job_field "$killed" JobState)" FAILED
check "the message names what happened" contains killed.log "died (killed or crashed)"
check "the checkpoint is whole" whole_checkpoint killed "$data"
again=$(train killed --nodes=2 --ntasks-per-node=1)
ended "$again" 240
check "submitted again it ends with the same parameters" is "$(sha_of killed)" "$(sha_of two)"

echo "== A node daemon killed"
lost=$(train lost --nodes=2 --ntasks-per-node=1)
await 60 logged lost 10
# Stop the second node, because the job's script runs on the first. The ranks are stopped, so that
# the job cannot end before Slurm checks the nodes.
mapfile -t ranks < <(ranks_of "$folder/lost")
kill -STOP "${ranks[@]}"
second=$(scontrol show hostnames "$(job_field "$lost" NodeList)" | tail -n 1)
"$root/tests/jobs/slurm.sh" stop-node "$folder/slurm" "$second"
await 60 grep -q "Nodes $second not responding, setting DOWN\|$second.*DOWN" slurm/slurmctld.log
kill -CONT "${ranks[@]}" 2>/dev/null || true
ended "$lost" 240
check "Slurm put the job back" is "$(job_field "$lost" Restarts)" 1
check "it completes" is "$(job_field "$lost" JobState)" COMPLETED
check "without the lost node" fails_with 1 grep -q "$second" <<<"$(scontrol show hostnames "$(job_field "$lost" NodeList)")"
check "its parameters are those of the run that was not stopped" is "$(sha_of lost)" "$(sha_of two)"

echo "== What a user reads"
expect_failure() { # NAME STATUS MESSAGE JOB
  ended "$4" 30
  check "$1: the job fails" is "$(job_field "$4" JobState)" FAILED
  check "$1: its exit status" is "$(job_field "$4" ExitCode)" "$2:0"
  check "$1: the reason" contains "$1.log" "$3"
  check "$1: in one line" is "$(grep -cE '^(train.sbatch|convoy): ' "$1.log")" 1
}
rest=(--model lenet --global-batch 8 --steps 1)
no_data=$(submit no_data -- "${rest[@]}" --data none.h5 --out o)
no_out=$(submit no_out -- "${rest[@]}" --data "$data")
no_module=$(CONVOY_MODULES="convoy-none/1" submit no_module -- "${rest[@]}" --data "$data" --out o)
no_program=$(CONVOY=$folder/none submit no_program -- "${rest[@]}" --data "$data" --out o)
no_gpu=$(submit no_gpu --nodes=2 -- "${rest[@]}" --data "$data" --out o --backend cuda)
bad_model=$(submit bad_model -- --model lenett --global-batch 8 --steps 1 --data "$data" --out o)
expect_failure no_data 1 "--data none.h5: no such file" "$no_data"
expect_failure no_out 2 "--out is missing" "$no_out"
expect_failure no_module 1 "convoy-none/1" "$no_module"
expect_failure no_program 1 "$folder/none" "$no_program"
expect_failure no_gpu 1 "shows 0 GPUs" "$no_gpu"
ended "$bad_model" 30
check "bad_model: its exit status" is "$(job_field "$bad_model" ExitCode)" 2:0
check "bad_model: the reason" contains bad_model.log "did you mean 'lenet'"

echo "== scaling.sh submits itself"
submitted=$("$root/jobs/scaling.sh" --submit --models lenet --batches 16 --size 32 --ranks 1,2 --scaling weak --steps 12 \
  --repeats 1 --threads 1 --backend cpu "$folder/scaling of mine" -- --ntasks=2 --time=5)
check "says which job" contains /dev/stdin "Submitted batch job" <<<"$submitted"
scaling=$(sed -n 's/^Submitted batch job \([0-9]*\).*/\1/p' <<<"$submitted")
ended "$scaling" 240
check "the job completes" is "$(job_field "$scaling" JobState)" COMPLETED
for ranks in 1 2; do
  check "$ranks ranks have a result" test -s "$folder/scaling of mine/weak/lenet-b16-fp32/ranks-$ranks/repeat-1/summary.json"
done
check "flags of sbatch are passed on, wrong ones refused" fails_with 1 "$root/jobs/scaling.sh" --submit --models lenet out -- \
  --partition=none 2>partition.log
check "and named" contains partition.log "partition"

check "a bad partition is refused" fails_with 1 submit bad_partition --partition=none -- "${rest[@]}" 2>partition.log
check "and named" contains partition.log "partition"
finish
