# shellcheck shell=sh disable=SC2034
# Made by gpunode/packages/probe.py (tests/packages/test_probe_part.py): what the package managers add to the probe.
MANAGER_TOOLS='apt-get dpkg-query tdnf rpm zypper dnf yum pacman'
LISTINGS='dpkg rpm pacman'
SOURCE_FILES='/etc/apt/sources.list /etc/apt/sources.list.d/* /etc/apt/preferences /etc/apt/preferences.d/* /etc/yum.repos.d/*.repo /etc/zypp/repos.d/*.repo'
KEY_FILES='/etc/apt/keyrings/* /etc/apt/trusted.gpg.d/* /etc/pki/rpm-gpg/*'
HOLD_FILES='/etc/tdnf/locks.d/gpunode.conf /etc/zypp/locks /etc/dnf/plugins/versionlock.list /etc/yum/pluginconf.d/versionlock.list /etc/dnf/versionlock.toml /etc/pacman.d/gpunode-hold.conf'
PROXY_FILES='/etc/apt/apt.conf /etc/apt/apt.conf.d/* /etc/tdnf/tdnf.conf /etc/sysconfig/proxy /etc/dnf/dnf.conf /etc/yum.conf'
LOCK_FILES='/var/lib/dpkg/lock-frontend /var/lib/dpkg/lock /var/lib/apt/lists/lock /var/lib/rpm/.rpm.lock /usr/lib/sysimage/rpm/.rpm.lock /var/cache/dnf/metadata_lock.pid'
PID_FILES='/run/zypp.pid /var/run/yum.pid'
list_dpkg() {
find_tool dpkg-query || return 127
row='${Package}\t${Version}\t${Architecture}\t${db:Status-Abbrev}\n'
"$TOOL" -W -f "$row" || return $?
# dpkg does not flush configuration files: a power cut leaves them empty below a package that is configured.
"$TOOL" -W -f "$row\${Conffiles}\n" '*nvidia*' 'cuda*' 2>/dev/null |
  while IFS= read -r line; do
    case $line in
      ' '*d41d8cd98f00b204e9800998ecf8427e*) ;; # packaged empty
      ' /'*)
        path=${line# }
        [ -f "$R${path%% *}" ] && [ ! -s "$R${path%% *}" ] || continue
        case $package in *?ii\ | *?hi\ ) printf '%sE\n' "${package% }" ;; esac
        ;;
      ?*) package=$line ;;
    esac
  done
return 0
}
list_rpm() {
find_tool rpm || return 127
HOME=$T "$TOOL" -qa --qf '%{NAME}\t%|EPOCH?{%{EPOCH}:}|%{VERSION}-%{RELEASE}\t%{ARCH}\n'
}
list_pacman() {
find_tool pacman || return 127
"$TOOL" -Q
}
