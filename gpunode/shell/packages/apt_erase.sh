# erase.apt.sh INVENTORY NAME...
#
# Removes NAMEs, and what was installed with them and nothing else needs. INVENTORY lists the packages that were there
# before; "-" when it is gone: then only NAMEs go. Configuration goes too, except of a package whose files were edited:
# that one keeps all of it. Exit 65: another package would have to go as well.
# What is about to go is kept next to the inventory until it is gone: cut off, the same command goes on with that, for by
# then nothing tells what was installed with NAMEs from what others left behind.
set -eu
inventory=$1
shift
export LC_ALL=C.UTF-8
work=$(mktemp -d)
trap 'finish $?' EXIT

begun=${inventory%/*}/erasing
[ "$inventory" != - ] || begun=/dev/null

# What is on hold would not be seen as needless. Whatever is still there at the end is held again.
: >"$work/held"
finish() {
  while read -r name; do
    case $(dpkg-query -W -f '${db:Status-Abbrev}' "$name" 2>/dev/null) in ?i*) apt-mark hold "$name" >/dev/null </dev/null ;; esac
  done <"$work/held"
  rm -rf "$work"
  exit "$1"
}

# shellcheck disable=SC2016  # dpkg-query's own
# present: of the names on stdin those of which dpkg has anything, with their status: "WANT-ERROR-STATUS NAME"
present() { xargs -r dpkg-query -W -f '${db:Status-Want}-${db:Status-Eflag}-${db:Status-Status} ${Package}\n' 2>/dev/null | grep -v -e '-not-installed ' || :; }

# After a dpkg that was killed (its own journal holds updates then) apt refuses everything until its packages are finished.
for update in /var/lib/dpkg/updates/[0-9]*; do
  [ ! -e "$update" ] || dpkg --configure -a --force-confdef --force-confold </dev/null
  break
done

# Of an earlier try: what it was about to remove, but for what somebody has asked for by name since.
: >"$work/before"
if [ -f "$begun" ]; then
  apt-mark showmanual | sed 's/:.*//' | sort -u >"$work/manual"
  present <"$begun" | sed 's/.* //' | sort -u | comm -23 - "$work/manual" >"$work/before"
fi
# apt touches nothing while a package is half removed that no archive has any more.
half=$({ cat "$work/before"; printf '%s\n' "$@"; } | present | sed -n 's/.*-reinstreq-half-installed //p')
# shellcheck disable=SC2086  # a list of names
[ -z "$half" ] || dpkg --remove --force-remove-reinstreq --force-depends $half </dev/null

# removes ARGUMENT...: the names apt would remove
removes() { apt-get --simulate --allow-change-held-packages "$@" | awk '$1 == "Remv" || $1 == "Purg" { sub(/:.*/, "", $2); print $2 }' | sort -u; }

printf '%s\n' "$@" | present | sed 's/.* //' | cat - "$work/before" | sort -u >"$work/named"
# shellcheck disable=SC2046  # a list of names
set -- $(cat "$work/named")
[ $# -gt 0 ] || { rm -f "$begun"; exit 0; }
removes remove "$@" >"$work/needing"
apt-mark showauto | sed 's/:.*//' | sort -u >"$work/auto"
if [ "$inventory" != - ]; then
  apt-mark showhold | sed 's/:.*//' | sort -u | comm -23 - "$inventory" >"$work/held"
  # shellcheck disable=SC2046  # a list of names
  [ ! -s "$work/held" ] || apt-mark unhold $(cat "$work/held") >/dev/null </dev/null
  removes autoremove >"$work/stray"
  removes remove --auto-remove "$@" | comm -23 - "$work/stray" | comm -23 - "$inventory" | comm -12 - "$work/auto" >"$work/along"
  # Of what needs NAMEs, that which came along may go.
  comm -23 "$work/needing" "$work/named" | comm -12 - "$work/auto" | comm -23 - "$inventory" >>"$work/along"
else
  : >"$work/along"
fi
sort -u "$work/named" "$work/along" >"$work/going"
others=$(comm -23 "$work/needing" "$work/going")
if [ -n "$others" ]; then
  # shellcheck disable=SC2086  # words on one line
  echo "E: these packages need what would be removed, and gpunode did not install them:" $others >&2
  exit 65
fi

if [ "$begun" != /dev/null ]; then
  cat "$work/going" >"$begun"
  sync
fi

# A configuration file that differs from the packaged one was edited.
while read -r name; do
  dpkg-query -W -f '${Conffiles}\n' "$name" 2>/dev/null | while read -r path sum rest; do
    if [ -z "$path" ] || [ ! -f "$path" ] || [ "${rest:-}" = obsolete ]; then continue; fi
    now=$(md5sum <"$path")
    [ "${now%% *}" = "$sum" ] || echo "$path"
  done >"$work/edited"
  if [ -s "$work/edited" ]; then
    echo "$name keeps its configuration, which was edited: $(tr '\n' ' ' <"$work/edited")"
  else
    echo "$name" >>"$work/whole"
  fi
done <"$work/going"

# This script is on standard input: no maintainer script may read from it.
apt() {
  verb=$1
  shift
  apt-get "$verb" -y --allow-change-held-packages -o DPkg::Lock::Timeout=300 "$@" </dev/null
}
# shellcheck disable=SC2046  # a list of names
apt remove $(cat "$work/going")
# shellcheck disable=SC2046
[ ! -s "$work/whole" ] || apt purge $(cat "$work/whole")
[ "$begun" = /dev/null ] || rm -f "$begun"
