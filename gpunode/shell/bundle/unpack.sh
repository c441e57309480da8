# unpack.sh HOME SHA256: the bundle that was sent to HOME.SHA256.part becomes HOME, where its hash is the expected one.
#
# The controller has read the file to its end: plain files below one directory alone are in it. What is at HOME goes to
# HOME.old, where the plan's last step removes it, and comes back if no driver comes of it. Exit 65: it is another file.
set -eu
home=$1 sha=$2 part=$1.$2.part
umask 022
[ -e "$home" ] || [ ! -d "$home.old" ] || mv "$home.old" "$home" # killed between the two moves below
if [ -f "$home/SHA256" ] && [ "$(cat "$home/SHA256")" = "$sha" ]; then echo "it is here already"; exit 0; fi
[ -f "$part" ] || { echo "$part is not there: the bundle was not sent" >&2; exit 66; }
found=$(sha256sum <"$part")
found=${found%% *}
if [ "$found" != "$sha" ]; then
  rm -f "$part"
  echo "the bundle arrived as another file: its SHA-256 is $found, expected $sha" >&2
  exit 65
fi
trap 'rm -rf "$home.new"' EXIT # what a full disk cut off
rm -rf "$home.new"
mkdir "$home.new"
tar -xf "$part" -C "$home.new" --no-same-owner --no-same-permissions --strip-components=1
chmod -R u=rwX,go=rX "$home.new" # apt reads as a user of its own
printf '%s\n' "$sha" >"$home.new/SHA256"
rm -rf "$home.old"
[ ! -e "$home" ] || mv "$home" "$home.old"
mv "$home.new" "$home"
rm -f "$home".*.part # and what was sent of others, and given up
sync
