"""Every way in which a change of containerd can go wrong, on every version: the state before is the state after."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from gpunode.errors import ExitCode

from .host import Host
from .lab import Lab
from .product_runs import Controller
from .test_containerd_cases import furnish

ROOT = "/etc/containerd/config.toml"
GLOB = "/etc/containerd/conf.d/*.toml"
OTHER = "/etc/containerd/conf.d/10-site.toml"
CRI = '[plugins."io.containerd.grpc.v1.cri"'
GOOD = f"""version = 2
imports = ["{GLOB}"]
# the site's own
{CRI}.containerd]
  default_runtime_name = "runc" # for now
"""
PROGRAM = "/usr/bin/nvidia-container-runtime"
SETUP = ("setup", "--yes", "--only", "runtime", "--runtime", "containerd")
# Once a file of /etc/containerd says nvidia, the daemon is started on another configuration in its place.
WRAPPER = """#!/bin/sh
grep -rqs nvidia /etc/containerd && exec /usr/bin/containerd --config /etc/swapped.toml
exec /usr/bin/containerd
"""
UNIT = "[Service]\nExecStart=\nExecStart=/usr/local/sbin/containerd-wrapper\n"
LIMIT = "[Unit]\nStartLimitIntervalSec=600\nStartLimitBurst=3\n"
STATE = """
find /etc/containerd -type f -exec sha256sum {} + -exec stat -c '%n %a %U %G' {} + | sort
for what in ActiveState SubState UnitFileState; do systemctl show containerd -p $what; done
cd /root && python3 -c '
from starts import containerd_starts, cri_pod
try:
    found = containerd_starts.config_of(cri_pod.call("/run/containerd/containerd.sock", "Status", b"\\x08\\x01"))
    print("default", found["containerd"]["defaultRuntimeName"], sorted(found["containerd"]["runtimes"]))
except SystemExit:
    print("CRI does not answer")
