# same_version.sh LEAD PATTERN...        (before it: hold(), which gets the names, and versions() PATTERN...,
# which prints NAME UPSTREAM_VERSION of each installed package that matches)
#
# All installed packages that match PATTERN and have a version like LEAD's (595.91.07; 1.20.0) must be at LEAD's version:
# a driver whose libraries and modules differ does not work, and neither does a toolkit. Prints the version and the names.
# Exit 65: they differ. nvidia-settings, which distributions version on their own and which nothing of a driver needs, is
# only named where it does.
set -eu
lead=$1
shift

version=$(versions "$lead" | awk -v lead="$lead" '$1 == lead { print $2; exit }')
[ -n "$version" ] || { echo "$lead is not installed" >&2; exit 65; }
peers=$(versions "$@" | sort -u | awk -v want="$version" '
  function major(v) { split(v, part, "."); return length(part[1]) }
  $2 ~ /^[0-9]+\.[0-9]+(\.[0-9]+)?$/ && major($2) == major(want)')
apart=$(printf '%s\n' "$peers" | awk -v want="$version" '$1 == "nvidia-settings" && $2 != want')
peers=$(printf '%s\n' "$peers" | awk -v want="$version" '$1 != "nvidia-settings" || $2 == want')
others=$(printf '%s\n' "$peers" | awk -v want="$version" 'NF && $2 != want { print $1 " " $2 }')
# shellcheck disable=SC2086  # words on one line
[ -z "$others" ] || { echo "$lead is $version, but:" $others >&2; exit 65; }
names=$(printf '%s\n' "$lead $version" "$peers" | awk 'NF { print $1 }' | sort -u)
# shellcheck disable=SC2086  # a list of names
hold $names </dev/null
# shellcheck disable=SC2086
echo "$version:" $names
[ -z "$apart" ] || echo "not at that version, and not pinned: $apart"
