# Commands with a user's rights, on behalf of root. POSIX sh, with util-linux's setpriv and setsid.
#
# A user may stop their own processes and write to whatever those hold (ptrace(2), /proc/PID/fd). So such a command holds
# nothing of root's: stdin is a pipe or /dev/null, never the stream that this script came from; its output goes through a
# pipe that root empties, up to a limit; no other file, no variable, no terminal, no directory to stand in.

# run_as_user_ready UID:GID: whether this host can run commands as this user.
run_as_user_ready() {
    case $1 in *[!0-9:]* | :* | *: | *:*:* | 0:*) return 1 ;; *:*) ;; *) return 1 ;; esac
    run_as_user_setpriv='' run_as_user_timeout=timeout
    # A busybox that is the shell would take its own: its setpriv changes no user, its timeout keeps the pipe for a second.
    for run_as_user_bin in /bin /usr/bin; do
        [ ! -x "$run_as_user_bin/setpriv" ] || run_as_user_setpriv=$run_as_user_bin/setpriv
        [ ! -x "$run_as_user_bin/timeout" ] || run_as_user_timeout=$run_as_user_bin/timeout
    done
    [ -n "$run_as_user_setpriv" ] && run_as_user "$1" 30 true >/dev/null 2>&1 </dev/null
}

# run_as_user UID:GID SECONDS COMMAND...: its output on both streams, at most $run_as_user_bytes; its exit status, 137
# when it had to be killed. stdin is handed on: give it a pipe or /dev/null. A child that it leaves behind delays nobody
# for longer than SECONDS.
run_as_user_bytes=65536
run_as_user() {
    run_as_user_ids=$1 run_as_user_s=$2
    shift 2
    {
        run_as_user_code=$(
            {
                {
                    cd / && "$run_as_user_timeout" -s KILL "$run_as_user_s" setsid env -i \
                        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/ LC_ALL=C \
                        "$run_as_user_setpriv" --reuid "${run_as_user_ids%:*}" --regid "${run_as_user_ids#*:}" \
                        --clear-groups --inh-caps=-all -- "$@" 2>&1 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-
                    echo "$?" >&3
                } | "$run_as_user_timeout" -s KILL "$((run_as_user_s + 1))" head -c "$run_as_user_bytes" >&4 3>&-
            } 3>&1
        )
    } 4>&1
    return "${run_as_user_code:-1}"
}
