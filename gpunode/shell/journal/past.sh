# Files as they are now, and their backups: INVENTORY, then PATH, BACKUP ("-": none) and "UID:GID" of the user whose file it is
# ("": root) of each. Read-only.
# Replies: past yes | past no (the inventory is there), then per path and per backup: absent [empty] | unread WHY | MODE SIZE and the bytes.
inventory=$1
shift
most=4194304

show() {
    if [ ! -e "$1" ]; then
        # An interrupted undo may have left the directory, with nothing in it.
        [ -d "${1%/*}" ] && [ -z "$(ls -A "${1%/*}")" ] && echo "absent empty" || echo absent
    elif [ ! -f "$1" ]; then
        echo "unread not a regular file"
    elif [ ! -r "$1" ]; then
        echo "unread permission denied"
    elif size=$(wc -c <"$1") && [ "$size" -gt "$most" ]; then
        echo "unread over $most bytes"
    else
        # head: a file that grows meanwhile must not break the answer's shape; its hash is computed from what came.
        printf '%s %d\n' "$(stat -c %a "$1")" "$size"
        head -c "$size" "$1"
        echo
    fi
}

# show_as_user PATH: a copy of what the user can read, up to the limit.
show_as_user() {
    copy=$(mktemp) || failed "cannot make a file for a copy of $1"
    run_as_user_bytes=$((most + 1))
    if ! quiet test -e "$1"; then
        run_as_user_bytes=4096
        quiet test -d "${1%/*}" && [ -z "$(as_owner ls -A "${1%/*}")" ] && echo "absent empty" || echo absent
    elif ! quiet test -f "$1"; then
        echo "unread not a regular file"
    elif ! as_owner sh -c '[ -f "$1" ] && exec cat "$1"' sh "$1" >"$copy"; then
        echo "unread as its user"
    elif [ "$(wc -c <"$copy")" -gt "$most" ]; then
        echo "unread over $most bytes"
    else
        mode=$(as_owner stat -c %a "$1")
        case $mode in '' | *[!0-7]*) mode=600 ;; esac
        printf '%s %d\n' "$mode" "$(wc -c <"$copy")"
        cat "$copy"
        echo
    fi
    rm -f "$copy"
}

[ -r "$inventory" ] && [ -s "$inventory" ] && echo "past yes" || echo "past no"
while [ $# -gt 0 ]; do
    set_run_as "$3" "$1"
    locate "$1"
    if [ -n "$run_as" ]; then show_as_user "$resolved"; else show "$resolved"; fi
    if [ "$2" = - ]; then echo absent; else show "$2"; fi
    shift 3
done
