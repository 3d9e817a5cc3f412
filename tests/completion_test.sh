#!/usr/bin/env bash
# Checks that bash's completion for convoy offers the verbs and flags of `convoy --help`.
# Usage: tests/completion_test.sh CONVOY
set -euo pipefail
convoy=$1
cd "$(dirname "$0")/.."
# shellcheck source=jobs/packaging/completion.bash
. jobs/packaging/completion.bash
failures=0
expect() { # WORDS… -- OFFERS…: checks that completion of the line WORDS offers exactly OFFERS
  local line expected
  line=("$1")  # the first word is a verb or the beginning of one
  shift
  while [ "$1" != -- ] || [ "${2:-}" = -- ]; do line+=("$1"); shift; done
  shift
  expected=$*
  COMP_WORDS=("$convoy" "${line[@]}") COMP_CWORD=${#line[@]} COMPREPLY=()
  _convoy
  [ "${COMPREPLY[*]}" = "$expected" ] && return
  echo "convoy ${line[*]}: found '${COMPREPLY[*]}', expected '$expected'"
  failures=$((failures + 1))
}
expect t -- train
expect ben -- bench
expect bench st -- step
expect train --back -- --backend
expect train --sync -- --sync-batch-norm
expect train --no-sync -- --no-sync-batch-norm
expect train --backend c -- cpu cuda
expect train --backend = -- cpu cuda reference
expect train --backend = cu -- cuda
expect train --seed 3 --feed s -- slice scatter
expect info --model alex -- alexnet
expect bench step --model = goog -- googlenet
expect train --data some_file --  # nothing: bash completes files itself
# Check every verb and flag of --help, so that no list of them is needed here.
for verb in $("$convoy" --help | awk '/^Subcommands:/ { on = 1; next } on { print $1 }'); do
  expect "$verb" -- "$verb"
  mapfile -t flags < <("$convoy" "$verb" --help | grep -oE '^  --[^ ]+' | tr -d ' ' | tr , '\n')
  expect "$verb" -- -- "${flags[@]}"
done
[ "$failures" -eq 0 ]
