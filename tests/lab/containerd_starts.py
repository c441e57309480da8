"""Start the host's containerd on one configuration after another, and tell what it runs with. For a lab host's python3.

    python3 -m starts.containerd_starts < cases.json     (in a package with cri_pod.py)

cases.json: [{"name": NAME, "files": {PATH: TEXT}, "pod": BOOLEAN, "dump": BOOLEAN}]. For each case one line of JSON:
{"name": NAME, "config": CRI's own view or null, "log": what the daemon said, "pod": its id, or why there is none,
"dump": what `containerd config dump` prints}.
Nothing goes through systemd, and root, state and socket are the case's own: a start takes a tenth of a second.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from . import cri_pod

ETC = Path("/etc/containerd")
SCRATCH = Path("/var/lib/containerd/cases")
SOCKET = "/run/lab-case.sock"
IMAGE = Path("/root/lab-image.tar")
LIMIT_S = 30.0
PATIENCE = 8


def main() -> None:
    for number, case in enumerate(json.load(sys.stdin)):
        print(json.dumps(run(case, SCRATCH / f"{os.getpid()}-{number}")), flush=True)


def run(case: dict[str, Any], scratch: Path) -> dict[str, Any]:
    prepare(case["files"])
    scratch.mkdir(parents=True)
    log = scratch / "log"
    dump = subprocess.run(["containerd", "config", "dump"], capture_output=True, cwd="/") if case.get("dump") else None
    with log.open("wb") as output:
        flags = ("--root", f"{scratch}/root", "--state", f"{scratch}/state", "--address", SOCKET)
        daemon = subprocess.Popen(["containerd", *flags], stdout=output, stderr=output, cwd="/")
    try:
        config = status(daemon)
        pod = start_pod() if case.get("pod") and config else None
    finally:
        daemon.kill()
        daemon.wait()
        if not case.get("pod"):  # a pod lives on in its shim, and its mounts with it
            shutil.rmtree(scratch / "root", ignore_errors=True)
    said = log.read_text(errors="replace")[-1500:]
    told = dump.stdout.decode() if dump else ""
    return {"name": case["name"], "config": config, "log": said, "pod": pod, "dump": told}


def prepare(files: dict[str, str]) -> None:
    for old in (*ETC.glob("*.toml"), *ETC.glob("conf.d/*")):
        old.unlink()
    for name, text in files.items():
        path = Path(name)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
    if os.path.exists(SOCKET):
        os.unlink(SOCKET)


def status(daemon: subprocess.Popen[bytes]) -> dict[str, Any] | None:
    """CRI's configuration; None when the daemon ended or its CRI does not answer."""
    deadline, refused = time.monotonic() + LIMIT_S, 0
    while time.monotonic() < deadline and daemon.poll() is None:
        try:
            answer = cri_pod.call(SOCKET, "Status", b"\x08\x01")
        except (FileNotFoundError, ConnectionRefusedError):
            time.sleep(0.01)
            continue
        except SystemExit:
            refused += 1  # CRI is not there, or (1.6) has not yet recovered its state
            if refused == PATIENCE:
                return None
            time.sleep(0.05)
            continue
        return config_of(answer)
    return None


def config_of(answer: bytes) -> dict[str, Any] | None:
    """StatusResponse.info is a map<string, string>, field 2; its "config" is the CRI plugin's configuration as JSON."""
    mark = b"\n\x06config\x12"
    at = answer.find(mark)
    if at < 0:
        return None
    at += len(mark)
    while answer[at] & 128:  # the length, a varint
        at += 1
    found, _ = json.JSONDecoder().raw_decode(answer[at + 1 :].decode("utf-8", "replace"))
    return dict(found)


def start_pod() -> str:
    argv = ("ctr", "--address", SOCKET, "-n", "k8s.io", "images", "import", str(IMAGE))
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    for _ in range(20):
        try:
            answer = cri_pod.call(SOCKET, "RunPodSandbox", cri_pod.field(1, cri_pod.pod_config("lab")))
        except SystemExit as failed:
            why = f"failed: {failed}"
            time.sleep(0.1)  # CRI hears of an imported image by an event
        else:
            return cri_pod.first_string(answer)
    return why


if __name__ == "__main__":
    main()
