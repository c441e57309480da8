# The names of all installed packages, kept for an undo: what gpunode's own installed too is not in it. Prints: kept
# NAMES is the sh that prints them, one a line: the host's package manager supplies it.
token=$1 file=$2 names=$3
keep_lock "$token"
cleanup() { rm -f "$file.part"; }
nl='
'
message=$(umask 077 && LC_ALL=C mkdir -p "${file%/*}" 2>&1) || failed "cannot make the backup directory: ${message#mkdir: }"
# An empty list is accepted from a manager that answers: with one that does not, undo would take all for gpunode's.
listed=$(LC_ALL=C sh -c "$names" </dev/null 2>/dev/null) || {
    message=$(LC_ALL=C sh -c "$names" </dev/null 2>&1 >/dev/null)
    failed "the installed packages cannot be listed${message:+: $message}"
}
message=$(
    exec 2>&1
    umask 077
    printf '%s' "${listed:+$listed$nl}" | LC_ALL=C sort -u | LC_ALL=C cat >"$file.part"
) || failed "cannot write $file: ${message##*: }"
if [ ! -s "$file" ]; then
    # An undo that found it empty after a power cut would take every package for gpunode's.
    flush "$file.part"
    mv -f "$file.part" "$file"
    flush "${file%/*}"
fi
cleanup
echo kept
