# unlock-dnf5.sh PATTERN...
#
# dnf5 deletes versionlock entries only by name; dnf 4 takes patterns of NAME-VERSION, such as *nvidia*595*. Here the
# entries of /etc/dnf/versionlock.toml that match are looked up first. None is no error.
set -eu
list=/etc/dnf/versionlock.toml
[ -r "$list" ] || exit 0
names=$(awk -F'"' '/^name = / { name = $2; print name, name } /^value = / { print name, name "-" $2 }' "$list" |
  while read -r name entry; do
    for pattern; do
      # shellcheck disable=SC2254  # a pattern it is
      case $entry in $pattern) echo "$name" ;; esac
    done
  done | sort -u)
# shellcheck disable=SC2086  # a list of names
[ -z "$names" ] || dnf -y versionlock delete $names </dev/null
