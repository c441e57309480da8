# zypper_erase.sh INVENTORY NAME...: removes NAMEs, and what was installed with them and nothing else needs.
# (before it: rpm_erase.sh, with what that takes)
#
# INVENTORY lists the packages that were there before; "-" when it is gone. zypper sees nothing that is locked as
# needless, and takes what came with an exact version for asked for (1.14.101, of the libraries below a driver). The whole
# set is locked: so what NAMEs need, is locked and was not there before goes with them, where nothing else needs it.
# Whatever is still there at the end is locked again. $only: further options.
set -eu
inventory=$1
shift
export LC_ALL=C.UTF-8
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

names() { rpm -q --qf '%{NAME}\n' "$@" 2>/dev/null </dev/null | grep -v -e ' ' || :; } # not what rpm says of one that is not there

zypper --non-interactive removelock "$@" </dev/null
names "$@" | sort -u >"$work/going"
[ -s "$work/going" ] || exit 0
# shellcheck disable=SC2046  # a list of names
set -- $(cat "$work/going")
if [ "$inventory" != - ] && [ -s "$inventory" ]; then
  came_along "$inventory" "$@" >"$work/set"
  zypper --non-interactive locks </dev/null | sed 's/^[0-9 ]*| *\([^ |]*\).*/\1/' >"$work/locks"
  grep -xF -f "$work/locks" "$work/set" >"$work/locked" || :
  if [ -s "$work/locked" ]; then
    # shellcheck disable=SC2046
    zypper --non-interactive removelock $(cat "$work/locked") </dev/null
    # shellcheck disable=SC2046
    if rpm -e --test "$@" $(cat "$work/locked") </dev/null >/dev/null 2>&1; then set -- "$@" $(cat "$work/locked"); fi
  fi
fi
code=0
# shellcheck disable=SC2086,SC2154  # options, or none
zypper --non-interactive $only remove --clean-deps "$@" </dev/null || code=$?
if [ -s "$work/locked" ]; then
  # shellcheck disable=SC2046
  names $(cat "$work/locked") >"$work/left"
  # shellcheck disable=SC2046
  [ ! -s "$work/left" ] || zypper --non-interactive addlock $(cat "$work/left") </dev/null
fi
exit "$code"
