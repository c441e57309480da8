# Start a command as its own unit, so that no lost connection can stop it. Replies: started | failed WHY. Safe to send twice.
# stdin: NAME=value lines, an empty line, then what the command reads; $size bytes in all.
token=$1 pending=$2 id=$3 size=$4 runner=$5
keep_lock "$token"
runs=$state/runs
dir=$runs/$id
umask 077
cleanup() { rm -rf "$dir.part"; }
if [ ! -d "$dir" ]; then
    rm -rf "$dir.part"
    said=$(LC_ALL=C mkdir -p "$dir.part" 2>&1) || failed "cannot make $dir: ${said#mkdir: }"
    said=$(exec 2>&1; LC_ALL=C cat >"$dir.part/in") || failed "cannot write $dir/in: ${said##*: }"
    [ "$(wc -c <"$dir.part/in")" -eq "$size" ] || failed "the command's input did not arrive whole; it was not started"
    said=$(exec 2>&1; printf '%s\n' "$runner" | LC_ALL=C cat >"$dir.part/runner") || failed "cannot write $dir/runner: ${said##*: }"
    : >"$dir.part/out"
    journal "$pending"
    mv "$dir.part" "$dir"
    flush "$runs"
else
    cat >/dev/null
fi
[ ! -e "$dir/rc" ] && [ ! -e "$dir/pid" ] || { echo started; exit 0; }

unit=gpunode-$id
# Of an image's build: what /run shows is the systemd of the machine that builds it.
if [ -d /run/systemd/system ] && ! sed '/^$/q' "$dir/in" | grep -qx SYSTEMD_OFFLINE=1; then
    # A shutdown waits for the transaction: its stop signal is one that nobody dies of, and dpkg gets 15 minutes. It is over
    # with the runner (KillMode=process, as in Debian's apt-daily-upgrade.service): what a package's script left running
    # is waited for by nobody, lives on as after an apt-get that was typed, and a shutdown ends it with all that is left.
    # --collect is newer than EL 7's systemd.
    for extra in --collect --quiet; do
        said=$(systemd-run --quiet "$extra" --unit="$unit" --property=KillMode=process --property=KillSignal=SIGCONT \
            --property=TimeoutStopSec=900 --description="gpunode: $id" /bin/sh "$dir/runner" "$dir" 2>&1 </dev/null) && break
    done
else
    command -v setsid >/dev/null 2>&1 && set -- setsid nohup || set -- nohup
    "$@" sh "$dir/runner" "$dir" </dev/null >/dev/null 2>&1 &
fi
tries=0
while [ ! -e "$dir/pid" ]; do
    tries=$((tries + 1))
    [ "$tries" -le 100 ] || failed "the command did not start: ${said:-no process appeared within 10 s}"
    sleep 0.1 2>/dev/null || sleep 1
done
echo started
