# One command. stdin: NAME=value lines, an empty line, then what the command reads. Replies `ran`, then the command's own output.
token=$1 pending=$2 limit=$3
shift 3
keep_lock "$token"
journal "$pending"
if [ $# -eq 0 ]; then
    echo ran
    exit 0
fi
whole=
while IFS= read -r line; do
    if [ -z "$line" ]; then whole=1; break; fi
    export "${line?}"
done
[ -n "$whole" ] || failed "the connection broke while the command's input was sent; it was not started"
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
if ! command -v "$1" >/dev/null 2>&1; then
    echo ran
    echo "$1: not found on this host" >&2
    exit 127
fi
timeout 1 true 2>/dev/null && set -- timeout "$limit" "$@"
# Recorded as detached ones are (list_detached.sh), so that whoever takes over from a killed run waits for its end as well.
# One at a time: there is one lock. A full disk is no reason not to run it.
attached=
[ -z "$token" ] || attached=$state/runs/attached-command
[ -z "$attached" ] || (
    umask 077
    rm -rf "$attached"
    mkdir -p "$attached" && : >"$attached/out" &&
        echo "$$ $(field_of "$$" 20) $(cat /proc/sys/kernel/random/boot_id)" >"$attached/pid.part" &&
        mv "$attached/pid.part" "$attached/pid"
) 2>/dev/null || :
echo ran
heartbeat "$token"
"$@"
code=$?
[ -z "$attached" ] || rm -rf "$attached"
[ -z "${beater:-}" ] || kill "$beater" 2>/dev/null
exit "$code"
