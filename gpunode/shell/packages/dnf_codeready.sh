# dnf_codeready.sh COMMAND... ID: COMMAND, which enables Red Hat's repository ID, or dnf's where a cloud has its own of it
#
# RHEL images of clouds get their packages from the cloud's update infrastructure (RHUI). There subscription-manager has no
# repositories ("not yet registered", or "Repositories disabled by configuration"), and the ids are of the cloud's lists:
#   AWS    codeready-builder-for-rhel-9-rhui-rpms
#   Azure  codeready-builder-for-rhel-9-x86_64-rhui-rpms, of an extended update support -x86_64-eus-rhui-rpms
#   Google rhui-codeready-builder-for-rhel-9-x86_64-rhui-rpms
set -eu
lists=/etc/yum.repos.d rhsm=/etc/rhsm/rhsm.conf certificate=/etc/pki/consumer/cert.pem
for id; do :; done
name=${id%-rpms}       # codeready-builder-for-rhel-9-x86_64
machine=${name##*-}

cloud() { # EXPRESSION: the first id of the lists between codeready-builder-for-rhel-9 and -rhui-rpms
  cat "$lists"/*.repo 2>/dev/null | sed -nE "s/^\[((rhui-)?${name%-*}$1-rhui-rpms)\][[:space:]]*\$/\1/p" | head -n 1
}

if [ -e "$certificate" ] && ! grep -qsE '^[[:space:]]*manage_repos[[:space:]]*=[[:space:]]*0' "$rhsm"; then exec "$@"; fi
found=$(cloud "(-$machine)?")
[ -n "$found" ] || found=$(cloud "-$machine-[a-z0-9]+")
[ -n "$found" ] || exec "$@"
dnf -y install dnf-plugins-core
exec dnf config-manager --set-enabled "$found"
