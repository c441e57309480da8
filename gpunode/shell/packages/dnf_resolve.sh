# shellcheck shell=sh disable=SC2154
# resolve() of simulate.sh: $tool is dnf, yum or tdnf.
table() { # the tables of all of them; long names are broken into a second line, which begins further in
  awk '/^(Installing|Reinstalling|Upgrading|Updating|Downgrading|Removing|Replacing)/ { verb = "" }
    /^(Installing|Reinstalling)/ { verb = "install" } /^(Upgrading|Updating)/ { verb = "upgrade" }
    /^Downgrading/ { verb = "downgrade" } /^Removing/ { verb = "remove" }
    /^Transaction Summary/ { exit }
    verb && /^ [^ ]/ { if (NF >= 3) print verb, $1, $3; else name = $1 }
    verb && /^ [ ]/ && name { if ($1 != "replacing") print verb, name, $2; name = "" }'
}

size() { # "Total download size: 412 M" of dnf 4, yum and tdnf; "... Need to download 412 MiB." of dnf5
  awk 'match($0, /(Total download size: *|Need to download )[0-9.]+ *[kKMG]?/) {
    amount = substr($0, RSTART, RLENGTH); sub(/.*(: *|download )/, "", amount)
    factor = amount ~ /[kK]/ ? 1024 : amount ~ /M/ ? 1048576 : amount ~ /G/ ? 1073741824 : 1
    printf "download %.0f\n", amount * factor; exit }'
}

code=0
# Of a mirror that sends nothing, as rpm.SILENCE; tdnf has no such settings.
[ "$tool" = tdnf ] || set -- --setopt=timeout=30 --setopt=retries=1 "$@"
# --assumeno ends with 1, as a failure does: the summary tells them apart.
"$tool" --assumeno install "$@" >"$output" 2>&1 || code=$?
! grep -qE '^(Transaction Summary|Nothing to do|Dependencies resolved)' "$output" || code=0
table <"$output"
size <"$output"
exit "$code"
