# module-first.apt.sh MODULE FOLDER NAME...
#
# Makes FOLDER/module.conf, for APT_CONFIG: with it, packages that match NAME come at the driver version of the package
# MODULE. Debian's security updates have newer libraries than its open modules, and the resolver, which considers
# the newest of each alone, then finds no set at all.
set -eu
module=$1 directory=$2
shift 2
mkdir -p "$directory"
rm -f "$directory/module.conf" "$directory/module.pref"
version=$(apt-cache policy "$module" | sed -n 's/^ *Candidate: *//p')
version=${version%-*}
version=${version#*:}
case $version in
  [0-9]*) ;;
  *) echo "$module is in no archive of this host"; exit 0 ;; # the resolver reports it better
esac
printf 'Package: %s\nPin: version %s*\nPin-Priority: 1001\n\n' "$*" "$version" >"$directory/module.pref"
# The administrator's preferences stay in force.
[ ! -f /etc/apt/preferences ] || cat /etc/apt/preferences >>"$directory/module.pref"
printf 'Dir::Etc::preferences "%s";\n' "$directory/module.pref" >"$directory/module.conf"
echo "$module $version leads"
