# Remove directories of old runs below $state: COUNT NAME... ("runs/ID", "backup/ID"), then the files in them to keep.
# Replies: pruned
token=$1 count=$2
shift 2
keep_lock "$token"

# running DIRECTORY: its command has no end yet, and its process is there.
running() {
    [ ! -e "$1/rc" ] && [ -e "$1/pid" ] || return 1
    read -r pid began boot <"$1/pid" || return 1
    [ "$boot" = "$(cat /proc/sys/kernel/random/boot_id)" ] && [ -d "/proc/$pid" ]
}
# keep PATH OTHERS...: whether the path is one of the others.
keep() {
    wanted=$1
    shift
    for other; do
        [ "$other" != "$wanted" ] || return 0
    done
    return 1
}

names=
while [ "$count" -gt 0 ]; do
    case $1 in
        */*/* | *..*) ;; # not one directory below ours
        runs/* | backup/*) names="$names $1" ;;
    esac
    shift
    count=$((count - 1))
done
# The names hold letters, digits, dots and dashes alone.
for name in $names; do
    directory=$state/$name
    [ -d "$directory" ] && [ ! -h "$directory" ] || continue
    ! running "$directory" || continue
    for file in "$directory"/*; do
        keep "$file" "$@" || rm -rf "$file"
    done
    rmdir "$directory" 2>/dev/null
done
echo pruned
