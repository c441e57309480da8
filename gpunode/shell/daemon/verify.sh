# sh -s -- NAME SOCKET EXPECTED UNIT TIMEOUT_S [BINARY CONFIG]      after commands.VERIFY
# Exit 0 once the daemon answers, its runtimes are as EXPECTED, and its process is the same in two samples a second
# apart. Exit 1 when that does not happen within TIMEOUT_S; stderr then holds what was seen and the daemon's reason.
# EXPECTED: nvidia = it is the effective default; +nvidia = it is among its runtimes; - = only health is checked.
# Root asks only a socket that the probe would ask (own_socket of trust.sh): another one answers what its owner likes.
# $gpunode_api: the API that the daemon answers: docker, crio, or cri, which is also the default.
# UNIT -: no systemd unit to look at; uid:1000:100: that user's dockerd, asked with their rights (as_user.sh).

# gpunode_may_ask SOCKET UNIT; else gpunode_refused has the reason. Checked before each query:
# a daemon makes its socket anew.
gpunode_may_ask() {
    gpunode_refused=
    case $2 in uid:*) return 0 ;; esac # run as its user
    own_socket "$1" && return 0
    gpunode_refused=$WHY_NOT
    return 1
}

# gpunode_look NAME SOCKET BINARY CONFIG UNIT: the daemon's runtimes as JSON with all blanks removed.
gpunode_look() {
    case $5${gpunode_api:-cri} in
    uid:*) gpunode_their_info "${5#uid:}" "$2" ;;
    *docker) gpunode_docker_info "$2" ;;
    *crio) gpunode_crio_config "$2" | gpunode_crio_json ;;
    *)
        gpunode_cri_status "$2" && return 0
        [ $? -eq 2 ] && gpunode_weaker "$@"
        ;;
    esac | tr -d ' \t\n'
}

# The two things to know of CRI-O's TOML, spelled as CRI Status spells them.
gpunode_crio_json() {
    sed -n -e 's/^[[:space:]]*default_runtime[[:space:]]*=[[:space:]]*"\([^"]*\)".*/{"defaultRuntimeName":"\1"}/p' \
        -e 's/^[[:space:]]*\[crio\.runtime\.runtimes\."\{0,1\}\([^].\"]*\)"\{0,1\}\][[:space:]]*$/{"\1":{}}/p'
}

# With neither crictl nor python3 nor curl: the CRI plugin is loaded, and the file has it. That is weaker evidence,
# since it is what the file has and not what the daemon reports.
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
    case $1 in uid:*) gpunode_uid=${1#uid:} && gpunode_dockerd_of "${gpunode_uid%%:*}"; return ;; esac
    gpunode_systemd || { gpunode_pids "$1"; return; }
    systemctl is-active --quiet "$1" </dev/null && gpunode_property "$1" MainPID
}

# gpunode_restarts UNIT: how often systemd has started it again by itself.
gpunode_restarts() {
    gpunode_count=$(gpunode_property "$1" NRestarts)
    echo "${gpunode_count:-0}"
}

# gpunode_hopeless SOCKET UNIT RESTARTS: no waiting will help a daemon that does not answer. Its start limit is
# hit, systemd has started it in vain twice more, or it is a containerd whose CRI did not load: it tries once, before
# it listens at all.
gpunode_hopeless() {
    if [ "$2" != - ] && gpunode_systemd; then
        systemctl is-failed --quiet "$2" </dev/null && return 0
        [ $(($(gpunode_restarts "$2") - $3)) -ge 2 ] && return 0
    fi
    case $2${gpunode_api:-cri} in uid:* | *docker | *crio) return 1 ;; esac
    [ -z "$gpunode_refused" ] || return 1
    gpunode_bounded ctr --address "$1" plugins ls </dev/null 2>/dev/null |
        grep -Eq '^io\.containerd\.grpc\.v1 +cri +.*(error|skip) *$'
}

# Nothing is printed while waiting, since a daemon that starts does not answer for a second or two either.
gpunode_verify() {
    gpunode_start=$(date +%s)
    gpunode_before='' gpunode_seen='' gpunode_wrong=0 gpunode_lost=0
    gpunode_already=$(gpunode_restarts "$4")
    while :; do
        gpunode_seen=
        gpunode_may_ask "$2" "$4" && gpunode_seen=$(gpunode_look "$1" "$2" "$6" "$7" "$4")
        gpunode_now=$(gpunode_pid "$4")
        if gpunode_holds "$3" "$gpunode_seen" && [ -n "$gpunode_now" ]; then
            [ "$gpunode_now" = "$gpunode_before" ] && return 0
            gpunode_before=$gpunode_now
        else
            gpunode_before=
            # A daemon that has given the same wrong answer ten times will not change its mind: a reload takes well
            # under a second. One that does not answer is checked twice, a second apart.
            if [ -n "$gpunode_seen" ]; then
                gpunode_wrong=$((gpunode_wrong + 1)) gpunode_lost=0
            elif gpunode_hopeless "$2" "$4" "$gpunode_already"; then
                gpunode_wrong=0 gpunode_lost=$((gpunode_lost + 1))
            else
                gpunode_wrong=0 gpunode_lost=0
            fi
            [ "$gpunode_wrong" -ge 10 ] || [ "$gpunode_lost" -ge 2 ] && break
        fi
        [ $(($(date +%s) - gpunode_start)) -ge "$5" ] && break
        sleep 1
    done
    if [ -n "$gpunode_refused" ]; then
        echo "$1 was not asked on $2: $gpunode_refused" >&2
    elif [ -z "$gpunode_seen" ]; then
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

# shellcheck disable=SC2034  # trust.sh reads it
R=''
who
gpunode_verify "$@"
