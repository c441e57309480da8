# fetch-key.sh URL KEYRING FINGERPRINT...
#
# Fetches a signing key and puts those of its keys into KEYRING whose full fingerprints are named; nothing else of the
# file gets in. The key is looked at in a throw-away keyring first: no trust store sees it before its fingerprint is known.
# Exit 65: the file holds none of the expected keys.  Exit 66: it could not be fetched.
set -eu
url=$1 keyring=$2
shift 2
umask 077
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export GNUPGHOME="$work/home"
mkdir "$GNUPGHOME"

fetch() {
  case $url in file://*) cp "${url#file://}" "$work/key"; return ;; esac
  if command -v curl >/dev/null 2>&1; then
    curl --fail --silent --show-error --location --proto '=https' --connect-timeout 20 --max-time 60 --output "$work/key" "$url"
  elif command -v wget >/dev/null 2>&1; then
    wget --quiet --https-only --timeout=20 --tries=2 --output-document="$work/key" "$url"
  else
    /usr/lib/apt/apt-helper download-file "$url" "$work/key"
  fi
}

primary_fingerprints() { awk -F: '$1 == "pub" { first = 1 } $1 == "fpr" && first { print $10; first = 0 }'; }

fetch || { echo "$url could not be fetched" >&2; exit 66; }
found=$(gpg --batch --with-colons --show-keys "$work/key" 2>/dev/null | primary_fingerprints)
trusted=
for fingerprint in $found; do
  for expected; do
    [ "$fingerprint" != "$expected" ] || trusted="$trusted $fingerprint"
  done
done
if [ -z "$trusted" ]; then
  echo "the key at $url is not the expected one: found" ${found:-nothing} "- expected" "$@" >&2
  exit 65
fi
gpg --batch --quiet --no-autostart --import "$work/key" 2>"$work/log" || [ -s "$GNUPGHOME/pubring.kbx" ] || { cat "$work/log" >&2; exit 65; }
# shellcheck disable=SC2086  # a list of fingerprints
gpg --batch --armor --no-autostart --export $trusted >"$work/trusted"
[ -s "$work/trusted" ] || { echo "gpg exported nothing for$trusted" >&2; exit 65; }

umask 022
mkdir -p "$(dirname "$keyring")"
cp "$work/trusted" "$keyring.gpunode-new"
chmod 644 "$keyring.gpunode-new"
mv -f "$keyring.gpunode-new" "$keyring"
sync
echo "trusted$trusted from $url"
