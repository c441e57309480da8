# shellcheck shell=sh disable=SC2154
# What the DaemonSet's pod runs: it hands gpunode and the spec over to its host, has the host run them, and says by READY that it
# is done. Nothing of gpunode runs in the container itself, which needs sh and nsenter (busybox has both).
# HERE: where the ConfigMaps are mounted. What stands above gives it; sent after on_host.sh.

idle() { # until the pod is deleted
  trap 'exit 0' TERM INT
  while :; do sleep 3600 & wait $! || exit 1; done
}

rm -f "$READY"
outside || exit 2
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
