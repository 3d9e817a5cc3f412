#!/usr/bin/env bash
# Checks the pages of documentation: links must lead somewhere, flags must exist, and pages of
# results must be short and without a history.
# Usage: tests/pages_test.sh CONVOY
set -euo pipefail
convoy=$1
cd "$(dirname "$0")/.."
failures=0
wrong() { echo "$*"; failures=$((failures + 1)); }
at_most() { # LINES FILE: checks that the file has at most LINES lines
  local lines
  lines=$(wc -l <"$2")
  [ "$lines" -le "$1" ] || wrong "$2: found $lines lines, expected at most $1"
}
mapfile -t pages < <(find . -name '*.md' -not -path './build/*' -not -path './.*' -not -path './quickstart-data/*' | sort)

at_most 130 README.md
at_most 50 CONTRIBUTING.md
at_most 40 tests/README.md
for page in docs/results/*.md; do
  at_most 150 "$page"
  ! grep -nwi '[a]sked' "$page" || wrong "$page: a column or a remark tells what somebody wanted, expected what was measured"
  ! grep -nE '^#.*(20[0-9]{2}|January|February|March|April|May|June|July|August|September|October|November|December)' "$page" ||
    wrong "$page: a section title has a date, expected a subject: history is in git"
done

# Prints the anchors of a page's headings as GitHub makes them.
anchors() { sed -n 's/^##* //p' "$1" | tr '[:upper:]' '[:lower:]' | sed 's/[^a-z0-9 _-]//g; s/ /-/g'; }
for page in "${pages[@]}"; do
  folder=$(dirname "$page")
  while read -r link; do
    file=${link%%#*} anchor=''
    [[ $link != *'#'* ]] || anchor=${link#*#}
    target=$folder/$file
    [ -n "$file" ] || target=$page
    if [ ! -e "$target" ]; then
      wrong "$page: the link to $link leads nowhere"
    elif [ -n "$anchor" ] && ! anchors "$target" | grep -xF -- "$anchor" >/dev/null; then
      wrong "$page: $file has no heading '$anchor'"
    fi
  done < <({ grep -oE '\]\([^)]+\)' "$page" || true; } | sed 's/^](//; s/)$//; /^[a-z]*:/d')
  while read -r picture; do
    [ -e "$folder/$picture" ] || wrong "$page: there is no picture $picture"
  done < <({ grep -oE 'src(set)?="[^"]+"' "$page" || true; } | sed 's/.*="//; s/"$//')
done

# Every flag on a page must be one of the program, of a script or of a tool that is listed here.
helps() {
  local verb part
  for verb in $("$convoy" --help | awk '/^Subcommands:/ { on = 1; next } on { print $1 }'); do
    "$convoy" "$verb" --help
    for part in $("$convoy" "$verb" --help | awk '/^Subcommands:/ { on = 1; next } on { print $1 }'); do
      "$convoy" "$verb" "$part" --help
    done
  done
  for part in jobs/*.sh jobs/train.sbatch jobs/report jobs/predict_client.py jobs/experiments/*; do sed -n '1,40p' "$part"; done
}
tools='--help --version --preset --build --target --install --prefix --strip --build-arg --rm --filter --gtest_filter --hostfile
--bind-to --oversubscribe --nodes --ntasks-per-node --gpus-per-node --time --block-signal'
known=$(
  helps | grep -oE -- '--[a-z][a-z0-9_-]*' | sort -u
  tr -s ' ' '\n' <<<"$tools"
)
for page in "${pages[@]}"; do
  [ "$page" != ./CHANGELOG.md ] || continue  # names the flags of all versions
  while read -r flag; do
    grep -qxF -- "$flag" <<<"$known" || wrong "$page: names the flag $flag, which neither the program nor a script has"
  done < <({ grep -oE -- '(^|[^a-zA-Z0-9-])--[a-z][a-z0-9_-]*' "$page" || true; } | sed 's/^[^-]*//' | sort -u)
done
[ "$failures" -eq 0 ] || { echo "$failures findings in the pages"; exit 1; }
