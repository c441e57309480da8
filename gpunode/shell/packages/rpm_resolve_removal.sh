# shellcheck shell=sh disable=SC2154
# resolve() of simulate.sh: what a removal takes along, as rpm says it.
#
# dnf, yum, tdnf and zypper remove whatever needs one of NAMEs, and what needs that. rpm names the first ones only, so it
# is asked again with those. Locks of the managers do not count for it, and what they remove as needless nothing needs.
# shellcheck disable=SC2046  # a list of names
set -- $(rpm -q --qf '%{NAME}\n' "$@" </dev/null | grep -v ' is not installed$' | sort -u)
[ $# -gt 0 ] || exit 0
before=0
while [ $# -gt "$before" ]; do
  before=$# code=0
  rpm -e --test --allmatches "$@" >"$output" 2>&1 </dev/null || code=$?
  # "libcuda.so.1()(64bit) is needed by (installed) slurm-nvml-0:22.05-1.x86_64"
  needing=$(sed -n 's/.* is needed by (installed) \(.*\)-[^-]*-[^-]*$/\1/p' "$output")
  # shellcheck disable=SC2046,SC2086  # lists of names
  set -- $(printf '%s\n' "$@" $needing | sort -u)
done
rpm -q --qf 'remove %{NAME} %{EVR}\n' "$@" </dev/null
exit "$code"
