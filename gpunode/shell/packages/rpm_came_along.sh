# came_along INVENTORY NAME...: NAMEs, and what these need, in turn, as far as it was not there before: sorted, one a line
#
# INVENTORY lists the packages that were there before; "-" when it is gone: then NAMEs alone.
came_along() (
  inventory=$1
  shift
  if [ "$inventory" = - ] || [ ! -s "$inventory" ]; then inventory=; fi
  before=0
  while [ $# -gt "$before" ]; do
    before=$#
    # shellcheck disable=SC2046  # a list of names
    [ -z "$inventory" ] || set -- $({ printf '%s\n' "$@"; needed "$@" | grep -vxF -f "$inventory" || :; } | sort -u)
  done
  printf '%s\n' "$@" | sort -u
)
needed() { # PACKAGE...: what these need, by name
  rpm -q --requires "$@" 2>/dev/null </dev/null | sed 's/ .*//' | sort -u | tr '\n' '\0' |
    xargs -0 -r rpm -q --qf '%{NAME}\n' --whatprovides 2>/dev/null | grep -v -e ' ' || :
}
