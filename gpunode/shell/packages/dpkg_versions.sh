# shellcheck shell=sh
# versions() of same_version.sh: from dpkg's database.
# shellcheck disable=SC2016
dpkg-query -W -f '${db:Status-Status} ${Package} ${source:Upstream-Version}\n' "$@" 2>/dev/null |
  awk '$1 == "installed" { print $2, $3 }'