'
"""


@dataclass(frozen=True)
class Row:
    name: str
    prepare: Callable[[Host], None]
    code: ExitCode
    says: tuple[str, ...]  # any of these must be among what gpunode prints
    touched: bool = True  # the daemon was restarted on the way; else its process is the same
    root: str = GOOD


def other_program_writes(text: str) -> Callable[[Host], None]:
    """After the daemon started: it runs, and its next start would meet this."""
    return lambda host: host.write(OTHER, text)


def no_program(host: Host) -> None:
    host.nsrun(f"mv {PROGRAM} {PROGRAM}.gone", check=True)


def swapped(text: str) -> Callable[[Host], None]:
    def prepare(host: Host) -> None:
        host.write("/etc/swapped.toml", text)
        host.write("/usr/local/sbin/containerd-wrapper", WRAPPER, 0o755)
        host.write("/etc/systemd/system/containerd.service.d/wrapper.conf", UNIT)
        restart(host)

    return prepare


def nothing(host: Host) -> None:
    pass


# `config dump` takes both; the CRI plugin of every version does not load with either, and gpunode knows of the first.
LATE = f'version = 2\n{CRI}]\nstream_idle_timeout = "soon"\n'
DEAD = f"""version = 2
{CRI}]
enable_tls_streaming = true
{CRI}.x509_key_pair_streaming]
tls_cert_file = "/nosuch"
"""
ROWS = (
    Row("syntax", other_program_writes("version = 2\n[grpc\n"), ExitCode.FAILED, (f"{OTHER}:2:",), touched=False),
    Row(
        "a value that the daemon refuses",
        other_program_writes('version = 2\noom_score = "high"\n'),
        ExitCode.FAILED,
        ("is broken already",),
        touched=False,
    ),
    Row("no program", no_program, ExitCode.FAILED, (f"{PROGRAM} is not there, or cannot be executed",), touched=False),
    Row(
        "it ends at every start",
        swapped("version = 2\noom_score = 'high'\n"),
        ExitCode.FAILED,
        ("failed to unmarshal TOML",),
    ),
    Row(
        "the file was broken since the daemon started",
        lambda host: host.write(ROOT, LATE, 0o640),
        ExitCode.FAILED,
        (f"{ROOT}:3: stream_idle_timeout",),
        touched=False,
    ),
    Row("it runs and CRI does not", swapped(DEAD), ExitCode.FAILED, ("must set X509KeyPairStreaming.TLSKeyFile",)),
    Row(
        "CRI was dead before",
        nothing,
        ExitCode.FAILED,
        ("must set X509KeyPairStreaming.TLSKeyFile",),
        root=DEAD,
    ),
)


def test_whatever_goes_wrong_the_state_before_is_the_state_after(lab: Lab, tmp_path: Path) -> None:
    """All three versions at once: most of the time is gpunode waiting for a daemon that does not come."""
    hosts = [lab.host(name, runtime="containerd") for name in ("debian12", "debian13", "debian-sid")]
    with ThreadPoolExecutor(len(hosts)) as pool:
        faults = [fault for found in pool.map(lambda host: faults_of(host, tmp_path), hosts) for fault in found]
    assert not faults, "\n\n".join(faults)


def faults_of(host: Host, directory: Path) -> list[str]:
    furnish(host)
    me = Controller("ssh", directory / host.name)
    return [fault for row in ROWS for fault in one(host, me, row)] + mended_by_a_start(host, me)


def mended_by_a_start(host: Host, me: Controller) -> list[str]:
    """The start limit is used up and the files are good again: gpunode starts containerd past it."""
    reset(host, GOOD)
    host.write(OTHER, "version = 2\n[grpc\n", 0o600)
    # systemd allows five starts in ten seconds, which a busy machine does not reach.
    host.write("/etc/systemd/system/containerd.service.d/limit.conf", LIMIT)
    host.nsrun("systemctl daemon-reload; for n in 1 2 3 4; do systemctl restart containerd; done")
    host.write(OTHER, "oom_score = 0\n", 0o600)
    refused = host.nsrun("systemctl start containerd").returncode  # though nothing is wrong any more
    done = me.gpunode(host, *SETUP)
    if refused and done.returncode == 0 and "default nvidia" in state(host):
        return []
    said = f"exit {done.returncode}: {done.stdout}{done.stderr}\n{state(host)}"
    return [f"{host.recipe.distribution}, a start by hand ends with {refused}, gpunode's with {said}"]


def one(host: Host, me: Controller, row: Row) -> list[str]:
    reset(host, row.root)
    row.prepare(host)
    before, pid = state(host), main_pid(host)
    done = me.gpunode(host, *SETUP)
    said = done.stdout + done.stderr
    after = state(host)
    faults = []
    if done.returncode != row.code:
        faults.append(f"exit {done.returncode}, not {row.code:d}: {said}")
    if not any(words in said for words in row.says):
        faults.append(f"none of {row.says} is said: {said}")
    if before != after:
        faults.append(f"before:\n{before}\nafter:\n{after}\nsaid: {said}")
    if (main_pid(host) == pid) is row.touched:
        faults.append(f"the daemon was{' not' if row.touched else ''} restarted: {said}")
    return [f"{host.recipe.distribution}, {row.name}: {fault}" for fault in faults]


def reset(host: Host, root: str) -> None:
    host.nsrun("rm -rf /etc/containerd/* /etc/systemd/system/containerd.service.d", check=True)
    host.nsrun(f"[ -e {PROGRAM} ] || mv {PROGRAM}.gone {PROGRAM}", check=True)
    host.write(ROOT, root, 0o640)
    host.write(OTHER, "oom_score = 0\n", 0o600)
    restart(host)


def restart(host: Host) -> None:
    """Past the start limit: a fast machine makes the rows' starts within ten seconds."""
    host.nsrun("systemctl daemon-reload; systemctl reset-failed containerd; systemctl restart containerd", check=True)


def state(host: Host) -> str:
    """Bytes, mode and owner of every file, the unit's state, the effective default."""
    host.nsrun("systemctl start containerd")  # returns once a start that is under way has ended
    return host.nsrun(STATE, check=True).stdout


def main_pid(host: Host) -> str:
    return host.nsrun("systemctl show containerd -p MainPID --value", check=True).stdout
