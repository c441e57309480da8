# shellcheck shell=sh
# versions() of same_version.sh: pacman has no query by pattern.
pacman -Q | while read -r name version; do
  version=${version#*:}
  for pattern; do
    # shellcheck disable=SC2254  # a pattern it is
    case $name in $pattern) echo "$name ${version%-*}"; break ;; esac
  done
done
