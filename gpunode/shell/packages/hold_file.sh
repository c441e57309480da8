# hold-file.sh MANAGER hold|unhold NAME...
#
# Managers without a verb for holds read them from a file; this one is gpunode's own:
#   pacman  /etc/pacman.d/gpunode-hold.conf, "IgnorePkg = NAME ...", included by the [options] of pacman.conf
#   tdnf    /etc/tdnf/locks.d/gpunode.conf, one name a line
# The file is written beside and renamed, and so is pacman.conf when it lacks the one line that includes it.
set -eu
manager=$1 verb=$2
shift 2
case $manager in
  pacman) file=/etc/pacman.d/gpunode-hold.conf ;;
  tdnf) file=/etc/tdnf/locks.d/gpunode.conf ;;
esac
mkdir -p "${file%/*}"
touch "$file"
names=$(sed -e '/^#/d' -e 's/^IgnorePkg *= *//' "$file" | tr -s ' ' '\n')
case $verb in
  hold) names=$(printf '%s\n' "$names" "$@" | sort -u | sed '/^$/d') ;;
  unhold)
    for name; do names=$(printf '%s\n' "$names" | grep -vxF -- "$name" || :); done
    names=$(printf '%s\n' "$names" | sed '/^$/d') ;;
esac
if [ "$manager" = pacman ]; then
  # shellcheck disable=SC2086  # words on one line
  { echo "# Written by gpunode: one set of one version, upgraded together (gpunode setup)"; [ -z "$names" ] || echo "IgnorePkg =" $names; } >"$file.gpunode-new"
  if ! grep -qxF "Include = $file" /etc/pacman.conf; then
    cp -p /etc/pacman.conf /etc/pacman.conf.gpunode-new
    awk -v line="Include = $file" '{ print } /^[ \t]*\[options\]/ && !done { print line; done = 1 }' /etc/pacman.conf >/etc/pacman.conf.gpunode-new
    grep -qxF "Include = $file" /etc/pacman.conf.gpunode-new || { rm -f /etc/pacman.conf.gpunode-new "$file.gpunode-new"; echo "/etc/pacman.conf has no [options]" >&2; exit 65; }
    mv -f "$file.gpunode-new" "$file"
    mv -f /etc/pacman.conf.gpunode-new /etc/pacman.conf
  fi
else
  printf '%s\n' "$names" | sed '/^$/d' >"$file.gpunode-new"
fi
[ ! -e "$file.gpunode-new" ] || mv -f "$file.gpunode-new" "$file"
sync
