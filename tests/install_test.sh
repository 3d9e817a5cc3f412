#!/usr/bin/env bash
# Checks that `cmake --install` installs the program, the scripts, the pages and the completion, and
# that they work.
# Usage: tests/install_test.sh CMAKE BUILD
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=jobs/support.sh
. "$(dirname "$0")/jobs/support.sh"
trap 'rm -rf "$folder"' EXIT
unset CONVOY  # the scripts must find the installed program
installed=$folder/installed
"$1" --install "$2" --prefix "$installed" >/dev/null
version=$(sed -n 's/^project(convoy VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt")
"$installed/bin/convoy" --version >"$folder/version"
check "the program" contains "$folder/version" "convoy $version"
for page in README.md CHANGELOG.md docs/running.md docs/results/README.md; do
  check "the page $page" test -s "$installed/share/doc/convoy/$page"
done
check "the version has its entry in CHANGELOG.md" grep -qx "## $version" "$root/CHANGELOG.md"
check "the completion" "$root/tests/completion_test.sh" "$installed/bin/convoy"
check "is where bash looks for it" cmp -s "$root/jobs/packaging/completion.bash" \
  "$installed/share/bash-completion/completions/convoy"
check "report" test -x "$installed/share/convoy/jobs/report"
for script in scaling.sh train.sbatch; do
  check "$script --help" "$installed/share/convoy/jobs/$script" --help >/dev/null
done
check "scaling.sh starts the installed program" "$installed/share/convoy/jobs/scaling.sh" --models linear --batches 2 \
  --size 32 --ranks 1 --steps 1 --repeats 1 --scaling weak --threads 1 --backend cpu "$folder/out" >/dev/null
check "and no other" contains "$folder/out/weak/linear-b2-fp32/ranks-1/repeat-1/manifest.json" "$installed/bin/convoy"
finish
