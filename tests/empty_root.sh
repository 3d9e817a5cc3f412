#!/usr/bin/env bash
# Runs the commands of README in an empty root file system of Debian, from the first to the last.
# Usage: tests/empty_root.sh SUITE FOLDER
#   SUITE   bookworm (Debian 12) or trixie (Debian 13)
#   FOLDER  for the root file system, about 4 GB; it is made, and removed afterwards
# The commands are the lines of README's blocks that begin with ```sh.
# KEEP=yes: FOLDER is not removed. MIRROR: the Debian mirror. CCACHE: a folder of ccache to use.
# Needs root, debootstrap (a package of Debian) and the network; takes half an hour on two cores.
# Exit status: that of the first command that fails, else 0; 77 if this machine cannot run it.
set -euo pipefail
case "${1:-}" in -h | --help) sed -n '2,9p' "$0" | cut -c3-; exit 0 ;; esac
[ $# -eq 2 ] || { echo "empty_root.sh: found $# arguments, expected SUITE and FOLDER; see --help" >&2; exit 2; }
suite=$1 folder=$(realpath -m -- "$2") source=$(cd "$(dirname "$0")/.." && pwd)
[ ! -e "$folder" ] || { echo "empty_root.sh: $folder: found something there, expected a new folder" >&2; exit 2; }
[ "$(id -u)" -eq 0 ] || { echo "skipped: only root can make a root file system"; exit 77; }
command -v debootstrap >/dev/null || { echo "skipped: debootstrap is missing (apt-get install debootstrap)"; exit 77; }
[ -e "/usr/share/debootstrap/scripts/$suite" ] || { echo "skipped: this debootstrap does not know $suite"; exit 77; }

# shellcheck disable=SC2016  # backquotes of Markdown
commands=$(sed -n '/^```sh$/,/^```$/{/^```/d;p}' "$source/README.md")
[ -n "$commands" ] || { echo "empty_root.sh: README.md: found no block of commands, expected \`\`\`sh" >&2; exit 1; }

mounted=()
clean_up() {
  for place in "${mounted[@]}"; do umount -l "$folder/$place"; done
  [ "${KEEP:-no}" = yes ] || rm -rf --one-file-system "$folder"
}
trap clean_up EXIT
trap "exit 1" INT TERM
debootstrap --variant=minbase "$suite" "$folder" "${MIRROR:-http://deb.debian.org/debian}"
for place in proc sys dev; do
  mount --rbind --make-rslave "/$place" "$folder/$place"
  mounted+=("$place")
done
cp /etc/resolv.conf "$folder/etc/resolv.conf"
# Copy the files that git tracks as they are now, with changes that are not committed.
mkdir "$folder/convoy"
(cd "$source" && git ls-files -z | xargs -0 tar -cf - --ignore-failed-read) | tar -xf - -C "$folder/convoy"

environment=(HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1)
if [ -n "${CCACHE:-}" ]; then
  mkdir "$folder/ccache"
  mount --bind "$CCACHE" "$folder/ccache"
  mounted+=(ccache)
  # ccache finds a result only if LANG is the same.
  environment+=(CCACHE_DIR=/ccache CCACHE_BASEDIR=/convoy CCACHE_NOHASHDIR=1 LANG="${LANG:-C}")
fi

start=$SECONDS status=0
# Run all commands in one shell. It prints each command and ends at the first that fails.
chroot "$folder" env -i "${environment[@]}" bash -c "cd /convoy; set -ex -o pipefail; $commands" || status=$?
[ "$status" -eq 0 ] || { echo "empty_root.sh: $suite: the last command above ended with $status" >&2; exit "$status"; }
echo "empty_root.sh: $suite: the commands of README ran, in $((SECONDS - start)) s"
