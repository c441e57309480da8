# Commands with a user's rights, on behalf of root. POSIX sh, with util-linux's setpriv and setsid.
#
# A user may stop their own processes and write to whatever those hold (ptrace(2), /proc/PID/fd). So such a command holds
# nothing of root's: stdin is a pipe or /dev/null, never the stream that this script came from; what it says goes through a
# pipe that root empties, so far and no further; no other file, no variable, no terminal, no directory to stand in.

# hired_ready UID:GID: whether this host can do it.
hired_ready() {
    case $1 in *[!0-9:]* | :* | *: | *:*:* | 0:*) return 1 ;; *:*) ;; *) return 1 ;; esac
    hired_setpriv='' hired_timeout=timeout
    # A busybox that is the shell would take its own: its setpriv changes no user, its timeout keeps the pipe for a second.
    for hired_one in /bin /usr/bin; do
        [ ! -x "$hired_one/setpriv" ] || hired_setpriv=$hired_one/setpriv
        [ ! -x "$hired_one/timeout" ] || hired_timeout=$hired_one/timeout
    done
    [ -n "$hired_setpriv" ] && hired "$1" 30 true >/dev/null 2>&1 </dev/null
}

# hired UID:GID SECONDS COMMAND...: what it says on both streams, at most $hired_bytes; its exit status, 137 when it had to be
# killed. stdin is handed on: give it a pipe or /dev/null. A child that it leaves behind holds nobody up for longer than SECONDS.
hired_bytes=65536
hired() {
    hired_who=$1 hired_s=$2
    shift 2
    {
        hired_code=$(
            {
                {
                    cd / && "$hired_timeout" -s KILL "$hired_s" setsid env -i \
                        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/ LC_ALL=C \
                        "$hired_setpriv" --reuid "${hired_who%:*}" --regid "${hired_who#*:}" --clear-groups --inh-caps=-all -- \
                        "$@" 2>&1 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-
                    echo "$?" >&3
                } | "$hired_timeout" -s KILL "$((hired_s + 1))" head -c "$hired_bytes" >&4 3>&-
            } 3>&1
        )
    } 4>&1
    return "${hired_code:-1}"
}
