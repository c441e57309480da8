# rpm_keys.sh trust LISTS KEYRING HOST | distrust LISTS KEYRING HOST | forget LISTS KEY...
#
# trust     imports the keys of KEYRING, a file that was verified before, into rpm's store; not those that are there:
#           rpm 6 would write them anew, like those that gpunode added. Prints `added KEY` for each that is new
# distrust  erases those of them again that came in after KEYRING was written
# forget    erases these keys, as long as they are exactly those that `trust` added: KEY is what it printed,
#           VERSION-RELEASE,INSTALLTIME,FINGERPRINT,HOST
#
# A key that an enabled entry in LISTS (directories, a colon between them) still uses is not erased: the entry names a key
# file with it, one that cannot be read, or an address on HOST, where KEYRING came from.
# rpm calls the package of a key gpg-pubkey; its version is the end of the fingerprint, 8 hex digits, since rpm 6 all 40.
set -eu
verb=$1 lists=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export GNUPGHOME="$work" LC_ALL=C

# primaries FILE: the fingerprints of its primary keys
primaries() {
  gpg --batch --no-autostart --with-colons --show-keys "$1" 2>/dev/null </dev/null |
    awk -F: '$1 == "pub" { first = 1 } $1 == "fpr" && first { print tolower($10); first = 0 }'
}

# there: of the keys whose fingerprints are in $work/wanted those that rpm has: FINGERPRINT VERSION-RELEASE INSTALLTIME
there() {
  rpm -q gpg-pubkey --qf '%{VERSION} %{RELEASE} %{INSTALLTIME}\n' 2>/dev/null </dev/null | while read -r version release installed; do
    case $version in ????????*) ;; *) continue ;; esac
    while read -r fingerprint; do
      case $fingerprint in *"$version") echo "$fingerprint $version-$release ${installed:-0}" ;; esac
    done <"$work/wanted"
  done
}

# entries: what the enabled entries name, a line for each word: FILE SECTION gpgkey|address WORD
entries() (
  IFS=:
  for directory in $lists; do
    for file in "$directory"/*.repo; do
      [ ! -f "$file" ] || awk -v file="$file" '
        function emit() { if (on && section != "") for (i = 1; i <= n; i++) print file, section, word[i]; n = 0; on = 1 }
        function take(text) { gsub(/,/, " ", text); m = split(text, part, " "); for (i = 1; i <= m; i++) word[++n] = kind " " (part[i] ~ /^file:/ ? part[i] : tolower(part[i])) }
        { sub(/\r$/, "") }
        /^[#;]/ || /^[ \t]*$/ { next }
        /^\[/ { emit(); section = $0; gsub(/[][ \t]/, "", section); kind = ""; next }
        /^[ \t]/ { if (kind != "") take($0); next }
        {
          name = $0; value = $0; kind = ""
          sub(/[ \t]*=.*/, "", name); sub(/^[^=]*=[ \t]*/, "", value); sub(/[ \t]+$/, "", value)
          if (name == "enabled") on = tolower(value) !~ /^(0|no|false|off)$/
          if (name == "gpgkey") kind = "gpgkey"
          if (name ~ /^(baseurl|mirrorlist|metalink)$/) kind = "address"
          if (kind != "") take(value)
        }
        END { emit() }' "$file"
    done
  done
)

# names FINGERPRINT URL: whether that key file holds this key, or that is not known. A variable stands for any word.
names() {
  path=$(printf '%s\n' "${2#file://}" | sed 's/\$[{]\{0,1\}[A-Za-z0-9_]*[}]\{0,1\}/*/g')
  # shellcheck disable=SC2086  # a pattern
  for key_file in $path; do
    primaries "$key_file" >"$work/in_file"
    if [ ! -s "$work/in_file" ] || grep -qx "$1" "$work/in_file"; then return 0; fi
  done
  return 1
}

# user FINGERPRINT HOST: the first enabled entry that uses this key
user() {
  while read -r file section kind word; do
    bare=${word#*://}
    bare=${bare%%/*}
    bare=${bare##*@}
    case $kind:$word in
      gpgkey:file://*) names "$1" "$word" || continue ;;
      *) [ "${bare%%:*}" = "$2" ] || continue ;;
    esac
    echo "$section in $file"
    return 0
  done <"$work/entries"
}

# erase: the keys of $work/going, a line VERSION-RELEASE FINGERPRINT HOST for each, in one transaction
erase() {
  entries >"$work/entries"
  set --
  while read -r key fingerprint host; do
    used=$(user "$fingerprint" "$host")
    if [ -n "$used" ]; then echo "gpg-pubkey-$key is kept: $used uses it"; else set -- "$@" "gpg-pubkey-$key"; fi
  done <"$work/going"
  [ $# -eq 0 ] || rpm --erase --allmatches "$@" </dev/null
}

case $verb in
  forget)
    printf '%s\n' "$@" | cut -d, -f3 >"$work/wanted"
    there >"$work/there"
    for key; do
      printf '%s\n' "$key" | tr , ' ' >"$work/key"
      read -r name installed fingerprint host <"$work/key"
      ! grep -qx "$fingerprint $name $installed" "$work/there" || echo "$name $fingerprint $host"
    done >"$work/going"
    erase
    exit 0 ;;
esac

keyring=$1 host=$2
if [ ! -f "$keyring" ]; then
  [ "$verb" = trust ] || exit 0
  echo "$keyring is not there" >&2
  exit 66
fi
primaries "$keyring" >"$work/wanted"
there >"$work/there"
case $verb in
  trust)
    [ -s "$work/wanted" ] || { echo "$keyring holds no key" >&2; exit 65; }
    while read -r fingerprint; do
      grep -q "^$fingerprint " "$work/there" || echo "$fingerprint"
    done <"$work/wanted" >"$work/new"
    [ -s "$work/new" ] || { echo "rpm has the keys of $keyring already"; exit 0; }
    rpm --import "$keyring" </dev/null
    there | while read -r fingerprint key installed; do
      ! grep -qx "$fingerprint" "$work/new" || echo "added $key,$installed,$fingerprint,$host"
    done ;;
  distrust)
    since=$(stat -c %Y "$keyring")
    while read -r fingerprint key installed; do
      [ "$installed" -lt "$since" ] || echo "$key $fingerprint $host"
    done <"$work/there" >"$work/going"
    erase ;;
esac
