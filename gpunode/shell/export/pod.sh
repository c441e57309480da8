# shellcheck shell=sh disable=SC2154
# What the DaemonSet's pod runs: it hands gpunode and the spec over to its host, has the host run them, and says by READY that it
# is done. Nothing of gpunode runs in the container itself, which needs sh and nsenter (busybox has both).
# HERE: where the ConfigMaps are mounted. What stands above gives it.
set -u

on_host() { # WORDS...: host.sh in the host's namespaces, with nothing of the container's environment. It is no argument, which every
  # user of the host could read, and standard input is taken; nsenter's short options are busybox's too
  nsenter -t 1 -m -u -i -n -p -- /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root sh /proc/self/fd/3 "$@" 3<"$HERE/host.sh"
}

idle() { # until the pod is deleted
  trap 'exit 0' TERM INT
  while :; do sleep 3600 & wait $! || exit 1; done
}

rm -f "$READY"
if [ "$(readlink /proc/1/ns/mnt)" = "$(readlink /proc/self/ns/mnt)" ]; then
  echo "gpunode: process 1 is not the host's: the pod needs hostPID" >&2
  exit 2
fi
set -- "$HERE"/part-*
if [ -e "$1" ]; then
  cat "$@" | on_host bring || exit 1 # the kubelet tries again
else
  on_host bring </dev/null || exit 1
fi
on_host spec <"$HERE/spec.yaml" || exit 1
while :; do
  code=0
  on_host setup </dev/null || code=$?
  [ "$code" = 8 ] || break # another gpunode is at work on this host: it comes to its end
  sleep 30
done
if [ "$code" != 0 ]; then
  # Not again and again: each try may restart an engine. The pod stays as it is, not ready, so that no other node's begins.
  echo "gpunode: setup ended with exit code $code; delete this pod to try again" >&2
  idle
fi
: >"$READY"
idle
