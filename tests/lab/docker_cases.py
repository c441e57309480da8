"""Each pair of daemon.json files through a real dockerd. Fed to a lab host's python3: standard library only.

    python3 - /root/cases.json < docker_cases.py

cases.json holds [{"name", "before", "after", "run", "start"}, ...]: texts in base64, "before" null where there is no
file. Every pair is loaded into a running dockerd by SIGHUP, as `systemctl reload docker` does it: a neutral file, then
"before", then "after"; with "run" a container that names no runtime is started; with "start" a dockerd is started with
"after". Prints one object per pair; what should be an /info is dockerd's own words where it refused.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
from pathlib import Path
from typing import Any

CONFIG, SOCKET, LOG = Path("/etc/docker/daemon.json"), "/var/run/docker.sock", Path("/run/dockerd-of-cases.log")
STUB_LOG, IMAGE = Path("/var/log/nvidia-container-runtime.stub.log"), "lab.example/busybox:lab"
# A reload with the keys merely gone would leave the runtimes of the pair before.
NEUTRAL = base64.b64encode(b'{"default-runtime": "runc", "runtimes": {}}').decode()
LIMIT_S = 60
Process = subprocess.Popen[bytes]


class Daemon(http.client.HTTPConnection):
    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(10)
        self.sock.connect(SOCKET)


def info() -> Any:
    with contextlib.closing(Daemon("localhost")) as daemon:
        daemon.request("GET", "/info")
        answer = daemon.getresponse()
        return json.loads(answer.read()) if answer.status == 200 else None


def in_force(since_ns: int) -> None:
    """Waits for the event of a reload: 25 and later write their line in the log before the new settings are theirs."""
    wanted = urllib.parse.quote('{"type": ["daemon"], "event": ["reload"]}')
    with contextlib.closing(Daemon("localhost")) as daemon:
        daemon.request("GET", f"/events?since={since_ns // 10**9}.{since_ns % 10**9:09}&filters={wanted}")
        daemon.getresponse().readline()


def put(text: str | None) -> None:
    if text is None:
        CONFIG.unlink(missing_ok=True)
    else:
        CONFIG.write_bytes(base64.b64decode(text))


def log(start: int = 0) -> list[str]:
    """The daemon's lines from this byte on: of thousands of reloads the whole is megabytes, and is looked at often."""
    with LOG.open("rb") as file:
        file.seek(start)
        return file.read().decode(errors="replace").splitlines()


def start(text: str | None, *flags: str) -> tuple[Process | None, Any]:
    """A dockerd with its /info, or None and its last line when it exits."""
    put(text)
    with LOG.open("wb") as output:
        argv = ("dockerd", "--containerd=/run/containerd/containerd.sock", *flags)
        process = subprocess.Popen(argv, stdout=output, stderr=output, stdin=subprocess.DEVNULL)
    until = time.monotonic() + LIMIT_S
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(OSError):
            seen = info()
            if seen:
                return process, seen
        time.sleep(0.02)
    process.kill()
    process.wait()
    return None, (log() or ["no word"])[-1]


def stop(process: Process) -> None:
    process.terminate()
    process.wait(LIMIT_S)


def reload(process: Process, text: str | None) -> Any:
    """/info when the file was taken, else what the daemon said, which may be why it died."""
    put(text)
    seen, since_ns = LOG.stat().st_size, time.time_ns()
    if process.poll() is None:
        process.send_signal(signal.SIGHUP)
    until = time.monotonic() + LIMIT_S
    while time.monotonic() < until and process.poll() is None:
        fresh = log(seen)
        # 28 says "Reloaded configuration" behind an error as well.
        # Not a runtime's own words, which a warning may quote.
        if any(re.match(r'time="[^"]*" level=error', line) for line in fresh):
            return "\n".join(fresh)
        if any("Reloaded configuration" in line for line in fresh):
            with contextlib.suppress(OSError, http.client.HTTPException):
                in_force(since_ns)
                return info()
            process.wait(LIMIT_S)
        time.sleep(0.005)
    if process.poll() is None:
        return "no answer to SIGHUP"
    return "died: " + next((line for line in log() if line.startswith("panic:")), log()[-1])


def run() -> str:
    """ "stub" when a container went through the stub runtime."""
    STUB_LOG.write_text("")
    argv = ("docker", "run", "--rm", "--network", "none", IMAGE, "true")
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return "stub" if " create " in STUB_LOG.read_text() else done.stderr or "runc"


def loaded(process: Process, case: dict[str, Any], last: dict[str, Any]) -> tuple[Process, dict[str, Any]]:
    """The dockerd that runs now, and the answers."""
    cleared = reload(process, NEUTRAL)
    if process.poll() is not None and case.get("generated"):
        # The file before this one was taken, and the next reload is the last.
        last["died_later"] = cleared
        process, cleared = begin(NEUTRAL)
    if not isinstance(cleared, dict) or "nvidia" in cleared["Runtimes"]:
        raise SystemExit(f"{case['name']}: the neutral file was not taken: {cleared}")
    before, after, died = reload(process, case["before"]), reload(process, case["after"]), None
    if process.poll() is not None:
        # One that died of "before" may have answered /info just ahead of it.
        died = before if isinstance(before, str) else after
        restarted, before = start(case["before"])
        process = restarted or begin(NEUTRAL)[0]
        after = reload(process, case["after"])
    return process, {"before": before, "died": died, "reloaded": after, "ran": run() if case["run"] else None}


def started(case: dict[str, Any]) -> Any:
    words = base64.b64decode(case["after"])
    quick = {b'"bridge"': "--bridge=none", b'"iptables"': "--iptables=false"}
    process, seen = start(case["after"], *(flag for key, flag in quick.items() if key not in words))
    if process:
        stop(process)
    return seen


def begin(text: str | None) -> tuple[Process, Any]:
    process, seen = start(text)
    if process is None:
        raise SystemExit(seen)
    return process, seen


def main(cases: list[dict[str, Any]]) -> None:
    daemon, _ = begin(NEUTRAL)
    subprocess.run(("docker", "load", "-i", "/root/lab-image.tar"), check=True, capture_output=True)
    answers: dict[str, dict[str, Any]] = {}
    last: dict[str, Any] = {}
    for case in cases:
        daemon, last = loaded(daemon, case, last)
        answers[case["name"]] = last
    stop(daemon)
    for case in cases:
        answer = {**answers[case["name"]], "started": started(case) if case["start"] else None}
        print(json.dumps({"name": case["name"], **answer}))


main(json.loads(Path(sys.argv[1]).read_text()))
