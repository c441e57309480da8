"""MIG on a real host with stub GPUs: laid out once, again after every boot, and never below a program."""

from __future__ import annotations

from pathlib import Path

from .host import Host
from .lab import Lab
from .product_runs import Controller, expect


def instances(host: Host) -> list[str]:
    listed = host.nsrun("nvidia-smi -L").stdout
    return [line.split()[1] for line in listed.splitlines() if line.startswith("  MIG")]


def test_the_layout_holds_over_a_reboot_and_nothing_changes_below_a_program(lab: Lab, tmp_path: Path) -> None:
    host = lab.host("debian12", gpu="h100", runtime="docker")
    me = Controller("ssh", tmp_path)
    words = ("setup", "--yes", "--trust-key", lab.repo_fingerprint)
    expect(me.gpunode(host, *words, "--mig", "all=3g.40gb:2"), 0)
    assert instances(host) == ["3g.40gb"] * 2

    second = expect(me.gpunode(host, *words, "--mig", "all=3g.40gb:2"), 0).stdout
    assert "no changes" in second

    host.reboot()
    assert instances(host) == ["3g.40gb"] * 2, "the unit applies the layout at the boot"

    # A device that no driver answers for cannot be opened; a file of its kind of name can.
    host.nsrun(": >/dev/nvidia-held")
    with_work = host.nsrun("sleep 300 3</dev/nvidia-held >/dev/null 2>&1 & echo $!").stdout.strip()
    refused = expect(me.gpunode(host, *words, "--mig", "all=1g.10gb:7"), 4)
    assert f"{with_work} sleep" in refused.stdout + refused.stderr
    assert instances(host) == ["3g.40gb"] * 2

    host.nsrun(f"kill {with_work}")
    expect(me.gpunode(host, *words, "--mig", "all=1g.10gb:7"), 0)
    assert instances(host) == ["1g.10gb"] * 7

    expect(me.gpunode(host, *words, "--mig", "all=off"), 0)
    assert instances(host) == []


def test_a_gpu_in_use_after_all_leaves_everything_as_it_was(lab: Lab, tmp_path: Path) -> None:
    host = lab.host("debian13", gpu="h100", runtime=None)
    me = Controller("ssh", tmp_path)
    words = ("setup", "--yes", "--trust-key", lab.repo_fingerprint)
    expect(me.gpunode(host, *words), 0)
    host.fault("in_use")

    said = expect(me.gpunode(host, *words, "--mig", "all=1g.10gb:7"), 1).stdout

    assert "cannot be changed while it is in use" in said
    assert not host.exists("/etc/gpunode/mig.conf")
    assert not host.exists("/etc/systemd/system/gpunode-mig.service")
    assert host.nsrun("systemctl is-enabled gpunode-mig.service", check=False).returncode != 0


def test_undo_takes_the_unit_and_its_link_away(lab: Lab, tmp_path: Path) -> None:
    host = lab.host("debian13", gpu="h100", runtime=None)
    me = Controller("ssh", tmp_path)
    words = ("setup", "--yes", "--trust-key", lab.repo_fingerprint)
    expect(me.gpunode(host, *words, "--mig", "all=3g.40gb:2"), 0)

    told = expect(me.gpunode(host, "undo", "--yes"), 0).stderr

    assert "gpunode setup --mig all=off" in told, "what undo cannot take back"
    left = "find /etc/systemd /etc/gpunode -name '*mig*' 2>/dev/null"
    assert host.nsrun(left, check=False).stdout == ""
