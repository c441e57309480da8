"""Pods through a containerd's CRI. Lies beside cri_pod.py on a lab host.

python3 cri_since.py SOCKET run NAME IMAGE [HANDLER]    prints the pod's id and its container's
python3 cri_since.py SOCKET exec CONTAINER              fails where `true` cannot be run in it
python3 cri_since.py SOCKET remove POD                  stopped and removed, as kubelet does it
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from cri_pod import call, field, first_string, pod_config  # type: ignore[import-not-found, unused-ignore]


def run(socket: str, name: str, image: str, handler: str = "") -> None:
    pod = pod_config(name)
    pod_id = first_string(call(socket, "RunPodSandbox", field(1, pod) + (field(2, handler) if handler else b"")))
    config = field(1, field(1, name)) + field(2, field(1, image)) + field(3, "sleep") + field(4, "3600")
    container = first_string(call(socket, "CreateContainer", field(1, pod_id) + field(2, config) + field(3, pod)))
    call(socket, "StartContainer", field(1, container))
    print(pod_id, container)


def execute(socket: str, container: str) -> None:
    """ExecSyncResponse.exit_code is field 3, and proto3 leaves a zero out: an answer without it, or none at all."""
    answer = call(socket, "ExecSync", field(1, container) + field(2, "true") + field(3, 20))
    assert b"\x18" not in answer, answer


def remove(socket: str, pod: str) -> None:
    call(socket, "StopPodSandbox", field(1, pod))
    call(socket, "RemovePodSandbox", field(1, pod))


def main(socket: str, deed: str, *words: str) -> None:
    deeds: dict[str, Callable[..., None]] = {"run": run, "exec": execute, "remove": remove}
    deeds[deed](socket, *words)


if __name__ == "__main__":
    main(*sys.argv[1:])
