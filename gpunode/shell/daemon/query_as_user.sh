# Asking a user's own daemon, with that user's rights (as_user.sh). POSIX sh, after query.sh.

# gpunode_their_info UID:GID SOCKET: a user's dockerd's GET /info. Their socket may answer anything, without end.
gpunode_their_info() {
    # shellcheck disable=SC2034  # as_user.sh reads it
    run_as_user_bytes=4194304
    run_as_user_ready "$1" || return 1
    set -- "$2" "$1" 6 sh -c 'exec "$@" 2>/dev/null' sh # a missing tool prints nothing that looks like an answer
    gpunode_their=$1
    shift
    run_as_user "$@" curl --silent --fail --max-time 5 --unix-socket "$gpunode_their" http://localhost/info \
        </dev/null && return 0
    # shellcheck disable=SC2154  # query.sh has it
    run_as_user "$@" python3 -I -c "$gpunode_http_client" "$gpunode_their" /info </dev/null && return 0
    gpunode_json=$(run_as_user "$@" docker --host "unix://$gpunode_their" info --format '{{json .}}' </dev/null) ||
        return 1
    # The CLI prints an object without a daemon too (query.sh).
    case $gpunode_json in *'"ServerErrors"'*) return 1 ;; *) printf '%s\n' "$gpunode_json" ;; esac
}
