# End the script ID, which outlived its limit, with all of its session. Replies: ended | running PID... | unknown WHY
# Only a script that recorded who it is (`named` in common.sh), on this boot. Its session is its own: sshd and the local
# transport give every script one (setsid(2)); where something else did not, it would be this script's as well.
token=$1 id=$2
keep_lock "$token"

# stat_of PID: STATE PARENT GROUP SESSION ... of /proc/PID/stat, behind the name, which may hold anything.
stat_of() {
    line=
    while IFS= read -r part; do line="$line $part"; done 2>/dev/null <"/proc/$1/stat"
    printf '%s\n' "${line##*)}"
}
# members: the processes of the session that may still do something.
members() {
    for directory in /proc/[0-9]*; do
        # shellcheck disable=SC2046
        set -- "${directory##*/}" $(stat_of "${directory##*/}" 2>/dev/null)
        case ${2:-Z} in Z | X) continue ;; esac
        [ "${5:-0}" != "$session" ] || printf '%s ' "$1"
    done
}

known='' session='' began='' boot=''
read -r known session began boot 2>/dev/null <"$(script_file)"
[ "$known" = "$id" ] || { echo "unknown it did not come to its first line"; exit 0; }
[ "$boot" = "$(cat /proc/sys/kernel/random/boot_id)" ] || { echo ended; exit 0; }
# shellcheck disable=SC2046
set -- $(stat_of "$$")
[ "$session" -gt 0 ] && [ "$session" != "$4" ] || { echo "unknown its processes may be in more sessions than one"; exit 0; }
# Its leader's number belongs to another process by now: nobody is left of the session that had it.
leader=$(field_of "$session" 20)
[ -z "$leader" ] || [ "$leader" = "$began" ] || { echo ended; exit 0; }

# Stopped first: the shell must not go on to its next command when the one that it waits for is killed.
tries=0
while [ "$tries" -lt 3 ]; do # again: one of them may have been starting another
    for pid in $(members); do kill -STOP "$pid" 2>/dev/null || :; done
    tries=$((tries + 1))
done
left=$(members)
while [ -n "$left" ] && [ "$tries" -lt 53 ]; do
    for pid in $left; do kill -KILL "$pid" 2>/dev/null || :; done
    sleep 0.1 2>/dev/null || sleep 1
    tries=$((tries + 1))
    left=$(members)
done
if [ -n "$left" ]; then echo "running ${left% }"; else echo ended; fi
