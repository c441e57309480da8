# Ask for a reboot in a second, so that this answer still arrives. Replies: boot ID
token=$1 pending=$2
keep_lock "$token"
journal "$pending"
sync
ask='sleep 1; systemctl reboot || reboot'
if [ ! -d /run/systemd/system ] || ! systemd-run --quiet /bin/sh -c "$ask" </dev/null >/dev/null 2>&1; then
    command -v setsid >/dev/null 2>&1 && set -- setsid nohup || set -- nohup
    "$@" sh -c "$ask" </dev/null >/dev/null 2>&1 &
fi
echo "boot $(cat /proc/sys/kernel/random/boot_id)"
