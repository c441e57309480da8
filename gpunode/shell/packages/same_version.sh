# same-version.sh LISTING LEAD PATTERN...        (before it: hold(), which is told the names)
#
# All installed packages that match PATTERN and carry a version like LEAD's (595.91.07; 1.20.0) must be at LEAD's version:
# a driver whose libraries and modules differ does not work, and neither does a toolkit. Prints the version and the names.
# Exit 65: they differ.
set -eu
listing=$1 lead=$2
shift 2

installed() { # PATTERN... -> NAME UPSTREAM_VERSION
  # SUSE's kernel module packages carry the kernel's version too: 595.91.07_k6.4.0_150600.21
  case $listing in
    dpkg) dpkg-query -W -f '${db:Status-Status} ${Package} ${source:Upstream-Version}\n' "$@" 2>/dev/null |
      awk '$1 == "installed" { print $2, $3 }' ;;
    rpm) rpm -qa --qf '%{NAME} %{VERSION}\n' "$@" | sed 's/_k.*//' ;;
    pacman) pacman -Q | while read -r name version; do
        version=${version#*:}
        for pattern; do
          # shellcheck disable=SC2254  # a pattern it is
          case $name in $pattern) echo "$name ${version%-*}"; break ;; esac
        done
      done ;;
  esac
}

version=$(installed "$lead" | awk -v lead="$lead" '$1 == lead { print $2; exit }')
[ -n "$version" ] || { echo "$lead is not installed" >&2; exit 65; }
peers=$(installed "$@" | sort -u | awk -v want="$version" '
  function major(v) { split(v, part, "."); return length(part[1]) }
  $2 ~ /^[0-9]+\.[0-9]+(\.[0-9]+)?$/ && major($2) == major(want)')
others=$(printf '%s\n' "$peers" | awk -v want="$version" 'NF && $2 != want { print $1 " " $2 }')
# shellcheck disable=SC2086  # words on one line
[ -z "$others" ] || { echo "$lead is $version, but:" $others >&2; exit 65; }
names=$(printf '%s\n' "$lead $version" "$peers" | awk 'NF { print $1 }' | sort -u)
# shellcheck disable=SC2086  # a list of names
hold $names </dev/null
# shellcheck disable=SC2086
echo "$version:" $names
