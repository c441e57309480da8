# apt_download.sh WORK NAME...: fetch indexes and packages for a host that is not here.
#
# apt works by WORK/apt.conf alone: its lists, its cache and the package database of the foreign host (WORK/root/status) are
# there, and nothing of this machine's own. Prints, after both were fetched and verified,
#   index URI SUITE METAKEY FILE     a Packages file and where apt has it
#   deb 'URI' FILE                   a package and its name in the cache
# Exit 65: an index could not be fetched, or its signature is not the expected one.  Exit 66: the resolver or a download.
set -eu
work=$1
shift
export APT_CONFIG="$work/apt.conf" LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive
command -v apt-get >/dev/null 2>&1 || { echo "apt-get is not installed: only apt can resolve for apt" >&2; exit 69; }

apt-get update --error-on=any -qq >"$work/log" 2>&1 </dev/null || { grep -E '^(E|W|Err)' "$work/log" >&2; exit 65; }
apt-get install --print-uris -qq -y --no-install-recommends "$@" >"$work/uris" 2>"$work/log" </dev/null ||
  { cat "$work/uris" "$work/log" >&2; exit 66; }
apt-get install --download-only -qq -y --no-install-recommends "$@" >"$work/log" 2>&1 </dev/null ||
  { cat "$work/log" >&2; exit 66; }
apt-get indextargets --no-release-info --format 'index $(REPO_URI) $(RELEASE) $(METAKEY) $(FILENAME)' 'Created-By: Packages' </dev/null
sed -n "s/^\('[^']*'\) \([^ ]*\) .*/deb \1 \2/p" "$work/uris"
