# hold_file.sh FILE hold|unhold NAME...
#
# Managers without a verb for pins read them from a file; FILE is gpunode's own. How it is read there is set before:
#   $key       FILE is one line "KEY = NAME ..."; empty: a name a line
#   $includer  the manager's own file, in whose section [$section] a line "Include = FILE" must be; empty: none
# FILE is written to a new file and renamed, and so is the includer when it lacks that line.
set -eu
file=$1 verb=$2 key=${key-} includer=${includer-} section=${section-}
shift 2
mkdir -p "${file%/*}"
touch "$file"
names=$(sed -e '/^#/d' ${key:+-e "s/^$key *= *//"} "$file" | tr -s ' ' '\n')
case $verb in
  hold) names=$(printf '%s\n' "$names" "$@" | sort -u | sed '/^$/d') ;;
  unhold)
    for name; do names=$(printf '%s\n' "$names" | grep -vxF -- "$name" || :); done
    names=$(printf '%s\n' "$names" | sed '/^$/d') ;;
esac
if [ -n "$key" ]; then
  # shellcheck disable=SC2086  # words on one line
  { echo "# Written by gpunode: one set of one version, upgraded together (gpunode setup)"; [ -z "$names" ] || echo "$key =" $names; } >"$file.gpunode-new"
else
  printf '%s\n' "$names" | sed '/^$/d' >"$file.gpunode-new"
fi
if [ -n "$includer" ] && ! grep -qxF "Include = $file" "$includer"; then
  cp -p "$includer" "$includer.gpunode-new"
  awk -v line="Include = $file" -v head="[$section]" '{ print } index($1, head) == 1 && !done { print line; done = 1 }' "$includer" >"$includer.gpunode-new"
  grep -qxF "Include = $file" "$includer.gpunode-new" || { rm -f "$includer.gpunode-new" "$file.gpunode-new"; echo "$includer has no [$section]" >&2; exit 65; }
  mv -f "$file.gpunode-new" "$file"
  mv -f "$includer.gpunode-new" "$includer"
fi
[ ! -e "$file.gpunode-new" ] || mv -f "$file.gpunode-new" "$file"
sync
