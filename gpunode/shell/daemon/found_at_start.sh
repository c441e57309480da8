# sh -s -- UNIT PROGRAM     after daemon/restart
# Exit 0 when the running daemon finds PROGRAM in its own PATH and has started since PROGRAM was there: it looks for it at
# its start only. Ages, not times of day: both are known as seconds before now.

# gpunode_age PID -> gpunode_age, seconds since it started; its 22nd number counts hundredths of seconds (proc(5)).
gpunode_age() {
    gpunode_stat=$(cat "/proc/$1/stat" 2>/dev/null)
    # shellcheck disable=SC2086  # numbers; the name before them may hold blanks
    set -- ${gpunode_stat##*) }
    [ $# -ge 20 ] || return 1
    shift 19
    read -r gpunode_uptime _ </proc/uptime
    gpunode_age=$((${gpunode_uptime%%.*} - $1 / 100))
}

# gpunode_in_path_of PID PROGRAM: where the daemon finds it.
gpunode_in_path_of() {
    gpunode_path=$(tr '\0' '\n' <"/proc/$1/environ" 2>/dev/null | sed -n 's/^PATH=//p')
    (IFS=: && for gpunode_bin in $gpunode_path; do
        [ -f "$gpunode_bin/$2" ] && [ -x "$gpunode_bin/$2" ] && echo "$gpunode_bin/$2" && exit 0
    done; exit 1)
}

gpunode_found_at_start() {
    gpunode_pid=$(gpunode_pids "$1" | head -n 1)
    [ -n "$gpunode_pid" ] && gpunode_age "$gpunode_pid" || { echo "${1%.service} does not run" >&2; return 1; }
    gpunode_file=$(gpunode_in_path_of "$gpunode_pid" "$2") ||
        { echo "$2 is not in the PATH of the running ${1%.service}: $gpunode_path" >&2; return 1; }
    gpunode_there=$(($(date +%s) - $(stat -c %Z "$gpunode_file")))
    # Whole seconds on either side.
    [ "$gpunode_age" -le $((gpunode_there + 1)) ] && return 0
    echo "process $gpunode_pid was not started again: it runs since before $gpunode_file was there" >&2
    return 1
}

gpunode_found_at_start "$@"
