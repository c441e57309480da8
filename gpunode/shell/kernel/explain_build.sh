# explain_build.sh: two functions for the scripts that come after it
#
# say_why COMMAND...: runs it. Where a module did not build meanwhile, its failure becomes 65, with the compiler's own words:
# of a build that fails, package managers report no more than that a maintainer script ended with 10.
# why_no_module LOG: those words.

KEPT=/var/lib/gpunode/make.log # DKMS's own goes with the package that could not be configured

why_no_module() {
  sed -n '1s/.* make\.log for \([^ ]*\) for kernel \([^ ]*\).*/Error: \1 does not build for \2/p' "$1" >&2
  # The first error is the cause, the others follow from it. Paths below DKMS's build directory are of no help.
  for words in '(fatal )?error: ' '\*\*\*'; do
    if grep -qE "$words" "$1"; then
      grep -m 1 -E "$words" "$1" | sed 's,^/var/lib/dkms/[^ ]*/build/,,; s,^,Error: ,' >&2
      break
    fi
  done
  if [ -d "${KEPT%/*}" ] && cp "$1" "$KEPT"; then echo "Error: the whole log of DKMS is in $KEPT" >&2; fi
}

say_why() {
  mark=$(mktemp)
  code=0
  "$@" </dev/null || code=$?
  # A build that succeeds moves its log away from here.
  log=$(find /var/lib/dkms -path '*/build/make.log' -newer "$mark" 2>/dev/null | head -n 1)
  rm -f "$mark"
  if [ "$code" = 0 ] || [ -z "$log" ]; then return "$code"; fi
  why_no_module "$log"
  return 65
}
