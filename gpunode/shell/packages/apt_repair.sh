# apt_repair.sh NAME...
#
# Finishes what a killed dpkg left of NAMEs, and whatever else it left: what was being removed is kept, what is half
# unpacked is installed again or goes, and configuration files that a power cut left empty come back.
LC_ALL=C.UTF-8
export LC_ALL

# states NAME...: WANT ERROR STATUS NAME, of all packages without a NAME
states() { dpkg-query -W -f '${db:Status-Want} ${db:Status-Eflag} ${db:Status-Status} ${binary:Package}\n' "$@" 2>/dev/null; }

apt() { apt-get -y --allow-change-held-packages -o DPkg::Lock::Timeout=300 -o Acquire::http::Timeout=20 -o Acquire::https::Timeout=20 -o Acquire::Retries=0 -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold "$@" </dev/null; }

# apt ignores what is selected for removal, and the next `dpkg --remove --pending` would take it away.
select_again() {
  [ $# = 0 ] || states "$@" |
    awk '($1 == "deinstall" || $1 == "purge") && $3 != "config-files" && $3 != "not-installed" { print $4, "install" }' |
    dpkg --set-selections
}

reinstall_half() {
  half=$(states | awk '$3 == "half-installed" || $2 == "reinstreq" { print $4 }')
  # shellcheck disable=SC2086  # a list of names
  [ -z "$half" ] || apt install --reinstall $half || {
    echo "they cannot be installed again, and are removed:" $half
    dpkg --remove --force-remove-reinstreq --force-depends $half </dev/null # --fix-broken sees to what needs them
  }
}

# remake_lost NAME...: a configuration file that is away comes back, one that is empty would count as edited.
remake_lost() {
  lost=
  for name; do
    paths=$(dpkg-query -W -f '${Conffiles}\n' "$name" 2>/dev/null | while read -r path sum rest; do
      [ ! -f "$path" ] || [ -s "$path" ] || [ "$sum" = d41d8cd98f00b204e9800998ecf8427e ] || echo "$path"
    done)
    [ -n "$paths" ] || continue
    lost="$lost $name"
    # shellcheck disable=SC2086  # dpkg's own list is separated by blanks
    rm -f $paths && echo "empty, and made anew:" $paths
  done
  # shellcheck disable=SC2086
  [ -z "$lost" ] || apt install --reinstall -o Dpkg::Options::=--force-confmiss $lost
}

# One chain: where this is run as a function, `set -e` counts for nothing.
select_again "$@" && dpkg --configure -a --force-confdef --force-confold </dev/null &&
  reinstall_half && remake_lost "$@" && apt install --fix-broken
