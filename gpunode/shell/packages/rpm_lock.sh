# rpm-lock.sh LIMIT_S COMMAND...: a package transaction, once no other process holds rpm's own lock.
#
# dnf waits for another dnf, and zypper for another zypper, but both give up at once when a plain rpm is at work:
# "can't create transaction lock on /var/lib/rpm/.rpm.lock (Resource temporarily unavailable)".
set -eu
limit=$1
shift
lock=$(rpm -E '%{?_rpmlock_path}')
lock=${lock:-$(rpm -E '%{_dbpath}')/.rpm.lock}

holder() { # PID, from the fcntl locks on the file's inode
  [ -e "$lock" ] || return 0
  # shellcheck disable=SC2012  # one file whose name is known
  inode=$(ls -i "$lock" | awk '{ print $1 }')
  sed -n "s/^[0-9]*: *POSIX *[A-Z]* *WRITE *\([0-9]*\) [^ ]*:$inode .*/\1/p" /proc/locks | sed 1q
}

reported=
while pid=$(holder) && [ -n "$pid" ]; do
  name=$(cat "/proc/$pid/comm" 2>/dev/null || :)
  [ "$reported" = "$pid" ] || { reported=$pid; echo "waiting for $lock: it is held by process $pid ($name)"; }
  [ "$limit" -gt 0 ] || { echo "Error: $lock is held by process $pid ($name)" >&2; exit 75; }
  limit=$((limit - 1))
  sleep 1
done
exec "$@"
