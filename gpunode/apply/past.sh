# Files as they are now, and their backups: INVENTORY, then pairs of PATH BACKUP ("-": none). Read-only.
# Says: past yes | past no (the inventory is there), then per path and per backup: absent [empty] | unread WHY | MODE SIZE and the bytes.
inventory=$1
shift
most=4194304

show() {
    if [ ! -e "$1" ]; then
        # An undo that was cut off may have left the folder, with nothing in it.
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

[ -r "$inventory" ] && echo "past yes" || echo "past no"
while [ $# -gt 0 ]; do
    locate "$1"
    show "$resolved"
    if [ "$2" = - ]; then echo absent; else show "$2"; fi
    shift 2
done
