# Restore one file's bytes, mode and owner from before. Replies: kept | foreign SHA | restored [COPY] | failed WHY
# own=1: this run wrote it, whatever is there now goes; of what others wrote since, COPY is kept.
# own=0: an earlier run did; what others wrote since stays, and the owner and mode that they gave it: put.sh changes
# neither in a file that was there.
# The journal is told afterwards, by who reads the reply: a full disk below /var keeps no old bytes from a file in /etc.
token=$1 own=$2 path=$3 before=$4 after=$5 mode=$6 owner=$7 backup=$8 directories=$9
shift 9
user=$1 keep=$2

cleanup() { quiet rm -f "$candidate"; }
# unmake: the directories that were made above a file that was absent before, as far as nobody else uses them.
unmake() {
    while [ "$directories" -gt 0 ]; do
        quiet rmdir "$directory" || ! quiet test -d "$directory" || break
        directory=${directory%/*} directories=$((directories - 1))
    done
    ! quiet test -d "$directory" || settle "$directory"
}
keep_lock "$token"
named "${script_id:-}" "$user"
set_run_as "$user" "$path"
locate "$path"
hold_file "$path"
check_owner "$resolved"
quiet rm -f "$candidate" "$sibling"
now=$(seen "$resolved") || failed "cannot read $resolved"
if [ "$own" = 0 ] && [ "$now" != absent ]; then
    said=$(as_owner stat -c '%a %u:%g' "$resolved") || failed "cannot stat $resolved"
    mode=${said% *} owner=${said#* }
fi
if [ "$now" = "$before" ] && { [ "$now" = absent ] || [ "$(as_owner stat -c %a "$resolved")" = "$mode" ]; }; then
    [ "$now" != absent ] || unmake # an earlier rollback may have been killed right after the file
    echo kept
    exit 0
fi
if [ "$own" = 0 ] && [ "$now" != "$after" ]; then
    echo "foreign $now"
    exit 0
fi
[ "$before" != absent ] || ! quiet test -h "$path" ||
    failed "$path is a symbolic link to $resolved by now, which may be for others too"
trap 'cleanup; exit 129' HUP INT TERM
copy=
case $now in
    absent | "$before" | "$after") ;;
    *)
        copy=$keep.$now
        said=$(exec 2>&1; umask 077; mkdir -p "${keep%/*}" && run_as_user_bytes=4194304 && as_owner cat "$resolved" >"$copy") &&
            [ "$(sha "$copy")" = "$now" ] || failed "cannot keep what others wrote to $path since: ${said##*: }"
        ;;
esac

if [ "$before" = absent ]; then
    said=$(as_owner rm -f "$resolved" 2>&1) || failed "cannot remove $resolved: ${said#rm: }"
    unmake
    echo "restored${copy:+ $copy}"
    exit 0
fi

[ "$(sha "$backup")" = "$before" ] || failed "the backup $backup is gone or no longer holds the old bytes"
said=$(umask 022 && as_owner mkdir -p "$directory" 2>&1) || failed "cannot make the directory $directory: ${said#mkdir: }"
from=$resolved
quiet test -e "$resolved" || from=$backup
# A backup is root's alone: a user's file that is gone is made anew with that user's rights.
[ -n "$run_as" ] && [ "$from" = "$backup" ] || said=$(as_owner cp -a "$from" "$candidate" 2>&1) ||
    failed "cannot write next to $path: ${said#cp: }"
said=$(exec 2>&1; fill "$candidate" <"$backup") || failed "cannot write $candidate: ${said##*: }"
[ -z "$run_as" ] || [ "$(as_owner stat -c %u:%g "$candidate")" != "$owner" ] || owner=
said=$({ [ -z "$owner" ] || as_owner chown "$owner" "$candidate"; } 2>&1 && as_owner chmod "$mode" "$candidate" 2>&1) || failed "cannot set owner and mode: $said"
gone=
quiet test -e "$resolved" || gone=1
swap
[ -z "$gone" ] || relabel "$resolved"
[ "$(seen "$resolved")" = "$before" ] || failed "$path does not hold its old bytes after the rename"
[ "$(as_owner stat -c %a "$resolved")" = "$mode" ] || failed "$path does not have its old mode $mode"
echo "restored${copy:+ $copy}"
