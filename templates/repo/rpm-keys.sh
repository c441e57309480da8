# rpm-keys.sh trust|distrust KEYRING
#
# trust     imports the keys of KEYRING, a file that was verified before, into rpm's store; not those that are there:
#           rpm 6 would write them anew, and distrust could not tell them from ours
# distrust  erases those of them again that came in after KEYRING was written
#
# rpm calls the package of a key gpg-pubkey; its version is the end of the fingerprint, 8 hex digits, since rpm 6 all 40.
set -eu
verb=$1 keyring=$2
if [ ! -f "$keyring" ]; then
  [ "$verb" = trust ] || exit 0
  echo "$keyring is not there" >&2
  exit 66
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export GNUPGHOME="$work"

gpg --batch --no-autostart --with-colons --show-keys "$keyring" 2>/dev/null |
  awk -F: '$1 == "pub" { first = 1 } $1 == "fpr" && first { print tolower($10); first = 0 }' >"$work/ours"
# A line of ours that is there: FINGERPRINT VERSION RELEASE INSTALLTIME
rpm -q gpg-pubkey --qf '%{VERSION} %{RELEASE} %{INSTALLTIME}\n' 2>/dev/null | while read -r version release installed; do
  case $version in ????????*) ;; *) continue ;; esac
  while read -r fingerprint; do
    case $fingerprint in *"$version") echo "$fingerprint $version $release ${installed:-0}" ;; esac
  done <"$work/ours"
done >"$work/there"

case $verb in
  trust)
    while read -r fingerprint; do
      grep -q "^$fingerprint " "$work/there" || { rpm --import "$keyring" </dev/null; exit 0; }
    done <"$work/ours"
    [ -s "$work/ours" ] || { echo "$keyring holds no key" >&2; exit 65; }
    echo "rpm has the keys of $keyring already" ;;
  distrust)
    since=$(stat -c %Y "$keyring")
    while read -r _ version release installed; do
      [ "$installed" -lt "$since" ] || rpm --erase --allmatches "gpg-pubkey-$version-$release" </dev/null
    done <"$work/there" ;;
esac
