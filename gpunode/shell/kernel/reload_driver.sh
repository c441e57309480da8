# reload_driver.sh "SERVICE..." "MODULE..."
#
# Replace the loaded nvidia modules by those on disk. Services that are active stop first and start again last, whatever
# happens. Exit 65 when a module is in use after all: then the old ones are still loaded, and only a reboot helps.
set -u
services=$1 modules=$2
# A controller that has gone is no end: what is printed then ends nobody, and dash runs no EXIT trap where a signal ends it.
trap '' PIPE
trap 'exit 143' HUP INT TERM # TERM: the time limit
stopped=
start_again() { for unit in $stopped; do systemctl start "$unit.service" || echo "$unit did not start again" >&2; done; }
trap start_again EXIT
if [ -d /run/systemd/system ]; then
    for unit in $services; do
        systemctl is-active --quiet "$unit.service" || continue
        stopped="$unit $stopped" # first: it may be ended while it waits for the stop
        systemctl stop "$unit.service"
    done
fi
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
