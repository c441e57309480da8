# sh -s -- UNIT TIMEOUT_S PORT NODE KUBECONFIG PLUGINS WORD...      after daemon/query, trust and daemon/restart
# Exit 0 once the kubelet's own /healthz answers "ok", its process is the same in three looks a second apart, and what was
# so before is so again ($gpunode_enough: in how many looks, one after the other). PORT 0: it has no /healthz. NODE: its
# node, which was Ready, as KUBECONFIG asks for it; or - for both. PLUGINS: the directory in which NVIDIA's device plugin
# had a socket of this kubelet's time, or -. WORD: what the command line of the kubelet must have.
# Exit 1 with what was seen and the kubelet's last words when that does not happen within TIMEOUT_S.

# gpunode_kubelet UNIT: the process that is the kubelet, or that has it inside; "" or 0 where none runs.
gpunode_kubelet() {
    gpunode_systemd || { gpunode_pids "$1"; return; }
    systemctl is-active --quiet "$1" </dev/null && gpunode_property "$1" MainPID
}

# gpunode_words UNIT PID: what that process said last: the line with which it ended, else its last errors, else its last
# lines. By its process, and not by time: one that was told otherwise, and ended, has lines of the same second. A Fatal of
# klog prints hundreds of lines behind its own (every goroutine; before them, for a flag, all of its help).
gpunode_words() {
    command -v journalctl >/dev/null 2>&1 || return 0
    case $2 in '' | 0) return 0 ;; esac # none has run yet
    gpunode_bounded journalctl -b "_SYSTEMD_UNIT=$1" "_PID=$2" --lines 20000 --output cat --no-pager </dev/null 2>/dev/null | awk '
        /^[IWEF][0-9][0-9][0-9][0-9] [0-9][0-9]:/ { dump = 0 }
        /^goroutine [0-9]+ [[]/ { dump = 1 }
        dump || /^[ \t]*$/ { next }
        { line = substr($0, 1, 500) }
        /^F[0-9][0-9][0-9][0-9] / || /^panic: / || /^fatal error: / { end = line }
        /^E[0-9][0-9][0-9][0-9] / || /level=(error|fatal)/ || /^[Ee]rror: / {
            said = line; sub(/^E[0-9]+ [0-9:.]+ +[0-9]+ /, "", said) # the same again and again, at other times
            if (said != before) { error[errors++ % 3] = line; before = said } else error[(errors + 2) % 3] = line }
        { last[lines++ % 3] = line }
        END {
            if (end != "") { print end; exit }
            for (n = errors > 3 ? errors - 3 : 0; n < errors; n++) print error[n % 3]
            if (!errors) for (n = lines > 3 ? lines - 3 : 0; n < lines; n++) print last[n % 3] }'
}

# "F1125 20:49:44.745034    4297 server.go:182] unknown flag" -> "unknown flag", of the last line
gpunode_bare() {
    sed -n '$ { s/^[IWEF][0-9]\{4\} [0-9:.]\{1,\} *[0-9]\{1,\} [^ ]*:[0-9]*\] //; p; }'
}

# gpunode_listens PORT: who would answer at 127.0.0.1 is root's: another user's would say what it likes while the kubelet is
# down. What listens on other addresses alone, 127.0.0.2 among them, does not answer there.
gpunode_listens() {
    gpunode_port=$(printf '%04X' "$1")
    cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | awk -v port=":$gpunode_port" '
        $4 != "0A" || substr($2, length($2) - 4) != port { next }
        $2 ~ /^(0+|0100007F|0000000000000000FFFF00000100007F):/ { seen = 1; if ($8 != 0) other = 1 }
        END { exit !(seen && !other) }'
}

# gpunode_get URL: the first bytes of its answer. 127: nothing here can ask.
gpunode_get() {
    if gpunode_tool curl; then
        gpunode_bounded "$TOOL" -q -s --noproxy '*' -m 4 "$1" </dev/null 2>/dev/null | head -c 64
    elif gpunode_tool wget; then
        http_proxy='' gpunode_bounded "$TOOL" -q -O - "$1" </dev/null 2>/dev/null | head -c 64
    else
        gpunode_python '
import sys, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
print(opener.open(sys.argv[1], timeout=4).read(64).decode())' "$1"
    fi
}

# gpunode_healthy PORT
gpunode_healthy() {
    gpunode_listens "$1" || return 1
    gpunode_answer=$(gpunode_get "http://127.0.0.1:$1/healthz")
    case $? in 127) return 0 ;; esac
    [ "$gpunode_answer" = ok ]
}

# gpunode_ready NODE KUBECONFIG: the node is Ready, asked with the kubelet's own kubeconfig; what cannot be asked does not count.
gpunode_ready() {
    gpunode_node=$1 gpunode_config=$2
    [ -f "$gpunode_config" ] && trusted "$gpunode_config" && ! asks_a_program "$gpunode_config" || return 0
    find_kubectl || return 0
    # shellcheck disable=SC2086  # one or two words
    gpunode_state=$(HOME=/nonexistent KUBECONFIG='' gpunode_bounded $KUBECTL --kubeconfig "$gpunode_config" --request-timeout 4s \
        get node -o 'go-template={{range .status.conditions}}{{if eq .type "Ready"}}{{.status}}{{end}}{{end}}' \
        -- "$gpunode_node" </dev/null 2>/dev/null | head -c 16)
    [ "$gpunode_state" = True ]
}

