# sh -s -- docker|containerd SOCKET EXPECTED UNIT TIMEOUT_S [BINARY CONFIG]      after effective.sh and unit.sh
# Exit 0 once the daemon answers, its runtimes are as EXPECTED, and its process is the same in two samples a second
# apart. Exit 1 when that does not happen within TIMEOUT_S; stderr then holds what was seen and the daemon's reason.
# EXPECTED: nvidia = it is the effective default; +nvidia = it is known; - = only health counts.
# UNIT -: no systemd unit to look at.

# gpunode_look KIND SOCKET BINARY CONFIG: the daemon's runtimes as JSON with all blanks removed.
gpunode_look() {
    case $1 in
    docker) gpunode_docker_info "$2" ;;
    *)
        gpunode_cri_status "$2" && return 0
        [ $? -eq 2 ] && gpunode_weaker "$@"
        ;;
    esac | tr -d ' \t\n'
}

# With neither crictl nor python3 nor curl: the CRI plugin is loaded, and the file says so. That is weaker evidence,
# since it is the file's word and not the daemon's.
gpunode_weaker() {
    gpunode_bounded ctr --address "$2" plugins ls </dev/null 2>/dev/null | grep 'cri' | grep -q -v ' error' || return 1
    gpunode_name=$(gpunode_bounded "$3" --config "$4" config dump </dev/null 2>/dev/null |
        sed -n "s/^ *default_runtime_name *= *[\"']\(.*\)[\"'] *$/\1/p" | head -n 1)
    [ -n "$gpunode_name" ] || return 1
    echo "$1 was asked through ctr and its configuration only: weaker evidence" >&2
    printf '{"defaultRuntimeName":"%s","%s":{}}' "$gpunode_name" "$gpunode_name"
}

# gpunode_default JSON: the effective default in what gpunode_look printed.
gpunode_default() {
    printf '%s\n' "$1" | sed -n 's/.*"[dD]efaultRuntime\(Name\)\{0,1\}":"\([^"]*\)".*/\2/p'
}

# gpunode_holds EXPECTED JSON
gpunode_holds() {
    case $1 in
    -) [ -n "$2" ] ;;
    +*) case $2 in *"\"${1#+}\":{"*) true ;; *) false ;; esac ;;
    *) [ "$(gpunode_default "$2")" = "$1" ] ;;
    esac
}

# gpunode_pid UNIT: its main process; nothing when it is not active.
gpunode_pid() {
    [ "$1" = - ] && echo - && return
    systemctl is-active --quiet "$1" </dev/null && systemctl show --property MainPID --value "$1" </dev/null
}

# Nothing is printed while waiting, since a daemon that starts is silent for a second or two as well.
gpunode_verify() {
    gpunode_start=$(date +%s)
    gpunode_before='' gpunode_seen=''
    while :; do
        gpunode_seen=$(gpunode_look "$1" "$2" "$6" "$7")
        gpunode_now=$(gpunode_pid "$4")
        if gpunode_holds "$3" "$gpunode_seen" && [ -n "$gpunode_now" ]; then
            [ "$gpunode_now" = "$gpunode_before" ] && return 0
            gpunode_before=$gpunode_now
        else
            gpunode_before=
        fi
        [ $(($(date +%s) - gpunode_start)) -ge "$5" ] && break
        sleep 1
    done
    if [ -z "$gpunode_seen" ]; then
        echo "$1 does not answer on $2" >&2
    elif gpunode_holds "$3" "$gpunode_seen"; then
        echo "$4 does not stay up" >&2
    else
        echo "$1 runs with $(gpunode_default "$gpunode_seen") as its default runtime, and ${3#+} was expected" >&2
    fi
    # Two minutes back: the restart that went before this script is in it.
    [ "$4" = - ] || gpunode_reason "$4" $((gpunode_start - 120))
    return 1
}

gpunode_verify "$@"
