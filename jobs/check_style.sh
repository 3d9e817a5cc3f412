#!/usr/bin/env bash
# Checks the style in seconds: format, length of comment lines, includes, scripts and spelling.
# Usage: jobs/check_style.sh [--tidy BUILD] [BASE]
#   BASE          commit before the change; default: the merge base with main. On main: HEAD~1,
#                 or HEAD if it is a merge, because the merged branch was checked before
#   --tidy BUILD  also runs clang-tidy over the lines that the change touches; BUILD is a build
#                 folder, such as build/cpu. It takes six seconds of processor time per file.
# Every finding is printed with its file and line, and the exit status is 1 if there are any. A tool
# that is missing is named and left out.
set -euo pipefail
case "${1:-}" in -h | --help) sed -n '2,9p' "$0" | cut -c3-; exit 0 ;; esac
fail_usage() { echo "check_style.sh: $*; see --help" >&2; exit 2; }
build=''
if [ "${1:-}" = --tidy ]; then
  [ -n "${2:-}" ] || fail_usage "--tidy: found no value, expected a build folder"
  build=$(realpath -m -- "$2")
  [ -f "$build/compile_commands.json" ] || fail_usage "--tidy $2: found no compile_commands.json, expected a configured build folder"
  shift 2
fi
case "${1:-}" in -*) fail_usage "unknown flag '$1'" ;; esac
[ $# -le 1 ] || fail_usage "found '$2' after '$1', expected one commit"
cd "$(dirname "$0")/.."
git rev-parse --git-dir >/dev/null 2>&1 || { echo "check_style.sh: $PWD: found no git checkout, expected one" >&2; exit 1; }
if [ -n "${1:-}" ]; then
  base=$(git rev-parse --verify --quiet "$1^{commit}") || fail_usage "found '$1', expected a commit"
else
  base=$(git merge-base HEAD main 2>/dev/null || git merge-base HEAD origin/main 2>/dev/null || true)
  if [ "$base" = "$(git rev-parse HEAD)" ] && ! git rev-parse --verify --quiet HEAD^2 >/dev/null; then
    base=$(git rev-parse --verify --quiet HEAD~1 || true)
  fi
  # Without history, compare with the empty tree, so that everything counts as changed.
  base=${base:-$(git hash-object -t tree /dev/null)}
fi

failed=no
finding() { # TITLE COMMAND…: reports the command's output as a finding; ignores its status
  { "${@:2}" || true; } >"$log" 2>&1
  [ -s "$log" ] || return 0
  failed=yes
  echo "check_style.sh: $1:"
  cat "$log"
}
missing() { echo "check_style.sh: $1 is missing (apt-get install $1): $2 not checked"; }
log=$(mktemp)
trap 'rm -f "$log"' EXIT

mapfile -t sources < <(git diff --name-only --diff-filter=d "$base" -- '*.cpp' '*.h' '*.cu' '*.cuh')
mapfile -t all_sources < <(git ls-files '*.cpp' '*.h' '*.cu' '*.cuh')
# Use only version 14, by which the whole tree is formatted, because other versions format
# differently.
format=''
for candidate in clang-format-14 clang-format; do
  if [ -z "$format" ] && "$candidate" --version 2>/dev/null | grep 'version 14\.' >/dev/null; then format=$candidate; fi
done
formatting() {
  printf '%s\n' "${all_sources[@]}" | xargs -d '\n' -n 50 -P "$(nproc)" "$format" --dry-run 2>&1 |
    sed -n 's/^\([^: ]*\):[0-9]*:[0-9]*: warning:.*/\1/p' | sort -u
}
if [ -n "$format" ]; then
  finding "run $format -i on these files" formatting
else
  echo "check_style.sh: found no clang-format 14 (pip install clang-format==14.0.6): formatting is not checked"
fi

finding "includes that go up or sideways" tests/include_order.sh
if command -v python3 >/dev/null; then
  finding "standard headers that only some compilers include by others" python3 tests/std_includes.py
else
  missing python3 "standard headers are"
fi

# Prints lines of more than 100 columns that hold only a comment: in all sources, and among the
# lines that the change adds to scripts.
long_comments() {
  printf '%s\n' "${all_sources[@]}" | LC_ALL=C.UTF-8 xargs -d '\n' grep -nP '^(?=\s*//).{101,}'
  git diff -U0 --no-color --dst-prefix=b/ "$base" -- '*.sh' '*.sbatch' '*CMakeLists.txt' |
    awk '/^\+\+\+ / { file = substr($2, 3) }
         /^@@/ { split($3, at, ","); line = substr(at[1], 2) - 1 }
         /^\+/ && !/^\+\+\+ / { ++line; print file ":" line ":\t" substr($0, 2) }' |
    LC_ALL=C.UTF-8 grep -P '\t(?=\s*# ).{101,}'
}
finding "comments of more than 100 columns" long_comments

mapfile -t scripts < <(git ls-files '*.sh' '*.sbatch' '*.bash' .ci/run)
if command -v shellcheck >/dev/null; then
  finding "shellcheck" shellcheck -x "${scripts[@]}"
else
  missing shellcheck "shell scripts are"
fi

# codespell takes the ignored words for mistakes: "inout" (a buffer for input and output), "fro" (as
# in "to and fro"), "commun." (short for communication), and "trian" (a typing error in a test).
spelling() {
  git ls-files | grep -vE '\.(png|svg|tsv|h5|onnx|jpe?g)$' |
    xargs -d '\n' codespell --ignore-words-list=inout,fro,commun,trian
}
if command -v codespell >/dev/null; then finding "spelling" spelling; else missing codespell "spelling is"; fi

tidy_of_lines() {
  local compiled
  mapfile -t compiled < <(printf '%s\n' "${sources[@]}" | grep '\.cpp$' |
    while read -r file; do ! grep -qF "\"file\": \"$PWD/$file\"" "$build/compile_commands.json" || echo "$file"; done)
  [ ${#compiled[@]} -eq 0 ] || git diff -U0 --no-color --dst-prefix=b/ "$base" -- "${compiled[@]}" |
    "$tidy" -p1 -path "$build" -j "$(nproc)" -quiet 2>/dev/null | grep -E ': (error|warning): ' | sort -u
}
if [ -n "$build" ]; then
  tidy=$(command -v clang-tidy-diff-14.py || command -v clang-tidy-diff || true)
  if [ -n "$tidy" ]; then finding "clang-tidy" tidy_of_lines; else missing clang-tidy "clang-tidy's rules are"; fi
fi
[ "$failed" = no ] || exit 1
echo "Style: nothing found in ${#all_sources[@]} sources and ${#scripts[@]} scripts; ${#sources[@]} sources differ from ${base:0:12}"
