# rpm-distrust.sh KEYRING
#
# Erases the keys of KEYRING from rpm's store, of those only that came in after KEYRING was written: a key that was there
# before (rpm --import leaves it as it is) is not ours to take. rpm calls the package of a key gpg-pubkey, and its version
# is the end of the fingerprint: 8 hex digits, since rpm 6 all 40.
set -eu
keyring=$1
[ -f "$keyring" ] || exit 0
since=$(stat -c %Y "$keyring")
GNUPGHOME=$(mktemp -d)
export GNUPGHOME
trap 'rm -rf "$GNUPGHOME"' EXIT
ours=$(gpg --batch --no-autostart --with-colons --show-keys "$keyring" 2>/dev/null |
  awk -F: '$1 == "pub" { first = 1 } $1 == "fpr" && first { print tolower($10); first = 0 }')
rpm -q gpg-pubkey --qf '%{VERSION} %{RELEASE} %{INSTALLTIME}\n' 2>/dev/null | while read -r version release installed; do
  [ "${installed:-0}" -ge "$since" ] || continue
  for fingerprint in $ours; do
    case $fingerprint in *"$version") rpm --erase --allmatches "gpg-pubkey-$version-$release" </dev/null ;; esac
  done
done
