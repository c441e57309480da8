"""The images that docs/how-to/kubernetes.md has a cluster pull, as stubs; and a network for pods, as a stub too.

The device plugin's is device_plugin.py with Debian's Python; vector add says that it passed where it has a GPU's node.
"""

from __future__ import annotations

from pathlib import Path

from . import images
from .container_image import write_image
from .host import Host

HERE = Path(__file__).parent
VECTOR_ADD = "nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0"
PLUGIN = "nvcr.io/nvidia/k8s-device-plugin:v0.20.0"
PASSES = 'test -c /dev/nvidia0 && echo "$NVIDIA_VISIBLE_DEVICES" && echo "Test PASSED"'
LIBRARIES = ("lib/x86_64-linux-gnu", ("libc.so.6", "libm.so.6", "libz.so.1", "libexpat.so.1"))
# A CNI plugin (containernetworking/cni SPEC.md): pods get no network, and the answer that the CRI plugin waits for.
CNI = """#!/bin/sh
# lab stub
case $CNI_COMMAND in
  ADD) ;;
  VERSION) echo '{"cniVersion": "0.4.0", "supportedVersions": ["0.3.1", "0.4.0"]}'; exit ;;
  *) exit 0 ;;
esac
case $CNI_IFNAME in lo) address=127.0.0.1/8 ;; *) address=10.88.0.2/16 ;; esac
printf '{"cniVersion": "0.3.1", "interfaces": [{"name": "%s", "sandbox": "%s"}], ' "$CNI_IFNAME" "$CNI_NETNS"
printf '"ips": [{"version": "4", "interface": 0, "address": "%s"}]}' "$address"
"""


def load(host: Host) -> None:
    """Into containerd of a host of debian12, for its kubelet."""
    folder = host.path("/root/guide")
    folder.mkdir()
    write_image(folder / "vector-add.tar", VECTOR_ADD, command=("/bin/sh", "-c", PASSES))
    start = (
        "/usr/bin/python3",
        "-c",
        "import sys; sys.path.insert(0, '/opt'); from lab import device_plugin as p; p.main()",
    )
    write_image(folder / "plugin.tar", PLUGIN, command=start, env=("NVIDIA_VISIBLE_DEVICES=all",), files=python())
    host.nsrun("for name in /root/guide/*; do ctr -n k8s.io images import $name || exit; done", check=True)
    for directory in ("/opt/cni/bin", "/usr/lib/cni"):
        for name in ("bridge", "loopback"):
            host.write(f"{directory}/{name}", CNI, 0o755)


def python() -> dict[str, Path]:
    """Debian's Python without what is compiled anew, and the two files of the plugin."""
    base = images.layers("debian12", None)[0]
    library = base / "usr/lib/python3.11"
    modules = [
        path
        for path in library.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and not path.is_symlink()
    ]
    directory, names = LIBRARIES
    found = {str(path.relative_to(base)): path for path in modules}
    found |= {f"{directory}/{name}": base / "usr" / directory / name for name in names}
    found |= {
        "usr/bin/python3": base / "usr/bin/python3.11",
        "lib64/ld-linux-x86-64.so.2": base / "usr/lib64/ld-linux-x86-64.so.2",
    }
    return found | {f"opt/lab/{name}": HERE / name for name in ("cri_pod.py", "device_plugin.py")}
