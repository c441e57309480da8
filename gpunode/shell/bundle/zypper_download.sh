# zypper_download.sh WORK RELEASE MACHINE LEAD FOLLOW NAME...: packages for a host that is not here, into WORK/packages.
#
# zypper works by WORK/zypp.conf and WORK/repos alone, below a root of its own (WORK/root), which is empty or has the
# package database of such a host. LEAD: the package of the kernel modules, "" for none; FOLLOW: names with a blank
# between, which come at LEAD's version of the driver. Prints `root DIRECTORY`, where the indexes are that it went by.
# Exit 65: an index is not signed right.  Exit 66: the resolver or a download.  Exit 69: zypper is missing.
set -eu
work=$1 release=$2 machine=$3 lead=$4 follow=$5
shift 5
export LC_ALL=C.UTF-8 ZYPP_CONF="$work/zypp.conf"
command -v zypper >/dev/null 2>&1 || { echo "zypper is not installed: only zypper can resolve for zypper" >&2; exit 69; }
[ "$(id -u)" = 0 ] || { echo "zypper works below another root for root alone" >&2; exit 69; }
printf '[main]\narch = %s\n' "$machine" >"$ZYPP_CONF"
ask() {
  zypper --non-interactive --root "$work/root" --reposd-dir "$work/repos" --releasever "$release" --cache-dir "$work/cache" \
    --raw-cache-dir "$work/cache/raw" --solv-cache-dir "$work/cache/solv" --pkg-cache-dir "$work/packages" "$@" </dev/null
}
give_up() { tail -n 40 "$work/log" >&2; exit "$1"; }

mkdir -p "$work/root" "$work/packages"
for key in "$work"/repos/*.key; do rpm --root "$work/root" --import "$key"; done
ask refresh >"$work/log" 2>&1 || give_up 65
if [ -n "$lead" ]; then
  ask --no-refresh --xmlout install --dry-run --no-recommends --auto-agree-with-licenses "$lead" >"$work/log" 2>&1 || give_up 66
  version=$(sed -n "s/.*<solvable [^>]*name=\"$lead\"[^>]*edition=\"\([0-9.]*\)[^\"]*\".*/\1/p" "$work/log" | sed -n 1p)
  [ -n "$version" ] || give_up 66
  set -- "$lead" "$@"
  for name in $follow; do set -- "$@" "$name=$version"; done
fi
code=0
ask --no-refresh install --download-only --no-recommends --auto-agree-with-licenses "$@" >"$work/log" 2>&1 || code=$?
case $code in 0 | 102 | 103) ;; *) give_up 66 ;; esac
echo "root $work/cache/raw"
