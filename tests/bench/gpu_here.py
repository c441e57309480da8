"""The local check of a machine with a GPU. `python -m tests.bench.gpu_here ROUNDS` measures; `rows` starts it.

Constructed: in a mount and a PID namespace sysfs has a card and its module, /dev has nodes for it, process 1 is an init
by its name, and nvidia-smi is a script that takes SMI_S and prints what was recorded of the lab's host in EXAMPLE. Of
the driver there is no more, so one check fails and a remedy is planned.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from gpunode.facts.probe_script import probe_script
from gpunode.facts.recordings import load_recording
from gpunode.facts.wire import decode
from tests.bench.measure import Row, interleaved, spent

EXAMPLE = Path(__file__).parents[2] / "examples" / "hosts" / "debian12-ready"
SMI_S = 0.15  # nvidia-smi -q -x of one GPU; that of eight takes a second or more
GPUNODE = str(Path(sys.executable).with_name("gpunode"))  # what is typed

# $1: a directory with nvidia-smi in it, $2: directories that the root has to have; then what is to be run.
_MACHINE = """set -eu
place=$1 needed=$2; shift 2
cd "$place"
mkdir made
mount -t tmpfs tmpfs made
cd made
mkdir new work root dev-new dev-work
mknod new/.dockerenv c 0 0 # not there: where this is a container, the machine is none
mount -t overlay overlay -o "lowerdir=/,upperdir=$PWD/new,workdir=$PWD/work" root
for at in $needed; do mkdir -p "root$at"; mount --bind "$at" "root$at"; done
mount -t overlay overlay -o "lowerdir=/dev,upperdir=$PWD/dev-new,workdir=$PWD/dev-work" root/dev
mount --rbind /sys root/sys
cp "$place/nvidia-smi" root/usr/bin/
mkdir root/bench
cp /bin/sh root/bench/init # process 1 has the name of what it runs
for number in 0 255; do mknod -m 666 "root/dev/nvidia$number" c 195 "$number"; done
mv root/dev/nvidia255 root/dev/nvidiactl
for hidden in module bus/pci/devices; do mount -t tmpfs tmpfs "root/sys/$hidden"; done
mkdir root/sys/module/nvidia
echo live >root/sys/module/nvidia/initstate
card=root/sys/bus/pci/devices/0000:3b:00.0
mkdir "$card"
for word in vendor=0x10de class=0x030200 device=0x27b8 subsystem_vendor=0x10de subsystem_device=0x16ee; do
  echo "${word#*=}" >"$card/${word%%=*}"
done
exec unshare --pid --fork --kill-child --root="$PWD/root" --mount-proc /bench/init -c '"$@"; exit' init "$@"
"""


def rows(rounds: int, environment: Mapping[str, str]) -> list[Row]:
    """Needs root and namespaces of its own around it, as scripts/bench makes them."""
    with tempfile.TemporaryDirectory() as directory:
        smi = Path(directory, "nvidia-smi")
        smi.write_text(f"#!/bin/sh\nsleep {SMI_S}\n[ \"$*\" != '-q -x' ] || cat <<'END'\n{_recorded()}\nEND\n")
        smi.chmod(0o755)
        needed = " ".join({directory, str(EXAMPLE.parents[2]), sys.prefix, sys.base_prefix})
        machine = ("unshare", "--mount", "sh", "-c", _MACHINE, "sh", directory, needed)
        measure = (sys.executable, "-m", "tests.bench.gpu_here", str(rounds))
        said = subprocess.run((*machine, *measure), check=True, stdout=subprocess.PIPE, env=environment).stdout
    check, bare = json.loads(said)
    what = f"check of a machine with a GPU, nvidia-smi {1e3 * SMI_S:.0f} ms: wall, ms"
    return [Row(what, check, "the bare probe", bare, 1.6)]


def _recorded() -> str:
    """What nvidia-smi -q -x printed there."""
    return decode(load_recording(EXAMPLE)).text("smi").rstrip("\n")


def main(rounds: int) -> None:
    """On that machine: how long each took, as JSON."""
    with tempfile.TemporaryDirectory() as directory:
        probe = Path(directory, "probe.sh")
        probe.write_text(probe_script())
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": directory}
        found = interleaved(
            {
                "check here, with a GPU": lambda: spent((GPUNODE, "check"), environment, ok=(1,)),
                "the bare probe, with a GPU": lambda: spent(("sh", str(probe)), environment),
            },
            rounds,
        )
    print(json.dumps([each["wall"] for each in found.values()]))


if __name__ == "__main__":
    main(int(sys.argv[1]))
