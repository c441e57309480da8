# shellcheck shell=sh disable=SC2154
# cloud-init runs this at each boot, in its last stage: until a setup has ended well on this instance, and then never again.
# Its exit status is cloud-init's result. Sent after bring.sh; KEY tells one spec and one gpunode from others.

DONE=/var/lib/cloud/instance/sem/gpunode.$KEY # next to cloud-init's own marks of what it did on this instance
REBOOT_S=900

[ ! -e "$DONE" ] || exit 0
[ "$(id -u)" = 0 ] || die 2 'this is for root'
eval "set -- $WORDS" # each quoted, by gpunode export
find_python
bring
wait_for_resumed
code=0
"$PYTHON" -I "$PYZ" setup --yes --spec "$STATE/spec.yaml" "$@" || code=$?
if [ "$code" = 6 ] && reboot_is_asked_for; then
  # cloud-init would say that it is done, or that it failed, and neither is true yet: the reboot ends this wait.
  sleep "$REBOOT_S"
  die 6 "the reboot that setup asked for did not happen within $REBOOT_S s"
fi
if [ "$code" = 0 ]; then : >"$DONE"; fi
exit "$code"
