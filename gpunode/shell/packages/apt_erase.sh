# erase.apt.sh INVENTORY NAME...
#
# Removes NAMEs, and what was installed with them and nothing else needs. INVENTORY lists the packages that were there
# before; "-" when it is gone: then only NAMEs go. Configuration goes too, except of a package whose files were edited:
# that one keeps all of it. Exit 65: another package would have to go as well.
set -eu
inventory=$1
shift
export LC_ALL=C.UTF-8
work=$(mktemp -d)
trap 'finish $?' EXIT

# What is on hold would not be seen as needless. Whatever is still there at the end is held again.
: >"$work/held"
finish() {
  while read -r name; do
    case $(dpkg-query -W -f '${db:Status-Abbrev}' "$name" 2>/dev/null) in ?i*) apt-mark hold "$name" >/dev/null </dev/null ;; esac
  done <"$work/held"
  rm -rf "$work"
  exit "$1"
}

# After a dpkg that was killed (its own journal holds updates then) apt refuses everything until its packages are finished.
for update in /var/lib/dpkg/updates/[0-9]*; do
  [ ! -e "$update" ] || dpkg --configure -a --force-confdef --force-confold </dev/null
  break
done

# removes ARGUMENT...: the names apt would remove
removes() { apt-get --simulate --allow-change-held-packages "$@" | awk '$1 == "Remv" || $1 == "Purg" { sub(/:.*/, "", $2); print $2 }' | sort -u; }

printf '%s\n' "$@" | sort -u >"$work/named"
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
