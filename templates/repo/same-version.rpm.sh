# same-version.rpm.sh check|hold LEAD PATTERN...
#
# All installed packages that match PATTERN and carry a version like LEAD's (595.91.07) must be at LEAD's version: a driver
# whose libraries and modules differ does not work. `hold` then locks them. Exit 65: they differ.
set -eu
verb=$1 lead=$2
shift 2
version=$(rpm -q --qf '%{VERSION}\n' "$lead") || { echo "$lead is not installed" >&2; exit 65; }
peers=$(rpm -qa --qf '%{NAME} %{VERSION}\n' "$@" | awk '$2 ~ /^[0-9][0-9][0-9]\.[0-9]+(\.[0-9]+)?$/' | sort -u)
others=$(printf '%s\n' "$peers" | awk -v want="$version" 'NF && $2 != want { print $1 " " $2 }')
[ -z "$others" ] || { echo "$lead is $version, but:" $others >&2; exit 65; }
names=$(printf '%s\n' "$lead $version" "$peers" | awk 'NF { print $1 }' | sort -u)
# shellcheck disable=SC2086  # a list of names
[ "$verb" != hold ] || dnf -y versionlock add $names
echo "$version:" $names
