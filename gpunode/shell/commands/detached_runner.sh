# The detached process itself; kept in runs/ID/runner with the command's line at its end. Its exit code lands in `rc`.
dir=$1
mkdir "$dir/begun" 2>/dev/null || exit 0
stat=$(cat /proc/$$/stat)
# shellcheck disable=SC2086
set -- ${stat##*)}
# Field 22, the start time, tells a reused pid apart; the boot id does the same for a reboot.
echo "$$ ${20} $(cat /proc/sys/kernel/random/boot_id)" >"$dir/pid.part"
mv "$dir/pid.part" "$dir/pid"
cd /
umask 022
HOME=${HOME:-/root} PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
export HOME PATH
finish() {
    rm -f "$dir/in" # it may hold a password, and whoever sees `rc` takes all of this for over
    # What maintainer scripts and dpkg wrote without a flush must not be lost once this counts as done. Each file system by
    # itself: `sync` alone would wait for a network share that hangs.
    sync -f / /etc /usr /boot /var 2>/dev/null || :
    echo "$1" >"$dir/rc.part"
    sync "$dir/rc.part" 2>/dev/null || sync
    mv "$dir/rc.part" "$dir/rc"
    exit 0
}
exec <"$dir/in" >>"$dir/out" 2>&1
while IFS= read -r line && [ -n "$line" ]; do export "${line?}"; done
