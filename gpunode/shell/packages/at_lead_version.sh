# at-lead-version.sh LEAD COMMAND...
#
# Runs COMMAND with @VERSION@ in its words replaced by the driver version of the installed package LEAD: SUSE's module
# package is called 580.95.05_k6.4.0_150700.51, and NVIDIA's libraries must be 580.95.05. Exit 65: LEAD is not installed.
set -eu
lead=$1
shift
version=$(rpm -q --qf '%{VERSION}\n' "$lead") || { echo "$lead is not installed" >&2; exit 65; }
version=$(printf '%s\n' "$version" | sed -n '$p')
version=${version%%_*}
for word; do
  shift
  set -- "$@" "$(printf '%s\n' "$word" | sed "s/@VERSION@/$version/")"
done
exec "$@"
