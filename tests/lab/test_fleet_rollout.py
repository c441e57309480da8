"""Eight hosts of three Debian releases in one run: what stops it, each host's own trouble, who finishes them.

The hosts are booted once. A run that only has to fail or not writes configuration of engines alone; the one in which
each host has a trouble of its own installs the driver.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from .boot_times import last_down, most_at_once
from .fleet import (
    IMPATIENT,
    Fleet,
    Run,
    Way,
    assert_whole,
    hold,
    lift,
    start_side_by_side,
    until_in_a_transaction,
    wait_until,
)
from .host import Host
from .lab import Lab
from .network import GATEWAY
from .product_runs import expect, fingerprint_of_state

# Named for what befalls them in the last of the tests; in this order they are named to gpunode.
HOSTS = {
    "dies": ("debian12", "containerd"),
    "jump": ("debian12", "docker"),
    "sudo": ("debian-sid", "containerd"),
    "second": ("debian-sid", "docker"),
    "full": ("debian12", "containerd"),
    "key": ("debian13", "docker"),
    "inner": ("debian13", "containerd"),
    "never": ("debian13", "docker"),
}
REBOOT = ("second", "inner", "never", "sudo", "full", "key")  # nouveau holds their GPUs
TROUBLED = ("dies", "sudo", "full", "key", "never")
RUNTIME = "/usr/bin/nvidia-container-runtime"
GUARD = "/etc/systemd/system/containerd.service.d/guard.conf"
REFUSES = "[Service]\nExecStartPre=/bin/sh -c '! grep -rqs nvidia /etc/containerd'\n"
BEHIND = f"""[Unit]
Before=ssh.service
[Service]
Type=oneshot
ExecStart=/usr/sbin/iptables -w -A INPUT -s {GATEWAY} -p tcp --dport 22 -j REJECT --reject-with tcp-reset
[Install]
WantedBy=multi-user.target
"""
# Of each host in trouble its own words, and what to do.
SAID = (
    "dies 10.77.0.",
    "once the host is reachable, run gpunode setup --ssh dies again: it waits for that first",
    "sudo sudo needs a password",
    "full cannot write /var/lib/gpunode/",
    "No space left on device",
    "key the host key of",
    "never did not come back within 15 s after the reboot",
    "look at its console",
)
ENGINES_ALONE = ("setup", "--yes", "--only", "runtime")


@pytest.fixture(scope="module")
def lab(lab_session: Lab) -> Iterator[Lab]:
    yield lab_session
    lab_session.reset()


@pytest.fixture(scope="module")
def hosts(lab: Lab) -> tuple[Host, ...]:
    made = tuple(_host(lab, name) for name in HOSTS)
    start_side_by_side(made)
    return made


def _host(lab: Lab, name: str) -> Host:
    distribution, engine = HOSTS[name]
    size = "500M" if name == "full" else None
    host = lab.host(distribution, gpu="h100", runtime=engine, name=name, tmpfs_root=size, start=False)
    if name in REBOOT:
        host.fault("nouveau")
    return host


@pytest.fixture
def fleet(hosts: tuple[Host, ...], tmp_path: Path) -> Iterator[Fleet]:
    eight = Fleet(hosts, tmp_path, module=IMPATIENT)
    yield eight
    eight.end()


@contextmanager
def only_engines(fleet: Fleet, refusing: Iterable[str]) -> Iterator[None]:
    """A toolkit's runtime on each host, so that `--only runtime` has work to do; on some containerd refuses that."""
    for host in fleet.hosts:
        host.write(RUNTIME, "#!/bin/sh\n", 0o755)
    for name in refusing:
        fleet[name].write(GUARD, REFUSES)
        fleet[name].nsrun("systemctl daemon-reload", check=True)
    try:
        yield
    finally:
        for host in fleet.hosts:
            host.nsrun(f"rm -f {RUNTIME} {GUARD}; systemctl daemon-reload", check=True)


def touched(hosts: Iterable[Host]) -> dict[str, str]:
    """What gpunode would have changed on each, by name."""
    left = "ls -d /var/lib/gpunode /run/gpunode"
    return {host.name: fingerprint_of_state(host) + host.nsrun(left).stdout for host in hosts}


def endings(fleet: Fleet, run_id: str = "last") -> dict[str, int | None]:
    """Host -> its exit code, of a run's record; None where it did not begin."""
    shown = fleet.start("runs", "show", run_id, "--json").ended()
    return {host["target"]: host.get("code") for host in json.loads(shown.stdout)["hosts"]}


def test_a_canary_that_fails_leaves_the_other_seven_untouched(fleet: Fleet) -> None:
    with only_engines(fleet, ["dies"]):
        others = [host for host in fleet.hosts if host.name != "dies"]
        before = touched(others)
        result = expect(fleet.gpunode(*ENGINES_ALONE, "--canary", "1"), 1)
        assert "8 hosts: 1 failed (1) · 7 not begun (1)" in result.stdout
        assert "not begun: the canary dies failed" in result.stdout
        assert touched(others) == before


