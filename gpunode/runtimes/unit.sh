# Restarting a daemon's unit and telling why it failed, in the daemon's own words. POSIX sh.

# gpunode_reason UNIT SINCE: the lines of its log since then (seconds since 1970) that name a fault; else its last three.
gpunode_reason() {
    command -v journalctl >/dev/null 2>&1 || return 0
    gpunode_log=$(journalctl --unit "$1" --since "@$2" --output cat --no-pager --lines 200 </dev/null 2>/dev/null)
    # What containerd says on every healthy start: no CNI yet, snapshotters it skips, no blockio.
    gpunode_faults=$(printf '%s\n' "$gpunode_log" |
        grep -v -e 'cni config load failed' -e 'skip loading plugin' -e 'blockio' |
        grep -e '^containerd: ' -e 'level=error' -e 'level=fatal' -e 'failed to load plugin.*cri' \
            -e 'unable to configure the Docker daemon' -e 'failed to start daemon' -e 'invalid plugin config' |
        tail -n 5)
    printf '%s\n' "${gpunode_faults:-$(printf '%s\n' "$gpunode_log" | tail -n 3)}" >&2
}

# gpunode_restart UNIT [OTHER-UNIT...]: the others only have their failed state reset.
gpunode_restart() {
    gpunode_since=$(date +%s)
    # After three failures in a minute systemd refuses even a good config until the count is reset.
    systemctl reset-failed "$@" >/dev/null 2>&1 </dev/null
    systemctl restart "$1" </dev/null && return 0
    gpunode_reason "$1" "$gpunode_since"
    return 1
}

# gpunode_revive UNIT [OTHER-UNIT...]
gpunode_revive() {
    systemctl is-active --quiet "$1" </dev/null || gpunode_restart "$@"
}
