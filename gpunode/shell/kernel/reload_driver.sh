# reload_driver.sh "SERVICE..." "MODULE..."
#
# Replace the loaded nvidia modules by those on disk. Services that are active stop first and start again last, whatever
# happens. Exit 65 when a module is in use after all: then the old ones are still loaded, and only a reboot helps.
set -u
services=$1 modules=$2
stopped=
start_again() { for unit in $stopped; do systemctl start "$unit.service" || echo "$unit did not start again" >&2; done; }
if [ -d /run/systemd/system ]; then
    for unit in $services; do
        systemctl is-active --quiet "$unit.service" || continue
        systemctl stop "$unit.service" && stopped="$unit $stopped"
    done
fi
trap start_again EXIT
loaded=
for module in $modules; do
    [ -d "/sys/module/$module" ] || continue
    if ! error=$(modprobe -r "$module" 2>&1); then
        echo "$module cannot be unloaded: ${error:-it is in use}; only a reboot replaces it" >&2
        for again in $loaded; do modprobe "$again"; done
        exit 65
    fi
    loaded="$module $loaded"
done
for module in nvidia $loaded; do
    [ -d "/sys/module/$module" ] || modprobe "$module" || exit 1
done
echo "nvidia $(cat /sys/module/nvidia/version 2>/dev/null) is loaded"