def test_the_third_failed_host_stops_the_run_and_a_retry_does_the_rest(fleet: Fleet) -> None:
    refusing = ("dies", "sudo", "full")
    with only_engines(fleet, refusing):
        left = [fleet["inner"], fleet["never"]]
        before = touched(left)
        result = expect(fleet.gpunode(*ENGINES_ALONE, "--batch", "2", "--max-failures", "2"), 1)
        assert "4 batches of 2; more than 2 failed hosts stops it" in result.stderr
        assert "8 hosts: 3 failed (1) · 2 not begun (1) · 3 done (0)" in result.stdout
        assert "not begun: 3 hosts failed, and --max-failures is 2" in result.stdout
        assert touched(left) == before

        for name in refusing:
            fleet[name].nsrun(f"rm {GUARD}; systemctl daemon-reload", check=True)
        again = expect(fleet.start("setup", "--retry-failed", "--yes").ended(), 0)
        assert "5 hosts: 5 done (0)" in again.stdout


def test_each_hosts_trouble_is_its_own_and_a_retry_finishes_them(lab: Lab, fleet: Fleet) -> None:
    trouble(fleet)
    words = ("--reboot", "if-needed", "--max-reboots", "1", "--trust-key", lab.repo_fingerprint)
    run = fleet.start("setup", "--yes", *words, "--ssh", fleet.names)
    go_through(fleet, run)

    result = expect(run.ended(), 1)
    assert "8 hosts: 1 failed (1) · 4 unreachable (3) · 3 done (0)" in result.stdout
    told = dict.fromkeys(("jump", "second", "inner"), 0)
    assert endings(fleet) == {"dies": 3, "sudo": 3, "full": 1, "key": 3, "never": 3, **told}
    for each in SAID:
        assert each in " ".join(result.stdout.split()), result.stdout

    mend(fleet)
    downs = [last_down(fleet[name]) for name in ("second", "inner", "never")]
    assert most_at_once(downs) == 1, downs
    rebooting = [fleet[name] for name in ("sudo", "full", "key")]
    hold(rebooting, "boot_held")
    again = fleet.start("setup", "--retry-failed", "--yes", "--max-reboots", "2", *password(fleet))
    reboot_at_once(rebooting, 2, again)
    assert "5 hosts: 5 done (0)" in expect(again.ended(), 0).stdout
    assert endings(fleet) == dict.fromkeys(TROUBLED, 0)
    downs = [last_down(host) for host in rebooting]
    assert most_at_once(downs) == 2, downs
    all_is_well(fleet)


def trouble(fleet: Fleet) -> None:
    """What befalls them, as far as it does so before the run."""
    fleet["full"].fill("/var/ballast")
    fleet["key"].ssh_config_text()  # its keys of now are known from here on
    fleet["key"].nsrun("rm /etc/ssh/ssh_host_*; ssh-keygen -A; systemctl restart ssh", check=True)
    fleet["inner"].write("/etc/systemd/system/behind.service", BEHIND)
    fleet["inner"].nsrun("systemctl enable --now behind", check=True)
    fleet.ways.update(sudo=Way("operator"), inner=Way(jump="jump"))
    hold(fleet[name] for name in ("dies", "second", "inner", "never"))
    hold([fleet["second"], fleet["inner"], fleet["never"]], "boot_held")


def go_through(fleet: Fleet, run: Run) -> None:
    """The power goes on one; two want to reboot at the same time; when both are back, a third does and stays away."""
    at_work = [fleet[name] for name in ("dies", "second", "inner", "never")]
    until_in_a_transaction(at_work, run)
    fleet["dies"].kill()
    both = [fleet["second"], fleet["inner"]]
    lift(both)
    reboot_at_once(both, 1, run)
    run.until("^second  done$", "^inner  done$")
    run.process.send_signal(signal.SIGUSR1)
    lift([fleet["never"]])


def reboot_at_once(hosts: Sequence[Host], limit: int, run: Run) -> None:
    """So many of them go down; their boot is held until another one, which wants to, has waited for its turn."""
    before = {host.name: host.boots for host in hosts}

    waits = f"^({'|'.join(before)})  still waiting after .*: its turn to reboot"

    def met() -> bool:
        down = sum(host.boots > before[host.name] for host in hosts)
        assert down <= limit, f"{down} are down:\n{run.said()}"
        return run.has(waits) and down == limit

    wait_until(met, f"{limit} of {', '.join(before)} down, and another that waits", run.said)
    lift(hosts, "boot_held")


def mend(fleet: Fleet) -> None:
    fleet["dies"].start()
    lift([fleet["dies"]])
    lift([fleet["never"]], "boot_held")
    fleet["full"].nsrun("rm /var/ballast", check=True)
    fleet["key"].know_keys()
    for name in ("dies", "never"):
        fleet[name].wait()


def password(fleet: Fleet) -> tuple[str, str]:
    """Of the user who needs one for sudo; root needs none."""
    path = fleet.home / "password"
    path.write_text("secret\n")
    return ("--become-pass-file", str(path))


def all_is_well(fleet: Fleet) -> None:
    expect(fleet.gpunode("check", *password(fleet)), 0)
    assert_whole(fleet.hosts)
    for host in fleet.hosts:
        assert host.boots == 1 + (host.name in (*REBOOT, "dies")), host.name
