# receive.sh HOME SHA256 OFFSET: what follows of a bundle's file on stdin, to be put at OFFSET of what is here.
#
# OFFSET -: nothing follows. Prints `here` where that bundle is unpacked already, else `has BYTES` that are here by now.
# Where another number of bytes is here than OFFSET, nothing is written: whoever sends asks again.
set -eu
home=$1 sha=$2 offset=$3
umask 077
above=${home%/*} part=$1.$2.part
fail() { echo "failed $1"; exit 1; }
[ ! -L "$above" ] || fail "$above is a link"
(umask 022 && mkdir -p "$above") || fail "$above cannot be made"
[ "$(stat -c %u "$above")" = 0 ] || fail "$above is not root's"
case $(stat -c %a "$above") in *[2367] | *[2367]?) fail "others than root may write to $above" ;; esac
if [ -f "$home/SHA256" ] && [ "$(cat "$home/SHA256")" = "$sha" ]; then echo here; exit 0; fi
size() { if [ -f "$part" ] && [ ! -L "$part" ]; then stat -c %s "$part"; else rm -rf "$part"; echo 0; fi; }
if [ "$offset" != - ] && [ "$(size)" = "$offset" ]; then
  cat >>"$part" || fail "$part: $(df -P "$above" | sed -n '2s/.* \([0-9]*\) *[0-9]*%.*/\1 KiB are left/p')"
fi
echo "has $(size)"
