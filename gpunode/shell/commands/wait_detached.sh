# Wait up to $patience seconds for runs/$id; returns sooner when it ends, or when it has new output.
# Replies: running SIZE | ended CODE SIZE | vanished SIZE, then the output from byte $offset on.
token=$1 id=$2 offset=$3 patience=$4
keep_lock "$token"
dir=$state/runs/$id
alive() {
    read -r pid began boot <"$dir/pid" 2>/dev/null || return 1
    [ "$boot" = "$(cat /proc/sys/kernel/random/boot_id)" ] || return 1
    line=$(cat "/proc/$pid/stat" 2>/dev/null) || return 1
    # shellcheck disable=SC2086
    set -- ${line##*)}
    [ "${20}" = "$began" ] && [ "$1" != Z ]
}
ticks=$((patience * 2)) ready=0
while :; do
    if [ -e "$dir/rc" ]; then word="ended $(cat "$dir/rc")"; break; fi
    if ! alive; then
        [ ! -e "$dir/rc" ] || continue
        word=vanished
        break
    fi
    word=running
    [ "$ticks" -gt 0 ] || break
    # A few seconds of output are gathered into one reply.
    [ "$(wc -c <"$dir/out")" -le "$offset" ] || ready=$((ready + 1))
    [ "$ready" -le 6 ] || break
    sleep 0.5 2>/dev/null || sleep 1
    ticks=$((ticks - 1))
    [ $((ticks % 10)) -ne 0 ] || keep_lock "$token"
done
size=$(wc -c <"$dir/out" 2>/dev/null || echo 0)
echo "$word $((size))"
tail -c "+$((offset + 1))" "$dir/out" 2>/dev/null | head -c "$((size - offset))"
