# Applies to every GPU the MIG layout in the file given as $1: lines "PCI-ADDRESS PROFILE,PROFILE,..." or "PCI-ADDRESS off".
# Made by gpunode; run by gpunode-mig.service at every boot, since Hopper and newer lose their MIG mode at a power cycle.
# Exit 65: a program uses a GPU, nothing was changed on it. Exit 66: the mode waits for a reset of the GPU (a reboot does it).
set -u
trap '' PIPE # a controller that has gone leaves no GPU without its layout
status=0
say() { echo "gpunode-mig: $*" >&2 || :; }
mode() { nvidia-smi -i "$1" --query-gpu="mig.mode.$2" --format=csv,noheader 2>/dev/null | head -n 1; }
# As one word, the largest first: nvidia-smi creates them in this order, and a small one may stand where a large one fits.
in_order() { sort -t . -k 1,1nr -k 2,2nr -k 2 | paste -s -d , -; }
# Lines "  MIG 1g.10gb     Device  0: (UUID: ...)" of nvidia-smi -L.
present() { nvidia-smi -L -i "$1" | sed -n 's/^ *MIG \([^ ]*\) .*/\1/p' | in_order; }
sorted() { printf '%s\n' "$1" | tr , '\n' | in_order; }
create() { nvidia-smi mig -i "$1" -cgi "$2" -C >/dev/null; }

# Compute instances first. nvidia-smi -L lists those alone, so one that is without them is not seen. 6: there is none.
clear_instances() {
    for kind in -dci -dgi; do
        nvidia-smi mig -i "$1" "$kind" >/dev/null || [ $? -eq 6 ] || return 1
    done
}

switch_mode() { # ADDRESS Enabled|Disabled
    case $2 in Enabled) number=1 ;; *) number=0 ;; esac
    nvidia-smi -i "$1" -mig "$number" >/dev/null || return 1
    [ "$(mode "$1" current)" = "$2" ] && return 0
    nvidia-smi -i "$1" --gpu-reset >/dev/null 2>&1 # Ampere wants one; it fails while the fabric holds the GPU
    [ "$(mode "$1" current)" = "$2" ]
}

put_back() { # ADDRESS MODE PROFILES, as they were before a layout that did not fit
    clear_instances "$1" || return 1
    [ "$(mode "$1" current)" = "$2" ] || switch_mode "$1" "$2" || return 1
    [ -z "$3" ] || create "$1" "$3"
}

partition() { # ADDRESS PROFILES
    if [ "$2" = off ]; then wanted=Disabled profiles=; else wanted=Enabled profiles=$(sorted "$2"); fi
    current=$(mode "$1" current)
    # One that is not capable of MIG is off.
    case "$2 $current" in 'off [N/A]' | 'off N/A' | 'off [Not Supported]' | 'off Not Supported') return 0 ;; esac
    case $current in
        *'GPU is lost'* | *'GPU requires reset'* | '[Unknown Error]' | 'Unknown Error' | 'ERR!' | 'Unable to determine'*)
            say "$1: left out, nvidia-smi shows no MIG mode: $current" # the boot that brings it back applies its layout
            return 0
            ;;
    esac
    [ "$current" = "$wanted" ] && [ "$(present "$1")" = "$profiles" ] && return 0
    before=$(present "$1")
    if [ "$current" = Enabled ] && ! clear_instances "$1"; then
        say "$1: its instances are in use"
        return 65
    fi
    if [ "$(mode "$1" current)" != "$wanted" ] && ! switch_mode "$1" "$wanted"; then
        [ "$(mode "$1" pending)" = "$wanted" ] || { say "$1: MIG mode cannot be changed while it is in use"; return 65; }
        say "$1: MIG mode is $wanted after a reset of the GPU"
        return 66
    fi
    if [ -n "$profiles" ] && ! create "$1" "$profiles"; then
        say "$1: no room for $2"
        put_back "$1" "$current" "$before" || say "$1: ${before:-MIG mode $current}, as before, could not be put back"
        return 1
    fi
    say "$1: ${profiles:-MIG is off}"
}

while read -r address profiles; do
    case $address in '' | '#'*) continue ;; esac
    # What one GPU lacks is not hidden by another that only waits for its reset.
    partition "$address" "$profiles" || { code=$?; [ "$status" -ne 0 ] && [ "$code" -eq 66 ] || status=$code; }
done <"$1"
# Containers get their devices from the CDI specification, which lists instances by name.
if [ -d /run/systemd/system ] && systemctl --quiet is-enabled nvidia-cdi-refresh.service 2>/dev/null; then
    systemctl --no-block restart nvidia-cdi-refresh.service
fi
exit "$status"
