# shellcheck shell=bash
# train.sbatch and scaling.sh source this file and set $root (Convoy's folder) and $script (their
# name). This file finds the program, checks the job and starts the ranks. Variables that it reads:
#   CONVOY           the program; default: the newest under build/, or the installed one
#   CONVOY_MODULES   environment modules to load first, e.g. "openmpi/4.1 cuda/12.4 nccl hdf5"
#   CONVOY_LAUNCHER  srun or mpirun; default: srun if Slurm gave the job and has PMIx, else mpirun
#   CONVOY_MPIRUN    more flags for mpirun, e.g. "--hostfile hosts"

# shellcheck disable=SC2154  # set by the caller
fail() { echo "$script: $*" >&2; exit "${fail_status:-1}"; }
usage_error() { fail_status=2 fail "$@"; }

# value_of FLAG ARGUMENTS…: prints the value that the arguments give to the flag. If the flag is
# repeated, the last value counts, as in the program.
value_of() {
  local flag=$1 value=
  shift
  while [ $# -gt 0 ]; do
    case $1 in
      "$flag") value=${2:-} ;;
      "$flag="*) value=${1#*=} ;;
    esac
    shift
  done
  printf '%s' "$value"
}

load_modules() {
  [ -n "${CONVOY_MODULES:-}" ] || return 0
  command -v module >/dev/null || fail "CONVOY_MODULES is '$CONVOY_MODULES', but $(hostname) has no module command"
  local name message
  for name in $CONVOY_MODULES; do
    # Load it in a subshell first to get its message, because the exit status of a failed load
    # differs between Tcl and Lua modules.
    if ! message=$(module load "$name" 2>&1) || grep -qiE 'error|unable to locate' <<<"$message"; then
      fail "module $name of CONVOY_MODULES cannot be loaded on $(hostname): $(head -n 1 <<<"$message")"
    fi
    module load "$name" >/dev/null 2>&1
  done
}

find_program() {
  if [ -z "${CONVOY:-}" ]; then
    # shellcheck disable=SC2012,SC2154  # names of our own build folders; root is the caller's
    CONVOY=$(ls -t "$root"/build/{cuda,release-cuda,release,cpu}/convoy 2>/dev/null | sed -n 1p || true)  # ls fails if one is missing
    # If Convoy is installed, this file is in PREFIX/share/convoy/jobs and the program in
    # PREFIX/bin.
    if [ -z "$CONVOY" ] && [ -x "$root/../../bin/convoy" ]; then CONVOY=$(realpath "$root/../../bin/convoy"); fi
    [ -n "$CONVOY" ] || fail "no program under $root/build: cmake --preset release && cmake --build --preset release, or set CONVOY"
  fi
  [ -x "$(command -v "$CONVOY")" ] || fail "CONVOY is '$CONVOY', which is not a program"
}

choose_launcher() {
  local launcher=${CONVOY_LAUNCHER:-}
  if [ -z "$launcher" ]; then
    launcher=mpirun
    if [ -n "${SLURM_JOB_ID:-}" ] && srun --mpi=list 2>&1 | grep -w pmix >/dev/null; then launcher=srun; fi
  fi
  case $launcher in
    srun | mpirun) ;;
    *) usage_error "CONVOY_LAUNCHER is '$launcher', expected srun or mpirun" ;;
  esac
  command -v "$launcher" >/dev/null || fail "$launcher is not on the PATH of $(hostname): load a module, or set CONVOY_LAUNCHER"
  CONVOY_LAUNCHER=$launcher
}

