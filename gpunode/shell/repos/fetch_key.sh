# fetch_key.sh URL KEYRING PIN...
#
# Fetches a signing key. A PIN is a full fingerprint: those of the file's keys are put into KEYRING whose *primary*
# fingerprints are named; nothing else of the file gets in. `gpg --export FINGERPRINT` is not enough for that: it matches subkeys too, and anybody can bind the
# public half of a named key to a key of his own. So every other primary key is deleted from a throw-away keyring, and
# what is exported from it is read back and compared before anything that is trusted sees it.
# Or it is sha256:CHECKSUM, of the whole file without its Version line, as NVIDIA's own images pin it: then KEYRING is that.
# Exit 65: not the expected keys.  Exit 66: it could not be fetched.  Exit 69: gpg is missing.
set -eu
url=$1 keyring=$2
shift 2
limit_bytes=1048576 limit_s=75 # NVIDIA's keys are below 5 kB
umask 077
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export GNUPGHOME="$work/home" LC_ALL=C
mkdir "$GNUPGHOME"
command -v gpg >/dev/null 2>&1 || { echo "gpg is not installed: no key's fingerprint can be computed" >&2; exit 69; }

# A stranger's file may be endless, come a byte a minute, or unpack to gigabytes. ulimit counts blocks of 512 bytes (of
# 1024 in a bash that does not follow POSIX) and, for memory, of 1024.
bounded() (
  trap '' XFSZ # a write beyond the limit fails, instead of leaving a core file
  ulimit -f $((limit_bytes * 4 / 512))
  # shellcheck disable=SC3045  # where a shell has no -v, its words are dropped
  ulimit -v 2097152 2>/dev/null || :
  exec timeout "$limit_s" "$@" </dev/null # standard input is this script
)

fetch() {
  case $url in file://*) bounded cp "${url#file://}" "$work/key"; return ;; esac
  if command -v curl >/dev/null 2>&1; then
    bounded curl --fail --silent --show-error --location --proto '=https' --connect-timeout 20 --max-time 40 \
      --max-filesize "$limit_bytes" --output "$work/key" "$url"
  elif command -v wget >/dev/null 2>&1; then
    bounded wget --quiet --https-only --timeout=20 --tries=2 --output-document="$work/key" "$url"
  else
    bounded /usr/lib/apt/apt-helper download-file "$url" "$work/key"
  fi
}

# primaries GPG-COMMAND...: the fingerprints of the primary keys that it lists, sorted, each once
primaries() {
  bounded gpg --batch --no-autostart --with-colons "$@" >"$work/listed" 2>"$work/log" || [ $? != 124 ] || slow
  awk -F: '$1 == "pub" { first = 1 } $1 == "fpr" && first { print $10; first = 0 }' "$work/listed" | sort -u
}
refuse() { echo "$1" >&2; exit 65; }
slow() { refuse "gpg did not come to an end with the key at $url within $limit_s s"; }

code=0
fetch || code=$?
size=0
[ ! -f "$work/key" ] || size=$(wc -c <"$work/key")
if [ "$size" -gt "$limit_bytes" ] || [ "$code" = 63 ]; then refuse "$url is larger than $limit_bytes bytes: that is no signing key"; fi
case $code in
  0) ;;
  28 | 124) echo "$url could not be fetched: its server did not finish within $limit_s s" >&2; exit 66 ;;
  *) echo "$url could not be fetched" >&2; exit 66 ;;
esac

install_key() { # FILE WHAT
  umask 022
  mkdir -p "$(dirname "$keyring")"
  cp "$1" "$keyring.gpunode-new"
  chmod 644 "$keyring.gpunode-new"
  mv -f "$keyring.gpunode-new" "$keyring"
  sync
  echo "trusted $2from $url"
}
words() { sed 8q "$1" | tr '\n' ' '; }

primaries --show-keys "$work/key" >"$work/found"
sed '/^Version/d' "$work/key" >"$work/plain"
checksum=sha256:$(sha256sum <"$work/plain" | cut -d' ' -f1)
for pin; do
  [ "$pin" != "$checksum" ] || { install_key "$work/plain" "$(words "$work/found")"; exit 0; }
  case $pin in sha256:*) echo "$checksum" >>"$work/found" ;; esac # for whoever reads why it was refused
done

printf '%s\n' "$@" | sort -u >"$work/expected"
# The import fails for a file of which one key is unusable: what got in is looked at below.
bounded gpg --batch --quiet --no-autostart --import "$work/key" >"$work/log" 2>&1 || [ $? != 124 ] || slow
primaries --list-keys >"$work/ring"
comm -12 "$work/ring" "$work/expected" >"$work/named"
if [ ! -s "$work/named" ]; then
  [ -s "$work/found" ] || echo nothing >"$work/found"
  refuse "the key at $url is not the expected one, whole and alone: found $(words "$work/found")- expected $*"
fi

# A name may match another foreign key's subkey first; then a name is missing later, and one more round finds the rest.
for _ in 1 2 3 4; do
  comm -23 "$work/ring" "$work/expected" >"$work/foreign"
  [ -s "$work/foreign" ] || break
  # shellcheck disable=SC2046  # a list of fingerprints
  bounded gpg --batch --quiet --yes --no-autostart --delete-keys $(sed 64q "$work/foreign") >"$work/log" 2>&1 || :
  primaries --list-keys >"$work/ring"
done
bounded gpg --batch --armor --no-autostart --export >"$work/trusted" 2>"$work/log" ||
  refuse "gpg could not export the key at $url: $(sed -n '$p' "$work/log")"
primaries --show-keys "$work/trusted" >"$work/back"
[ "$(cat "$work/back")" = "$(cat "$work/named")" ] ||
  refuse "the key at $url comes with others that cannot be told from it: $(words "$work/back")- expected $(words "$work/named")"

install_key "$work/trusted" "$(words "$work/named")"
