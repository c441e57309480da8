# shellcheck shell=sh disable=SC2034  # used by those who read this
# lab: what the stand-ins share. A GPU is a line address|name|architecture|memory MiB|capability|MIG|part.
lab=/run/lab
gpus=$lab/gpus
faults=$lab/faults
kernel=$(uname -r)

uuid() { printf 'GPU-%08x-1111-2222-3333-%012x' $((0x5eed0000 + $1)) "$1"; }

has_fault() { [ -e "$faults/$1" ]; }

# The built module of a kernel (default: the running one). It is text: NV_VERSION=, NV_FLAVOUR=, NV_SIGNER=.
module_of() { find "/lib/modules/${1:-$kernel}" -name 'nvidia.ko*' 2>/dev/null | head -n 1; }

nouveau_is_blacklisted() {
  grep -rqs '^[[:space:]]*blacklist[[:space:]][[:space:]]*nouveau' /etc/modprobe.d /usr/lib/modprobe.d /lib/modprobe.d
}
