"""Several hosts in one run: side by side, one question, one host's trouble its own, the worst code at the end."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from .fleet import Fleet, start_side_by_side
from .lab import Lab
from .product_runs import expect

GUARD = "[Service]\nExecStartPre=/bin/sh -c '! grep -qs nvidia /etc/containerd/config.toml'\n"
FOUND = re.compile(r"(?:FAIL|WARN)  ([^\s,]+(?:, [^\s,]+)*) +(\S+)")
BROKEN = '{\n  "log-driver": "json-file",\n  "debug": tru\n}\n'


@pytest.fixture
def fleet(lab: Lab, tmp_path: Path) -> Fleet:
    """a (docker), b and c (containerd of two releases), not started: a test adds its trouble first."""
    hosts = (
        lab.host("debian12", gpu="h100", runtime="docker", name="a", start=False),
        lab.host("debian13", gpu="h100", runtime="containerd", name="b", start=False),
        lab.host("debian12", gpu="h100", runtime="containerd", name="c", start=False),
    )
    return Fleet(hosts, tmp_path)


def test_one_hosts_failing_daemon_stays_its_own(lab: Lab, fleet: Fleet) -> None:
    fleet.hosts[2].write("/etc/systemd/system/containerd.service.d/guard.conf", GUARD)
    start_side_by_side(fleet.hosts)

    result = expect(fleet.gpunode("setup", "--yes", "--trust-key", lab.repo_fingerprint), 1)
    assert "a, b" in result.stdout
    assert "3 hosts: 1 failed (1) · 2 done (0)" in result.stdout
    assert "containerd.default" in result.stdout
    assert "nvidia" not in fleet.hosts[2].nsrun("cat /etc/containerd/config.toml 2>/dev/null").stdout

    text = expect(fleet.gpunode("check"), 1).stdout
    told = json.loads(expect(fleet.gpunode("check", "--format", "json"), 1).stdout)
    assert told["schema"] == "gpunode.check-result/2"
    assert [(h["target"], h["code"]) for h in told["hosts"]] == [("a", 0), ("b", 0), ("c", 1)]
    assert found_in_text(text) == found_in_json(told)


def test_a_config_that_cannot_be_read_is_left_to_its_owner_and_the_rest_is_done(lab: Lab, fleet: Fleet) -> None:
    config = "/etc/docker/daemon.json"
    broken = lab.host("debian12", gpu="h100", runtime="docker", name="d", start=False)
    broken.write("/etc/systemd/system/docker.service.d/own.conf", "[Unit]\nConditionPathExists=/nowhere\n")
    broken.write(config, BROKEN)
    both = Fleet((fleet.hosts[0], broken), fleet.home)
    start_side_by_side(both.hosts)

    result = expect(both.gpunode("setup", "--yes", "--trust-key", lab.repo_fingerprint), 4)
    assert f"{config}:3:12: " in result.stdout
    assert f"{config}:3:12: " in result.stderr.partition("  begins  ")[0], "told before the first change"
    assert broken.read(config) == BROKEN
    assert broken.nsrun("dpkg-query -W nvidia-open").returncode == 0, "one engine does not keep the driver from a host"
    assert fleet.hosts[0].nsrun("docker info -f '{{.DefaultRuntime}}'").stdout.strip() == "nvidia", result.stderr


def test_a_canary_that_fails_leaves_all_other_hosts_untouched(lab: Lab, fleet: Fleet) -> None:
    fleet.hosts[2].write("/etc/systemd/system/containerd.service.d/guard.conf", GUARD)
    both = Fleet((fleet.hosts[2], fleet.hosts[0]), fleet.home)
    start_side_by_side(both.hosts)

    result = expect(both.gpunode("setup", "--yes", "--canary", "1", "--trust-key", lab.repo_fingerprint), 1)
    assert "1 canary, then 1 host after it; a canary that fails" in result.stderr.partition("  begins  ")[0]
    assert "not begun: the canary c failed" in result.stdout
    assert "2 hosts: 1 failed (1) · 1 not begun (1)" in result.stdout
    untouched = fleet.hosts[0]
    assert untouched.nsrun("ls /var/lib/gpunode /run/gpunode").stdout.strip() == ""
    assert untouched.nsrun("dpkg-query -W nvidia-open").returncode != 0


def test_of_two_hosts_one_reboots_at_a_time_and_both_are_held_against_what_they_were(lab: Lab, tmp_path: Path) -> None:
    hosts = tuple(lab.host("debian12", gpu="h100", runtime="docker", name=name, start=False) for name in ("a", "b"))
    for host in hosts:
        host.fault("nouveau")
    start_side_by_side(hosts)
    before = [host.boots for host in hosts]

    words = ("--reboot", "if-needed", "--max-reboots", "2", "--trust-key", lab.repo_fingerprint)
    result = expect(Fleet(hosts, tmp_path).gpunode("setup", "--yes", *words), 0)

    assert [host.boots for host in hosts] == [boots + 1 for boots in before]
    down = re.findall(r"^([ab])  (reboot: |is back|check, against|done$)", result.stderr, re.M)
    first = down[0][0]
    second = "b" if first == "a" else "a"
    assert down.index((second, "reboot: ")) > down.index((first, "check, against")), result.stderr
    assert "at most 1 host reboots at once" in result.stderr


def found_in_text(text: str) -> set[tuple[str, str]]:
    """ "FAIL  a, b  rt.effective-default  ...": hosts with the same finding share a line."""
    rows = [FOUND.match(line) for line in text.splitlines()]
    return {(host, row[2]) for row in rows if row for host in row[1].split(", ")}


def found_in_json(told: dict[str, list[dict[str, object]]]) -> set[tuple[str, str]]:
    return {
        (str(host["target"]), str(check["id"]))
        for host in told["hosts"]
        for check in host["checks"]  # type: ignore[attr-defined]
        if check["outcome"] == "finding" and check["cause"] is None
    }
