# resolver.sh MANAGER COUNT PATTERN... WORD...
#
# The resolver's own answer to an install (WORD...: the switches and names), read-only, one line a package:
#   install NAME VERSION | upgrade NAME VERSION | downgrade NAME VERSION | remove NAME VERSION
# Exit 65: it would remove a package that matches none of the COUNT patterns. Any other failure is the resolver's own.
set -eu
manager=$1 count=$2
shift 2
LC_ALL=C.UTF-8
export LC_ALL
mine=
while [ "$count" -gt 0 ]; do
  mine="$mine $1"
  count=$((count - 1))
  shift
done

table() { # the tables of dnf 4, dnf5, yum and tdnf; long names are broken into a second line, which begins further in
  awk '/^(Installing|Reinstalling|Upgrading|Updating|Downgrading|Removing|Replacing)/ { verb = "" }
    /^(Installing|Reinstalling)/ { verb = "install" } /^(Upgrading|Updating)/ { verb = "upgrade" }
    /^Downgrading/ { verb = "downgrade" } /^Removing/ { verb = "remove" }
    /^Transaction Summary/ { exit }
    verb && /^ [^ ]/ { if (NF >= 3) print verb, $1, $3; else name = $1 }
    verb && /^ [ ]/ && name { if ($1 != "replacing") print verb, name, $2; name = "" }'
}

answer=$(mktemp)
trap 'rm -f "$answer" "$answer.out"' EXIT
code=0
case $manager in
  apt)
    apt-get -s -q install "$@" >"$answer.out" 2>&1 || code=$?
    sed -n -e 's/^Inst \([^ ]*\) \[[^]]*\] (\([^ ]*\).*/upgrade \1 \2/p' -e 's/^Inst \([^ ]*\) (\([^ ]*\).*/install \1 \2/p' \
      -e 's/^Remv \([^ ]*\) \[\([^]]*\)\].*/remove \1 \2/p' "$answer.out" >"$answer" ;;
  dnf | dnf5 | yum | tdnf)
    # --assumeno ends with 1, as a failure does: the summary tells them apart.
    [ "$manager" != dnf5 ] || manager=dnf
    "$manager" --assumeno install "$@" >"$answer.out" 2>&1 || code=$?
    ! grep -qE '^(Transaction Summary|Nothing to do|Dependencies resolved)' "$answer.out" || code=0
    table <"$answer.out" >"$answer" ;;
  zypper)
    zypper --non-interactive --no-refresh --xmlout install --dry-run "$@" >"$answer.out" 2>&1 || code=$?
    awk '/<to-install>/ { verb = "install" } /<to-upgrade>/ { verb = "upgrade" } /<to-downgrade>/ { verb = "downgrade" }
      /<to-remove>/ { verb = "remove" } /<\/to-/ { verb = "" }
      verb && /<solvable / { match($0, / name="[^"]*"/); name = substr($0, RSTART + 7, RLENGTH - 8)
        match($0, / edition="[^"]*"/); print verb, name, substr($0, RSTART + 10, RLENGTH - 11) }' "$answer.out" >"$answer" ;;
  pacman)
    pacman -Sp --noconfirm --print-format 'install %n %v' "$@" >"$answer.out" 2>&1 || code=$?
    grep '^install ' "$answer.out" >"$answer" || : ;;
esac
[ "$code" = 0 ] || { cat "$answer.out" >&2; exit "$code"; }
cat "$answer"

foreign=$(awk '$1 == "remove" { print $2 }' "$answer" | while read -r name; do
  for pattern in $mine; do
    # shellcheck disable=SC2254  # a pattern it is
    case $name in $pattern) continue 2 ;; esac
  done
  echo "$name"
done)
# shellcheck disable=SC2086  # words on one line
[ -z "$foreign" ] || { echo "$manager would remove what is not the driver's:" $foreign >&2; exit 65; }
