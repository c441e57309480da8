# shellcheck shell=sh disable=SC2154
# Sets up the image that is being built, or the machine that becomes one; its exit status is the build's. Sent after bring.sh.
# What stands above gives SPEC, a file, and SPEC_SHA256 and SPEC_SIZE (bytes) of what it is to hold.

is_spec() { [ -f "$1" ] && [ ! -h "$1" ] && [ "$(sha256sum <"$1")" = "$SPEC_SHA256  -" ]; } # FILE

keep_spec() { # -> STATE/spec.yaml: what others could write to SPEC is not used
  if is_spec "$STATE/spec.yaml"; then return 0; fi
  [ -f "$SPEC" ] || die 1 "nothing was changed: $SPEC is not here"
  new=$(mktemp "$STATE/new.XXXXXX") && head -c "$((SPEC_SIZE + 1))" <"$SPEC" >"$new" || die 1 "the spec cannot be kept in $STATE"
  is_spec "$new" || { rm -f "$new"; die 1 "nothing was run: $SPEC is not the spec of this export"; }
  mv -f "$new" "$STATE/spec.yaml" || die 1 "the spec cannot be kept in $STATE"
}

[ "$(id -u)" = 0 ] || die 2 'this is for root'
eval "set -- $WORDS" # each quoted, by gpunode export
find_python
bring
keep_spec
code=0
"$PYTHON" -I "$PYZ" setup --yes --spec "$STATE/spec.yaml" "$@" || code=$?
if [ "$code" = 6 ]; then
  # What can be done before a boot is done, and a build does not reboot.
  printf 'gpunode: setup ended with exit code 6: what it says above is for the first boot of the image; the build goes on\n' >&2
  code=0
fi
if [ "$code" = 0 ]; then rm -f "$AT" "$SPEC"; fi # both are kept in STATE
exit "$code"