# gpunode_registered DIRECTORY: a socket of NVIDIA's device plugin is newer than the kubelet's, which makes its own at start.
gpunode_registered() {
    [ -S "$1/kubelet.sock" ] || return 1
    for gpunode_path in "$1"/nvidia*.sock; do
        # shellcheck disable=SC3013 # dash, bash and busybox have it
        [ -S "$gpunode_path" ] && ! [ "$gpunode_path" -ot "$1/kubelet.sock" ] && return 0
    done
    return 1
}

# gpunode_told PID WORD...: the process was started with these words in its command line.
gpunode_told() {
    gpunode_line=$(tr '\0' ' ' <"/proc/$1/cmdline" 2>/dev/null)
    shift
    for gpunode_word in "$@"; do
        case $gpunode_line in *"$gpunode_word"*) ;; *) return 1 ;; esac
    done
}

# gpunode_missing PID PORT NODE KUBECONFIG PLUGINS WORD...: what is not so yet, in words; "" when all is.
gpunode_missing() {
    gpunode_pid=$1 gpunode_at=$2 gpunode_was_ready=$3 gpunode_by=$4 gpunode_plugins=$5
    shift 5
    if [ "$gpunode_at" != 0 ] && ! gpunode_healthy "$gpunode_at"; then
        echo "its /healthz on port $gpunode_at does not answer ok"
    elif ! gpunode_told "$gpunode_pid" "$@"; then
        echo "it was started without $*"
    elif [ "$gpunode_plugins" != - ] && ! gpunode_registered "$gpunode_plugins"; then
        echo "NVIDIA's device plugin, which was registered, has not registered again"
    elif [ "$gpunode_was_ready" != - ] && ! gpunode_ready "$gpunode_was_ready" "$gpunode_by"; then
        echo 'its node, which was Ready, is not'
    fi
}

gpunode_verify_kubelet() { # UNIT TIMEOUT_S PORT NODE KUBECONFIG PLUGINS WORD...
    gpunode_unit=$1 gpunode_limit=$2
    shift 2
    gpunode_start=$(date +%s)
    gpunode_before='' gpunode_same=0 gpunode_down=0 gpunode_wrong='' gpunode_main='' gpunode_earlier=''
    # Without an answer to go by, a process that stays for ten seconds: what it is told wrongly ends it in one.
    [ "$1" != 0 ] || [ "$gpunode_enough" -ge 10 ] || gpunode_enough=10
    while :; do
        gpunode_now=$(gpunode_property "$gpunode_unit" ExecMainPID) # of one that has ended, too
        [ "$gpunode_now" = "$gpunode_main" ] || { gpunode_earlier=$gpunode_main gpunode_main=$gpunode_now; }
        gpunode_now=$(gpunode_kubelet "$gpunode_unit")
        case $gpunode_now in
            '' | 0) gpunode_now='' gpunode_down=$((gpunode_down + 1)) gpunode_same=0 gpunode_wrong='its process does not stay' ;;
            "$gpunode_before")
                gpunode_down=0 gpunode_same=$((gpunode_same + 1))
                gpunode_wrong=$(gpunode_missing "$gpunode_now" "$@")
                if [ "$gpunode_same" -ge "$gpunode_enough" ] && [ -z "$gpunode_wrong" ]; then return 0; fi ;;
            *) gpunode_down=0 gpunode_same=0 gpunode_wrong='its process does not stay' ;;
        esac
        gpunode_before=$gpunode_now
        # One that ended waits ten seconds for its next start: it was told what it does not take.
        [ "$gpunode_down" -lt 3 ] && [ $(($(date +%s) - gpunode_start)) -lt "$gpunode_limit" ] || break
        sleep 1
    done
    # Looks may be slow: all was well in the last ones, though not in as many.
    [ "$gpunode_same" -lt 2 ] || [ -n "$gpunode_wrong" ] || return 0
    # One that was started just now has said nothing yet.
    gpunode_last=$(gpunode_words "$gpunode_unit" "$gpunode_main")
    [ -n "$gpunode_last" ] || gpunode_last=$(gpunode_words "$gpunode_unit" "$gpunode_earlier")
    [ -z "$gpunode_last" ] || printf '%s\n' "$gpunode_last" >&2
    gpunode_last=$(printf '%s\n' "$gpunode_last" | gpunode_bare)
    echo "$gpunode_unit: $gpunode_wrong${gpunode_last:+; its last words: $gpunode_last}" >&2
    return 1
}

: "${gpunode_enough:=2}"
# shellcheck disable=SC2034  # trust.sh reads it
R=''
who
gpunode_verify_kubelet "$@"
