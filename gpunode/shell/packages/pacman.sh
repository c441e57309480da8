# pacman.sh LIMIT_S ARGUMENT...: pacman, once no other process holds its lock. pacman itself gives up at once.
#
# The lock is a file that libalpm keeps open. A file that no process has open was left by a killed pacman: it goes.
set -eu
limit=$1
shift
lock=$(pacman-conf DBPath 2>/dev/null || echo /var/lib/pacman/)db.lck
reported=
while [ -e "$lock" ]; do
  holder=$(find /proc/[0-9]*/fd -lname "$lock" 2>/dev/null | sed -n '1s|^/proc/\([0-9]*\)/.*|\1|p')
  if [ -z "$holder" ]; then
    sleep 1 # between its creation and this check
    [ ! -e "$lock" ] || [ -n "$(find /proc/[0-9]*/fd -lname "$lock" 2>/dev/null)" ] || { echo "removing $lock, which a killed pacman left"; rm -f "$lock"; }
    continue
  fi
  [ "$reported" = "$holder" ] || { reported=$holder; echo "waiting for $lock: it is held by process $holder ($(cat "/proc/$holder/comm" 2>/dev/null))"; }
  [ "$limit" -gt 0 ] || { echo "error: $lock is held by process $holder ($(cat "/proc/$holder/comm" 2>/dev/null))" >&2; exit 75; }
  limit=$((limit - 1))
  sleep 1
done
exec pacman "$@"
