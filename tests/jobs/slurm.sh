#!/usr/bin/env bash
# Starts a real Slurm on this one machine: a controller and several node daemons, each a node of its
# own.
# Usage: slurm.sh start DIR [NODES] | slurm.sh stop DIR | slurm.sh stop-node DIR NODE
# After start, `. DIR/environment` lets sinfo, sbatch and so on talk to it. It needs no root, no
# systemd and no cgroups. The exit status is 77, with a line that says why, if Slurm is not
# installed or does not start.
set -euo pipefail

skip() { echo "slurm.sh: $*" >&2; exit 77; }

# The folder sbin, which has Slurm's daemons, is not on every PATH.
PATH=$PATH:/usr/sbin:/sbin
name_of_node() { echo "node$1"; }

free_ports() { # COUNT: prints the first of this many successive ports on which nobody listens
  python3 - "$1" <<'PY'
import random, socket, sys
count = int(sys.argv[1])
for _ in range(100):
    first = random.randrange(20000, 30000)
    try:
        sockets = [socket.socket() for _ in range(count)]
        for i, s in enumerate(sockets): s.bind(("127.0.0.1", first + i))
        print(first)
        break
    except OSError:
        pass
    finally:
        for s in sockets: s.close()
PY
}

write_configuration() { # DIR NODES FIRST_PORT
  local dir=$1 nodes=$2 port=$3 node
  dd if=/dev/urandom of="$dir/munge.key" bs=1024 count=1 status=none
  chmod 600 "$dir/munge.key"
  {
    # A requeued job waits until its credential expires, so cred_expire is short. The other settings
    # let Slurm check more often than by default.
    cat <<EOT
ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
SlurmctldPort=$port
AuthType=auth/munge
AuthInfo=socket=$dir/munge.socket,cred_expire=5
CredType=cred/munge
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool-%n
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd-%n.pid
TmpFS=$dir/tmp-%n
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1,sched_min_interval=0,batch_sched_delay=0,bf_interval=1,requeue_setup_env_fail
SlurmdParameters=config_overrides
MpiDefault=none
ReturnToService=2
SlurmdTimeout=6
SlurmctldTimeout=6
InactiveLimit=0
KillWait=5
CompleteWait=0
MinJobAge=600
UnkillableStepTimeout=60
OverTimeLimit=0
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
EOT
    for ((node = 1; node <= nodes; ++node)); do
      echo "NodeName=$(name_of_node "$node") NodeHostname=$(hostname) NodeAddr=127.0.0.1 Port=$((port + node)) CPUs=4"
    done
    echo "PartitionName=main Nodes=ALL Default=YES MaxTime=60 GraceTime=5 State=UP"
    echo "PartitionName=urgent Nodes=ALL PriorityTier=2 MaxTime=60 State=UP"
  } >"$dir/slurm.conf"
  printf 'export SLURM_CONF=%q\n' "$dir/slurm.conf" >"$dir/environment"
}

# Gives the node its own host name if the system allows it. Then messages name the node, and Open
# MPI's files in shared memory have another name on each node. Otherwise turns off Open MPI's use of
# shared memory.
start_node() { # DIR NODE
  local own_name=(unshare --uts sh -c "hostname $2; exec \"\$@\"" slurmd)
  mkdir -p "$1/spool-$2" "$1/tmp-$2"
  if ! unshare --uts true 2>/dev/null; then
    own_name=()
    grep -q OMPI_MCA_btl "$1/environment" || echo 'export OMPI_MCA_btl=self,tcp' >>"$1/environment"
  fi
  "${own_name[@]}" slurmd -N "$2" >"$1/slurmd.out" 2>&1
}

start() { # DIR NODES
  local dir nodes=${2:-3} node tries program
  for program in munged slurmctld slurmd sbatch python3; do
    command -v "$program" >/dev/null || skip "$program is not installed (apt-get install slurm-wlm munge)"
  done
  mkdir -p "$1"
  dir=$(realpath "$1")
  mkdir -p "$dir/state"
  write_configuration "$dir" "$nodes" "$(free_ports $((nodes + 1)))"
  export SLURM_CONF=$dir/slurm.conf
  munged --force --key-file="$dir/munge.key" --socket="$dir/munge.socket" --pid-file="$dir/munged.pid" \
    --log-file="$dir/munged.log" --seed-file="$dir/munge.seed" >"$dir/munged.out" 2>&1 ||
    skip "munged does not start: $(tail -n 1 "$dir/munged.out")"
  slurmctld >"$dir/slurmctld.out" 2>&1 || skip "slurmctld does not start: $(tail -n 1 "$dir/slurmctld.out")"
  for ((node = 1; node <= nodes; ++node)); do
    start_node "$dir" "$(name_of_node "$node")" ||
      skip "slurmd does not start: $(tail -n 1 "$dir/slurmd.out")"
  done
  for ((tries = 0; tries < 100; ++tries)); do
    [ "$(sinfo --noheader --Node --states=idle --format=%N 2>/dev/null | wc -l)" -lt "$nodes" ] || return 0
    sleep 0.2
  done
  skip "the nodes do not become idle: $(tail -n 1 "$dir/slurmctld.log")"
}

end_process() { # PIDFILE SIGNAL
  [ ! -s "$1" ] || kill -"$2" "$(cat "$1")" 2>/dev/null || true
}

stop() { # DIR: ends the jobs, then the daemons, then processes that are left
  local dir file tries process
  dir=$(realpath "$1")
  export SLURM_CONF=$dir/slurm.conf
  timeout 10 scancel --quiet --user="$(id -un)" 2>/dev/null || true
  for ((tries = 0; tries < 50; ++tries)); do
    [ -n "$(timeout 10 squeue --noheader 2>/dev/null)" ] || break
    sleep 0.2
  done
  for file in "$dir"/slurmd-*.pid "$dir/slurmctld.pid" "$dir/munged.pid"; do end_process "$file" TERM; done
  for ((tries = 0; tries < 50; ++tries)); do
    pgrep -f "^slurmctld|^munged.*$dir" >/dev/null || break
    sleep 0.1
  done
  for process in $(pgrep -x slurmstepd); do
    if grep -qzF "SLURM_CONF=$dir/" "/proc/$process/environ" 2>/dev/null; then kill -KILL "$process" || true; fi
  done
}

case "${1:-}" in
  start) start "${@:2}" ;;
  stop) stop "$2" ;;
  stop-node) end_process "$2/slurmd-$3.pid" KILL ;;
  *) sed -n '2,7p' "$0" | cut -c3-; [ "${1:-}" = --help ] || exit 2 ;;
esac
