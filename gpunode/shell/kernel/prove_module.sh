# prove_module.sh RELEASE        (before it: explain_build.sh)
#
# /lib/modules/RELEASE must contain an nvidia module. Exit 65 when it does not, with the compiler's own words where DKMS kept them.
set -eu
release=$1
module=$(find "/lib/modules/$release/" -name 'nvidia.ko*' -o -name 'nvidia-current*.ko*' -o -name 'nvidia-tesla*.ko*' 2>/dev/null | head -n 1)
[ -z "$module" ] || { echo "$module"; exit 0; }
# The newest log is of the build that just failed.
log=$(ls -t /var/lib/dkms/nvidia*/*/build/make.log 2>/dev/null | head -n 1)
[ -z "$log" ] || why_no_module "$log"
[ -e "/lib/modules/$release/build/Makefile" ] || echo "Error: its headers are missing: /lib/modules/$release/build leads to no Makefile" >&2
echo "Error: $release still has no nvidia module" >&2
exit 65
