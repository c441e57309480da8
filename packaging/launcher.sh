#!/bin/sh
# gpunode, by the system's own Python where that is 3.10 or newer, else by the newest next to it (EL 8 and 9 have such).
for python in /usr/bin/python3 /usr/bin/python3.14 /usr/bin/python3.13 /usr/bin/python3.12 /usr/bin/python3.11 /usr/bin/python3.10; do
    case $(readlink -f "$python") in
    /usr/bin/python3.1[0-9]) exec "$python" -I /usr/lib/gpunode/main.py "$@" ;;
    esac
done
echo "gpunode: no Python 3.10 or newer in /usr/bin
  remedy    install one: dnf install python3.12" >&2
exit 4
