# shellcheck shell=sh disable=SC2154
# resolve() of simulate.sh: zypper's dry run, in XML. $only: further options.
code=0
# shellcheck disable=SC2086  # options, or none
zypper --non-interactive --no-refresh $only --xmlout install --dry-run "$@" >"$output" 2>&1 || code=$?
awk 'match($0, /<install-summary download-size="[0-9]+/) { print "download", substr($0, RSTART + 32, RLENGTH - 32) }
  /<to-install>/ { verb = "install" } /<to-upgrade>/ { verb = "upgrade" } /<to-downgrade>/ { verb = "downgrade" }
  /<to-remove>/ { verb = "remove" } /<\/to-/ { verb = "" }
  verb && /<solvable / { match($0, / name="[^"]*"/); name = substr($0, RSTART + 7, RLENGTH - 8)
    match($0, / edition="[^"]*"/); print verb, name, substr($0, RSTART + 10, RLENGTH - 11) }' "$output"
exit "$code"