# The command that starts a rank. It binds the rank to the cores near its GPU, if there is a GPU and
# the system names these cores. Ranks that get the same cores then divide them among themselves, so
# the launcher must not bind ranks.
# shellcheck disable=SC2016  # expanded by the rank
near_gpu='
local_rank=${OMPI_COMM_WORLD_LOCAL_RANK:-${SLURM_LOCALID:-0}}
if command -v nvidia-smi >/dev/null && command -v taskset >/dev/null; then
  # The GPU of this rank is the one at its local rank in CUDA_VISIBLE_DEVICES, or the only one
  # there.
  IFS=, read -ra visible <<<"${CUDA_VISIBLE_DEVICES:-}"
  gpu=$local_rank
  [ "${#visible[@]}" -eq 0 ] || gpu=${visible[local_rank % ${#visible[@]}]}
  bus=$(nvidia-smi -i "$gpu" --query-gpu=pci.bus_id --format=csv,noheader 2>/dev/null | tr A-F a-f)
  cores=$(cat "${CONVOY_SYSFS:-/sys}/bus/pci/devices/${bus#0000}/local_cpulist" 2>/dev/null || true)
  [ -z "$cores" ] || taskset -pc "$cores" $$ >/dev/null 2>&1 || true
fi
exec "$@"'

# launch RANKS COMMAND…: sets the array ${launch[@]} to the command line that starts COMMAND on
# RANKS ranks. RANKS may be fewer than the job has.
launch() {
  local ranks=$1 nodes
  shift
  if [ "$CONVOY_LAUNCHER" = srun ]; then
    # If one rank fails, the program itself ends the others after it has printed the reason. So srun
    # must not end them.
    launch=(srun --mpi=pmix --ntasks="$ranks" --kill-on-bad-exit=0 --quiet)
    nodes=$(nodes_for "$ranks")
    [ -z "$nodes" ] || launch+=(--nodes="$nodes")
    [ -z "${SLURM_CPUS_PER_TASK:-}" ] || launch+=(--cpus-per-task="$SLURM_CPUS_PER_TASK")
    scontrol show config | grep '^TaskPlugin *= *task/none' >/dev/null || launch+=(--cpu-bind=none)
  else
    # mpirun needs keep-alive messages to notice that a host is gone. Open MPI 5 has no --quiet; it
    # accepts the parameter that stands for this flag in Open MPI 4, and passes over it.
    launch=(mpirun -np "$ranks" --bind-to none --oversubscribe --mca orte_execute_quiet 1 --mca oob_tcp_keepalive_time 30
      --mca oob_tcp_keepalive_intvl 5 --mca oob_tcp_keepalive_probes 4)
    # shellcheck disable=SC2206  # several flags in one variable
    launch+=(${CONVOY_MPIRUN:-})
  fi
  launch+=(bash -c "$near_gpu" convoy-rank "$@")
}

# Prints the number of nodes that RANKS ranks fill, or nothing if Slurm does not tell. Ranks fill
# one node before the next, so that a step with fewer ranks than the job does not spread over all
# nodes. SLURM_TASKS_PER_NODE has the form 2(x3),1: three nodes with two tasks and one node with
# one. In a job without a number of tasks it counts cores.
nodes_for() { # RANKS
  [ -n "${SLURM_NTASKS:-}${SLURM_NTASKS_PER_NODE:-}" ] || return 0
  local left=$1 nodes=0 tasks=${SLURM_TASKS_PER_NODE:-} entry times
  for entry in ${tasks//,/ }; do
    [[ $entry =~ ^([0-9]+)(\(x([0-9]+)\))?$ ]] || return 0
    times=${BASH_REMATCH[3]:-1}
    for ((; times > 0 && left > 0; --times)); do left=$((left - BASH_REMATCH[1])) nodes=$((nodes + 1)); done
  done
  [ "$left" -gt 0 ] || echo "$nodes"
}

# Fails unless every node shows at least as many GPUs as it has ranks. Without this check each rank
# would print a message of its own.
check_gpus() { # RANKS
  local report seen
  # shellcheck disable=SC2016
  local count='echo "$(hostname) $(nvidia-smi --list-gpus 2>/dev/null | grep -c "^GPU ")"'
  if [ -n "${SLURM_JOB_ID:-}" ]; then
    local nodes=${SLURM_JOB_NUM_NODES:-1} per_node
    per_node=$((($1 + nodes - 1) / nodes))
    report=$(srun --quiet --nodes="$nodes" --ntasks="$nodes" --ntasks-per-node=1 bash -c "$count" 2>/dev/null) ||
      fail "srun cannot look for GPUs on the job's nodes"
  else
    local per_node=$1
    report=$(bash -c "$count")
  fi
  while read -r node seen; do
    [ "$seen" -ge "$per_node" ] ||
      fail "--backend cuda: node $node shows $seen GPUs, its ranks need $per_node (sbatch --gpus-per-node=$per_node)"
  done <<<"$report"
}
