# rpm_own_keys.sh LISTS: import the key files on this host that its own enabled repositories name, and rpm lacks.
#
# A manager does so itself when it installs a repository's first package; the same archive in a bundle names no key, so
# that no file of a bundle says whose signature counts. LISTS: directories, a colon between them. Of files: entries
# alone, which root owns and nobody else can write; a variable in a path stands for any word.
set -eu
export LC_ALL=C
IFS=:
set -f
set -- $1
set +f
IFS='
'
for directory; do
  for file in "$directory"/*.repo; do
    [ -f "$file" ] || continue
    awk '
      function emit() { if (on) for (i = 1; i <= n; i++) print word[i]; n = 0; on = 1 }
      function take(text) { gsub(/,/, " ", text); m = split(text, part, " "); for (i = 1; i <= m; i++) word[++n] = part[i] }
      { sub(/\r$/, "") }
      /^[#;]/ || /^[ \t]*$/ { next }
      /^\[/ { emit(); key = 0; if (/^\[gpunode-/) on = 0; next }
      /^[ \t]/ { if (key) take($0); next }
      {
        name = $0; value = $0; key = 0
        sub(/[ \t]*=.*/, "", name); sub(/^[^=]*=[ \t]*/, "", value)
        if (name == "enabled" && tolower(value) ~ /^(0|no|false|off)/) on = 0
        if (name == "gpgkey") { key = 1; take(value) }
      }
      END { emit() }' "$file" | sed -n 's,^file://\(/[A-Za-z0-9._/${}+-]*\)$,\1,p' |
      sed 's/\$[{]\{0,1\}[A-Za-z0-9_]*[}]\{0,1\}/*/g'
  done
done | sort -u | while read -r pattern; do
  # shellcheck disable=SC2086  # a pattern
  for key in $pattern; do
    [ -f "$key" ] || continue
    case $(stat -L -c '%u %a' "$key") in "0 "*[0145][0145]) ;; *) echo "$key can be written by others than root: left out"; continue ;; esac
    if rpm --import "$key" </dev/null; then echo "rpm has the keys of $key"; else echo "$key holds no key that rpm takes"; fi
  done
done
