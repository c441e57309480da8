"""What comes of pods as kubelet makes them, through a containerd's CRI. Lies beside cri_pod.py on a lab host.

python3 cri_typed.py SOCKET keep IMAGE                  a pod with a container, which stay: prints their ids
python3 cri_typed.py SOCKET drain IMAGE POD             that pod made anew, as after a reboot: prints the new ids
python3 cri_typed.py SOCKET type IMAGE POD CONTAINER    prints what comes of each row, and the kept pod's ids: its
                                                        container is exec'd into, and another one follows it
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable

from cri_pod import call, field, first_string, pod_config  # type: ignore[import-not-found, unused-ignore]

DEVICE = "nvidia.com/gpu=0"
# The lab's runtime, its nvidia-container-cli and its CDI specification show the GPUs there.
LOOK = "[ -s /etc/lab-gpus ] && echo has the GPUs || echo runs"
ALL = field(6, field(1, "NVIDIA_VISIBLE_DEVICES") + field(2, "all"))  # as images of CUDA have it
IN_FIELD = field(17, field(1, DEVICE))
ANNOTATED = field(10, field(1, "cdi.k8s.io/lab_gpu") + field(2, DEVICE))
KEPT = "old"


def outcomes(socket: str, image: str, pod: str, container: str) -> None:
    new = run_pod(socket, "new")
    plain, in_field, annotated = (in_pod(socket, image, new, how) for how in (ALL, IN_FIELD, ANNOTATED))
    remove(socket, new)
    rows = {
        "a pod": plain,
        "a pod with `runtimeClassName: nvidia`": seen(lambda: by_class(socket, image)),
        "a CDI device in CRI's `CDI_devices`": in_field,
        "a CDI device by annotation (`cdi.k8s.io/`)": annotated,
        "`ctr run --gpus 0`": seen(lambda: ctr(image)),
        "a container from before `setup`: exec": look(socket, container) and "works",
    }
    stop(socket, container)
    again = run(socket, image, pod, KEPT, ALL)
    rows["a container from before `setup`: restarted"] = look(socket, again)
    print(json.dumps({"rows": rows, "kept": [pod, again]}))


def keep(socket: str, image: str) -> None:
    pod = run_pod(socket, KEPT)
    print(json.dumps([pod, run(socket, image, pod, KEPT, ALL)]))


def drain(socket: str, image: str, pod: str) -> None:
    remove(socket, pod)
    keep(socket, image)


def in_pod(socket: str, image: str, pod: str, asked: bytes) -> str:
    return seen(lambda: look(socket, run(socket, image, pod, "new", asked)))


def by_class(socket: str, image: str) -> str:
    pod = run_pod(socket, "named", "nvidia")
    try:
        return look(socket, run(socket, image, pod, "named", ALL))
    finally:
        remove(socket, pod)


def ctr(image: str) -> str:
    argv = ("ctr", "run", "--rm", "--gpus", "0", image, "typed", "sh", "-c", LOOK)
    done = subprocess.run(argv, capture_output=True, text=True)
    return (done.stderr or done.stdout).strip()


def seen(deed: Callable[[], str]) -> str:
    """What the container printed; else what containerd has against it, by its journal: gRPC's answer is compressed."""
    began = time.time()
    try:
        return deed()
    except SystemExit:
        subprocess.run(("journalctl", "--sync"), check=True)
        argv = ("journalctl", "-u", "containerd", "-o", "cat", "--grep", "level=error", f"--since=@{began:.6f}")
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.replace("\\", "")


def run_pod(socket: str, name: str, handler: str = "") -> str:
    asked = field(1, pod_config(name)) + (field(2, handler) if handler else b"")
    return str(first_string(call(socket, "RunPodSandbox", asked)))


def run(socket: str, image: str, pod: str, name: str, asked: bytes) -> str:
    metadata = field(1, name) + field(2, time.monotonic_ns() % 2**31)  # the attempt: kubelet counts them
    config = field(1, metadata) + field(2, field(1, image)) + field(3, "sleep") + field(4, "3600") + asked
    request = field(1, pod) + field(2, config) + field(3, pod_config(name))
    container = str(first_string(call(socket, "CreateContainer", request)))
    call(socket, "StartContainer", field(1, container))
    return container


def look(socket: str, container: str) -> str:
    """Field 1 of ExecSyncResponse is what was printed."""
    argv = field(2, "sh") + field(2, "-c") + field(2, LOOK)
    return str(first_string(call(socket, "ExecSync", field(1, container) + argv + field(3, 20)))).strip()


def stop(socket: str, container: str) -> None:
    call(socket, "StopContainer", field(1, container) + field(2, 0))
    call(socket, "RemoveContainer", field(1, container))


def remove(socket: str, pod: str) -> None:
    call(socket, "StopPodSandbox", field(1, pod))
    call(socket, "RemovePodSandbox", field(1, pod))


def main(socket: str, deed: str, *words: str) -> None:
    deeds: dict[str, Callable[..., None]] = {"keep": keep, "drain": drain, "type": outcomes}
    deeds[deed](socket, *words)


if __name__ == "__main__":
    main(*sys.argv[1:])
