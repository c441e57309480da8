# Restarting a daemon's unit and reporting why it failed, as the daemon's log has it. POSIX sh. Without systemd the
# scripts in /etc/init.d stand for its units, by the same names.

gpunode_systemd() { [ -d /run/systemd/system ]; }

# gpunode_property UNIT NAME: one that systemd knows of it. --value is of systemd 230; EL 7 has 219.
gpunode_property() {
    systemctl show --property "$2" "$1" </dev/null 2>/dev/null | sed 's/^[A-Za-z]*=//'
}

# gpunode_pids UNIT [UID]: the processes of its daemon, as /proc names them, that are root's, or that user's. All four ids:
# a setuid program that a user started under that name has more rights than the user, and fewer than root.
gpunode_pids() {
    gpunode_name=${1%.service}
    [ "$gpunode_name" != docker ] || gpunode_name=dockerd
    for gpunode_path in /proc/[0-9]*; do
        read -r gpunode_comm 2>/dev/null <"$gpunode_path/comm" || continue
        case $gpunode_comm in "$gpunode_name" | "$gpunode_name"-server | "$gpunode_name"-agent) 
            grep -Eqs "^Uid:([[:space:]]+${2:-0}){4}\$" "$gpunode_path/status" && echo "${gpunode_path##*/}" ;;
        esac
    done
}

# gpunode_service ACTION UNIT. Its output goes through a file: a daemon that it starts would keep a pipe open.
gpunode_service() {
    gpunode_name=${2%.service}
    if [ ! -x "/etc/init.d/$gpunode_name" ]; then
        echo "nothing on this host starts $gpunode_name: it has no systemd and no /etc/init.d/$gpunode_name" >&2
        return 1
    fi
    gpunode_said=$(mktemp) || return 1
    if command -v rc-service >/dev/null 2>&1; then
        set -- rc-service "$gpunode_name" "$1"
    elif command -v service >/dev/null 2>&1; then
        set -- service "$gpunode_name" "$1"
    else
        set -- "/etc/init.d/$gpunode_name" "$1"
    fi
    "$@" >"$gpunode_said" 2>&1 </dev/null
    gpunode_code=$?
    cat "$gpunode_said" >&2
    rm -f "$gpunode_said"
    return "$gpunode_code"
}

# gpunode_hangup PIDFILE COMM: SIGHUP to the process in the file, if it is the daemon that it should be.
gpunode_hangup() {
    gpunode_pid=$(cat "$1" 2>/dev/null) # dockerd ends it without a newline, which read calls a failure
    [ -n "$gpunode_pid" ] || { echo "$1 does not say which process $2 is" >&2; return 1; }
    gpunode_comm=
    read -r gpunode_comm 2>/dev/null <"/proc/$gpunode_pid/comm"
    [ "$gpunode_comm" = "$2" ] || { echo "process $gpunode_pid of $1 is not $2" >&2; return 1; }
    kill -HUP "$gpunode_pid"
}

# gpunode_dockerd_of UID: the dockerds of one user.
gpunode_dockerd_of() {
    gpunode_pids docker "$1"
}

# gpunode_hangup_user UID: SIGHUP to the dockerd of that user. Not by its pid file: the user can write it.
gpunode_hangup_user() {
    gpunode_found=$(gpunode_dockerd_of "$1")
    [ -n "$gpunode_found" ] || { echo "user $1 runs no dockerd" >&2; return 1; }
    # shellcheck disable=SC2086  # one or more numbers
    kill -HUP $gpunode_found
}

# gpunode_reason UNIT SINCE: the lines of its log since then (seconds since 1970) that name a fault; else its last three.
gpunode_reason() {
    gpunode_systemd && command -v journalctl >/dev/null 2>&1 || return 0
    case $1 in uid:*) gpunode_uid=${1#uid:} && set -- "_UID=${gpunode_uid%%:*}" "$2" _COMM=dockerd ;; *) set -- "--unit=$1" "$2" ;; esac
    # Not --lines: with --since, older journalctls print the first ones, and the reason is among the last.
    gpunode_log=$(journalctl "$1" ${3:+"$3"} --since "@$2" --output cat --no-pager </dev/null 2>/dev/null | tail -n 200)
    # What containerd logs on every healthy start: no CNI yet, snapshotters it skips, no blockio.
    gpunode_faults=$(printf '%s\n' "$gpunode_log" |
        grep -v -e 'cni config load failed' -e 'skip loading plugin' -e 'blockio' |
        grep -e '^containerd: ' -e 'level=error' -e 'level=fatal' -e 'failed to load plugin.*cri' \
            -e 'unable to configure the Docker daemon' -e 'failed to start daemon' -e 'invalid plugin config' \
            -e 'unrecognized feature gate' -e 'feature is locked to' -e 'unknown flag' -e 'failed to run Kubelet' |
        tail -n 5)
    # systemd's own lines about the unit report only that it failed.
    gpunode_said=$(printf '%s\n' "$gpunode_log" |
        grep -v -e ': Main process exited' -e ': Control process exited' -e ': Failed with result' -e ': Consumed ' \
            -e ': Scheduled restart job' -e '^Failed to start ' -e '^Starting ' -e '^Started ' -e '^Stopp' | tail -n 3)
    printf '%s\n' "${gpunode_faults:-${gpunode_said:-$(printf '%s\n' "$gpunode_log" | tail -n 3)}}" >&2
}

# gpunode_restart UNIT [OTHER-UNIT...]: the others only have their failed state reset.
gpunode_restart() {
    gpunode_systemd || { gpunode_service restart "$1"; return; }
    gpunode_since=$(date +%s)
    # After three failures in a minute systemd refuses even a good config until the count is reset.
    systemctl reset-failed "$@" >/dev/null 2>&1 </dev/null
    systemctl restart "$1" </dev/null && return 0
    gpunode_reason "$1" "$gpunode_since"
    return 1
}

# gpunode_revive UNIT [OTHER-UNIT...]
gpunode_revive() {
    gpunode_systemd || { [ -n "$(gpunode_pids "$1")" ] || gpunode_service start "$1"; return; }
    systemctl is-active --quiet "$1" </dev/null || gpunode_restart "$@"
}
