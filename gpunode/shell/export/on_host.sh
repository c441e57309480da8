# shellcheck shell=sh disable=SC2154
# From a container of the host's pid namespace into the host's namespaces. Sent before what calls it, which gives HERE, a directory.
set -u

on_host() { # WORDS...: host.sh in the host's namespaces, with nothing of the container's environment. It is no argument, which every
  # user of the host could read, and standard input is taken; nsenter's short options are busybox's too
  nsenter -t 1 -m -u -i -n -p -- /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root sh /proc/self/fd/3 "$@" 3<"$HERE/host.sh"
}

outside() { # whether there is a host to enter
  [ "$(readlink /proc/1/ns/mnt)" != "$(readlink /proc/self/ns/mnt)" ] || {
    echo "gpunode: process 1 is not the host's: the pod needs hostPID" >&2
    return 1
  }
}
