# The ids of commands that an earlier, killed run left running, one a line: detached ones, and the one of run.sh. Read-only,
# unless it is given a TOKEN and LINES that wait for the journal: they come first.
keep_lock "${1:-}"
journal "${2:-}"
for dir in "$state"/runs/*/; do
    dir=${dir%/}
    [ -e "$dir/pid" ] && [ ! -e "$dir/rc" ] || continue
    read -r pid began boot <"$dir/pid" || continue
    [ "$boot" = "$(cat /proc/sys/kernel/random/boot_id)" ] || continue
    line=$(cat "/proc/$pid/stat" 2>/dev/null) || continue
    # shellcheck disable=SC2086
    set -- ${line##*)}
    [ "${20}" != "$began" ] || echo "${dir##*/}"
done
:
