# shellcheck shell=bash
# The tests of jobs/ source this file. Each test prints what it checks. It ends with status 0 if all
# checks hold, 1 if not, and 77 if this machine cannot run it.
# shellcheck disable=SC2034  # root, folder: for those who source this
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
CONVOY=${CONVOY:-$root/build/cpu/convoy}
export CONVOY OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive
# Containers run tests as root, and with more ranks than cores.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
folder=$(mktemp -d)
# Exit on signals, so that the trap for EXIT always cleans up.
trap "exit 1" INT TERM
failures=0

# Checks print to descriptor 3, so that their messages show even if standard output is redirected.
exec 3>&1
check() { # DESCRIPTION COMMAND…
  local description=$1
  shift
  if "$@"; then
    echo "ok: $description" >&3
  else
    echo "FAILED: $description ($*)" >&3
    failures=$((failures + 1))
  fi
}
skip() { echo "skipped: $*"; exit 77; }
finish() { [ "$failures" -eq 0 ] || { echo "$failures checks failed"; exit 1; }; }

is() { [ "$1" = "$2" ] || { echo "  found '$1', expected '$2'"; return 1; }; }
at_most() { [ "$1" -le "$2" ] || { echo "  found $1, expected at most $2"; return 1; }; }
contains() { grep -qF -- "$2" "$1" || { echo "  no '$2' in $1:"; tail -n 20 "$1"; return 1; }; }
fails_with() { # STATUS COMMAND…
  local expected=$1 status=0
  shift
  "$@" || status=$?
  is "$status" "$expected"
}

# await SECONDS COMMAND…: repeats the command until it succeeds, for at most SECONDS.
await() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@"; do
    [ "$SECONDS" -lt "$deadline" ] || { echo "  gave up waiting for: $*"; return 1; }
    sleep 0.1
  done
}

field() { # FILE KEY: prints the value of a key in a summary.json
  sed -n "s/.*\"$2\": *\"\{0,1\}\([^\",]*\).*/\1/p" "$1" | sed -n 1p
}
sha_of() { field "$1/summary.json" parameters_sha256; }
logged() { # FOLDER STEPS: succeeds if the run has logged at least as many steps
  [ "$(grep -cs step "$1/metrics.jsonl" || true)0" -ge "${2}0" ]
}
ranks_of() { # FOLDER: prints the ids of the processes that train into the folder
  pgrep -f -- "^$CONVOY train .*--out $1( |\$)"
}
# whole_checkpoint FOLDER DATA: checks that the program accepts the newest checkpoint, and that no
# file is left half-written.
whole_checkpoint() {
  local newest
  newest=$(find "$1/checkpoint" -name 'step-*.h5' 2>/dev/null | sort | tail -n 1)
  [ -n "$newest" ] || { echo "  no checkpoint in $1"; return 1; }
  "$CONVOY" evaluate --checkpoint "$newest" --data "$2" --threads 1 >/dev/null
}
