# same-version.dpkg.sh check|hold LEAD PATTERN...
#
# All installed packages that match PATTERN and carry a version like LEAD's (595.91.07) must be at LEAD's version: a driver
# whose libraries and modules differ does not work. `hold` then marks them, so that an upgrade takes them together or not at all.
# Exit 65: they differ.
set -eu
verb=$1 lead=$2
shift 2
installed() { dpkg-query -W -f '${db:Status-Status} ${Package} ${source:Upstream-Version}\n' "$@" 2>/dev/null | awk '$1 == "installed" { print $2, $3 }'; }
version=$(installed "$lead" | awk '{ print $2 }')
[ -n "$version" ] || { echo "$lead is not installed" >&2; exit 65; }
peers=$(installed "$@" | awk '$2 ~ /^[0-9][0-9][0-9]\.[0-9]+(\.[0-9]+)?$/' | sort -u)
others=$(printf '%s\n' "$peers" | awk -v want="$version" 'NF && $2 != want { print $1 " " $2 }')
[ -z "$others" ] || { echo "$lead is $version, but:" $others >&2; exit 65; }
names=$(printf '%s\n' "$lead $version" "$peers" | awk 'NF { print $1 }' | sort -u)
# shellcheck disable=SC2086  # a list of names
[ "$verb" != hold ] || apt-mark hold $names
echo "$version:" $names
