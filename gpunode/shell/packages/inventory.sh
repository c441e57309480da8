# The names of all installed packages, kept for an undo: what came along with gpunode's own is not in this list. Says: kept
token=$1 file=$2
keep_lock "$token"
cleanup() { rm -f "$file.part"; }
said=$(umask 077 && LC_ALL=C mkdir -p "${file%/*}" 2>&1) || failed "cannot make the backup folder: ${said#mkdir: }"
if command -v dpkg-query >/dev/null 2>&1; then
    # shellcheck disable=SC2016
    set -- dpkg-query -W -f '${db:Status-Abbrev}${Package}\n'
else
    set -- rpm -qa --queryformat 'ii %{NAME}\n'
fi
said=$(
    exec 2>&1
    umask 077
    "$@" | LC_ALL=C sed -n 's/^.[^nc][^ ]* *//p' | LC_ALL=C sort -u | LC_ALL=C cat >"$file.part"
) || failed "cannot write $file: ${said##*: }"
[ -e "$file" ] || mv -f "$file.part" "$file"
cleanup
echo kept
