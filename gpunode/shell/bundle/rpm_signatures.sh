# rpm_signatures.sh WORK KEYRING DIRECTORY: every package below DIRECTORY is signed, by a key of KEYRING and no other.
#
# Exit 65: one is not; rpm's own words about it.
set -eu
work=$1 keyring=$2 directory=$3
export LC_ALL=C
rm -rf "$work/keys"
mkdir "$work/keys"
rpmkeys --dbpath "$work/keys" --import "$keyring" </dev/null
find "$directory" -name '*.rpm' -print0 >"$work/signed"
[ -s "$work/signed" ] || exit 0
xargs -0 rpmkeys --dbpath "$work/keys" --define '_pkgverify_level all' --checksig <"$work/signed" >"$work/log" 2>&1 ||
  { grep -v ': digests signatures OK$' "$work/log" >&2; exit 65; }
