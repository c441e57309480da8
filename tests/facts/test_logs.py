"""A bundle's logs, from a fake root: only units and bytes that were asked for, only files that root alone writes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from gpunode.facts.collect import logs_script
from gpunode.facts.logs import UNITS, Log, parse_logs, units_of
from gpunode.facts.wire import Section, Sections, decode
from gpunode.model.facts import ServiceFacts
from tests.checks import hosts as h
from tests.facts.hosts import make_root, snapshot

JOURNALCTL = '#!/bin/sh\necho "asked $*"\n'
MANY = "#!/bin/sh\nyes 'a line of a log that never ends' | head -n 40000\necho last\n"
SAID = ("[1] NVRM: Xid (PCI:0000:41:00): 79", "[2] audit: user ann ran sudo", "[3] nvidia 0000:41: x")
DMESG = "#!/bin/sh\ncat <<'END'\n" + "\n".join(SAID) + "\nEND\n"


def logs_of(root: Path, *units: str) -> dict[str, Log]:
    done = subprocess.run(
        ["sh", "-s"],
        input=logs_script(units).encode(),
        capture_output=True,
        timeout=120,
        env={**os.environ, "GPUNODE_ROOT": str(root)},
        check=True,
    )
    assert done.stderr == b""
    return {log.name: log for log in parse_logs(decode(done.stdout))}


def test_each_unit_has_its_newest_lines_and_the_kernel_what_concerns_gpus(tmp_path: Path) -> None:
    root = make_root(tmp_path, {"journalctl": JOURNALCTL, "dmesg": DMESG})
    before = snapshot(root)
    found = logs_of(root, "docker.service", "kubelet.service")
    assert snapshot(root) == before
    assert found["units/docker.service.log"].text == "asked -u docker.service -n 1000 -o short-iso --no-pager -q\n"
    assert "kubelet.service" in found["units/kubelet.service.log"].text
    kernel = found["kernel.log"].text
    assert "Xid (PCI:0000:41:00): 79" in kernel
    assert "ann" not in kernel, "what others did is nobody's business"
    assert set(found) == {"units/docker.service.log", "units/kubelet.service.log", "kernel.log"}


def test_a_log_that_never_ends_is_cut_at_its_newest_bytes(tmp_path: Path) -> None:
    found = logs_of(make_root(tmp_path, {"journalctl": MANY, "dmesg": MANY}), "docker.service")
    text = found["units/docker.service.log"].text
    assert 40_000 < len(text) <= 49_152
    assert text.endswith("last\n")


def test_of_dkms_the_newest_logs_of_the_driver_are_read(tmp_path: Path) -> None:
    root = make_root(tmp_path, {"dmesg": DMESG})
    log = root / "var/lib/dkms/nvidia/595.71.05/build/make.log"
    log.parent.mkdir(parents=True)
    log.write_text("nv.c:1: error: too old\n")
    other = root / "var/lib/dkms/zfs/2.1/build/make.log"
    other.parent.mkdir(parents=True)
    other.write_text("zfs\n")
    found = logs_of(root)
    text = "# /var/lib/dkms/nvidia/595.71.05/build/make.log\nnv.c:1: error: too old\n"
    assert found["dkms/make-1.log"].text == text
    assert "dkms/make-2.log" not in found


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a directory to another user")
def test_a_log_that_another_user_may_write_is_not_read(tmp_path: Path) -> None:
    root = make_root(tmp_path, {"dmesg": DMESG})
    log = root / "var/lib/dkms/nvidia/1/build/make.log"
    log.parent.mkdir(parents=True)
    log.symlink_to("/etc/shadow")
    os.chown(log.parent, 4242, 4242)
    found = logs_of(root)["dkms/make-1.log"]
    assert (found.text, bool(found.missing)) == ("", True)


def test_without_journalctl_it_is_said(tmp_path: Path) -> None:
    found = logs_of(make_root(tmp_path, {"dmesg": DMESG}), "docker.service")
    assert found["units/docker.service.log"].missing == "the host has no journalctl"


def test_only_units_that_a_host_has_are_asked_for() -> None:
    there = {"docker.service": ServiceFacts("loaded"), "kubelet.service": ServiceFacts("not-found"),
             "evil;id.service": ServiceFacts("loaded")}  # fmt: skip
    assert units_of(h.host(services=there)) == ("docker.service",)
    assert "evil" not in logs_script(UNITS)


def test_what_an_answer_holds_besides_is_left() -> None:
    sections = Sections({"unit:evil": Section("x"), "make:9": Section("x"), "os": Section("x")})
    assert list(parse_logs(sections)) == []
