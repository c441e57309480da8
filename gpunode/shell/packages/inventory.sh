# The names of all installed packages, kept for an undo: what came along with gpunode's own is not in this list. Says: kept
# NAMES is the sh that prints them, one a line: the host's package manager knows it.
token=$1 file=$2 names=$3
keep_lock "$token"
cleanup() { rm -f "$file.part"; }
said=$(umask 077 && LC_ALL=C mkdir -p "${file%/*}" 2>&1) || failed "cannot make the backup folder: ${said#mkdir: }"
said=$(
    exec 2>&1
    umask 077
    LC_ALL=C sh -c "$names" </dev/null | LC_ALL=C sort -u | LC_ALL=C cat >"$file.part"
) || failed "cannot write $file: ${said##*: }"
# No host has none; with an empty list undo would take everything that is needed by nothing else for gpunode's.
[ -s "$file.part" ] || failed "the installed packages cannot be listed${said:+: $said}"
[ -e "$file" ] || mv -f "$file.part" "$file"
cleanup
echo kept
