# dnf_download.sh WORK RELEASE MACHINE STREAM LOCK NAME...: packages for a host that is not here, into WORK/packages.
#
# dnf works by WORK/dnf.conf and WORK/repos alone, below a root of its own (WORK/root), which is empty or has the package
# database of such a host. STREAM: the module stream that chooses the driver, or "". LOCK: what chooses it where there are
# none, "595.": of packages with such a version, no other version counts, as with a versionlock. Prints `root DIRECTORY`,
# where dnf has the indexes that it went by.
# Exit 66: the resolver or a download.  Exit 69: dnf is missing.
set -eu
work=$1 release=$2 machine=$3 stream=$4 lock=$5
shift 5
export LC_ALL=C.UTF-8
command -v dnf >/dev/null 2>&1 || { echo "dnf is not installed: only dnf can resolve for dnf" >&2; exit 69; }
[ "$(id -u)" = 0 ] || { echo "dnf installs below another root for root alone" >&2; exit 69; }
fifth="" download="install --downloadonly --allowerasing"
case $(readlink -f "$(command -v dnf)") in *dnf5) fifth=--use-host-config download="download --resolve" ;; esac
ask() {
  dnf -y --config="$work/dnf.conf" --installroot="$work/root" --releasever="$release" --forcearch="$machine" \
    --setopt=reposdir="$work/repos" $fifth "$@" </dev/null
}
run() { ask "$@" >"$work/log" 2>&1 || { tail -n 40 "$work/log" >&2; exit 66; }; }

mkdir -p "$work/root" "$work/packages"
[ -z "$stream" ] || run module enable "$stream"
if [ -n "$lock" ]; then
  run makecache
  ask -q repoquery --available --qf '%{name} %{epoch} %{version} %{release} %{arch}\n' '*nvidia*' >"$work/versions" 2>"$work/log" ||
    { cat "$work/log" >&2; exit 66; }
  others=$(awk -v lock="$lock" 'NF == 5 { row[NR] = $0; if (index($3 ".", lock) == 1) locked[$1] = 1 }
    END { for (i in row) { split(row[i], p, " ")
      if (p[1] in locked && index(p[3] ".", lock) != 1) print p[1] "-" p[2] ":" p[3] "-" p[4] "." p[5] } }' "$work/versions" | sort -u | tr '\n' ,)
  [ -z "$others" ] || echo "excludepkgs=${others%,}" >>"$work/dnf.conf"
fi
# shellcheck disable=SC2086  # words
run $download --destdir="$work/packages" "$@"
echo "root $work/root"
