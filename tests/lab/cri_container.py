"""Run one container with CDI devices through a containerd's CRI. Lies beside cri_pod.py on a lab host.

python3 cri_container.py /run/containerd/containerd.sock IMAGE DEVICE     prints `env` of the container, which runs on
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from cri_pod import call, field, first_string, pod_config  # type: ignore[import-not-found, unused-ignore]

LOG = "env.log"


def main(socket: str, image: str, device: str) -> None:
    pod = pod_config("cdi")  # its logs go to /tmp
    pod_id = first_string(call(socket, "RunPodSandbox", field(1, pod)))
    config = (
        field(1, field(1, "env"))
        + field(2, field(1, image))
        + field(3, "sh")
        + field(3, "-c")
        + field(3, "env; exec sleep 3600")
        + field(11, LOG)
        + field(17, field(1, device))  # CDI_devices
    )
    asked = field(1, pod_id) + field(2, config) + field(3, pod)
    container = first_string(call(socket, "CreateContainer", asked))
    call(socket, "StartContainer", field(1, container))
    log = Path("/tmp") / LOG
    for _ in range(100):
        if log.exists() and "PATH=" in log.read_text():
            break
        time.sleep(0.05)
    print(log.read_text())


if __name__ == "__main__":
    main(*sys.argv[1:])
