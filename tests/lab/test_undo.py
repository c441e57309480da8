"""Undo on real hosts: after it, the host is as it was before setup, and what others did in between is still there."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from .host import Host
from .lab import Lab
from .product_runs import Controller, expect, fingerprint_of_state
from .site import ROOT, site_path

# What changes by itself: caches that package managers and the boot write.
BY_ITSELF = r"/etc/(ld\.so\.cache|machine-id|resolv\.conf|mtab|adjtime|\.pwd\.lock)$"
JOURNAL = "/var/lib/gpunode/journal.jsonl"
PACKAGES = "dpkg-query -W -f '${Package} ${Version} ${db:Status-Abbrev}\\n'; apt-mark showauto"
NOUVEAU = "/etc/modprobe.d/gpunode-nouveau.conf"


def tree(host: Host) -> dict[str, str]:
    """Every file, directory and link below /etc: mode, owner, and hash or target."""
    find = "find /etc -printf '%y %m %U:%G %p %l\\n'; find /etc -type f -exec sha256sum {} +"
    found: dict[str, str] = {}
    for line in host.nsrun(find, check=True).stdout.splitlines():
        words = line.split()
        path = words[3] if len(words) > 2 else words[1]
        found[path] = found.get(path, "") + line
    ignored = host.nsrun(f"find /etc | grep -E '{BY_ITSELF}'").stdout.split()
    return {path: line for path, line in found.items() if path not in ignored}


def difference(before: dict[str, str], after: dict[str, str]) -> list[str]:
    return [f"{before.get(p)} -> {after.get(p)}" for p in sorted({*before, *after}) if before.get(p) != after.get(p)]


def default_runtime(host: Host, me: Controller, engine: str) -> str:
    shown = expect(me.gpunode(host, "detect", "--json"), 0)
    facts = json.loads(shown.stdout)["hosts"][0]["facts"]
    return str(next(r["effective_default"] for r in facts["runtimes"] if r["name"] == engine))


def ready(lab: Lab, home: Path, distribution: str, engine: str, how: str) -> tuple[Host, Controller]:
    host = lab.host(distribution, gpu="h100", runtime=engine)
    if how == "local":
        host.install_gpunode(ROOT, site_path(ROOT / "pyproject.toml"))
    host.nsrun("systemctl is-system-running --wait")  # containerd makes directories of its own when it starts
    return host, Controller(how, home)


def changes_nothing(me: Controller, host: Host, *args: str) -> str:
    """What the command prints; files, times and processes are the same afterwards."""
    before = fingerprint_of_state(host)
    shown = expect(me.gpunode(host, *args), 0).stdout
    assert fingerprint_of_state(host) == before
    return shown


def test_all_of_a_setup_goes_and_the_whole_of_etc_is_as_it_was(lab: Lab, tmp_path: Path) -> None:
    host, me = ready(lab, tmp_path / "home", "debian12", "docker", "local")
    host.nsrun("mkdir -p /etc/docker && chmod 711 /etc/docker", check=True)
    host.write("/etc/docker/daemon.json", '{ "debug":true }', mode=0o600)
    before, packages = tree(host), host.nsrun(PACKAGES, check=True).stdout
    expect(me.gpunode(host, "setup", "--yes", "--trust-key", lab.repo_fingerprint), 0)
    assert default_runtime(host, me, "docker") == "nvidia"

    shown = changes_nothing(me, host, "undo", "--dry-run", "--packages")
    assert "undo.docker.default" in shown

    expect(me.gpunode(host, "undo", "--yes"), 0)
    assert default_runtime(host, me, "docker") == "runc"
    assert host.read("/etc/docker/daemon.json") == '{ "debug":true }'
    assert host.nsrun("command -v nvidia-container-runtime").returncode == 0, "packages are not asked about"
    assert "nothing to undo" in changes_nothing(me, host, "undo", "--yes")

    expect(me.gpunode(host, "undo", "--yes", "--packages"), 0)
    assert difference(before, tree(host)) == []
    assert host.nsrun(PACKAGES, check=True).stdout == packages
    assert "nothing to undo" in changes_nothing(me, host, "undo", "--yes", "--packages")


def test_what_others_wrote_since_is_still_there(lab: Lab, tmp_path: Path) -> None:
    host, me = ready(lab, tmp_path / "home", "debian13", "containerd", "ssh")
    config = "/etc/containerd/config.toml"
    before = host.read(config)
    expect(me.gpunode(host, "setup", "--yes", "--trust-key", lab.repo_fingerprint), 0)
    host.write(config, "# edited by hand\n" + host.read(config))
    host.write(NOUVEAU, host.read(NOUVEAU) + "blacklist mine\n")

    told = expect(me.gpunode(host, "undo", "--yes"), 1)
    assert f"rm {NOUVEAU}" in " ".join(told.stdout.split())
    assert host.read(NOUVEAU).endswith("blacklist mine\n")
    assert host.read(config).startswith("# edited by hand\n")
    assert "nvidia" not in host.read(config)
    assert host.read(config).endswith(before.splitlines()[-1] + "\n")
    assert default_runtime(host, me, "containerd") == "runc"
    assert "nothing to undo" in changes_nothing(me, host, "undo", "--yes")

    # A package of theirs that needs one of ours; a configuration file of ours that they edited.
    theirs, edited = "/root/theirs", "/etc/nvidia-container-runtime/config.toml"
    control = "Package: theirs\nVersion: 1\nArchitecture: all\nMaintainer: x\nDescription: x\nDepends: nvidia-open\n"
    host.write(f"{theirs}/DEBIAN/control", control)
    host.nsrun(f"dpkg-deb -b {theirs} /root/theirs.deb && dpkg -i /root/theirs.deb", check=True)
    host.write(edited, host.read(edited) + "# mine\n")
    refused = expect(me.gpunode(host, "undo", "--yes", "--packages"), 1)
    assert "these packages need what would be removed" in " ".join((refused.stdout + refused.stderr).split())
    assert "nvidia-open" in host.nsrun("apt-mark showhold").stdout.split()

    host.nsrun("dpkg -P theirs", check=True)
    expect(me.gpunode(host, "undo", "--yes", "--packages"), 0)
    assert "ii" not in host.nsrun("dpkg-query -W -f '${db:Status-Abbrev}' nvidia-open libcuda1").stdout
    assert host.read(edited).endswith("# mine\n")
    assert not host.exists("/etc/apt/sources.list.d/gpunode-cuda.sources")


def test_an_undo_that_was_killed_goes_on(lab: Lab, tmp_path: Path) -> None:
    """With containerd 2 there is a drop-in and a directory for it, both of them gpunode's."""
    host, me = ready(lab, tmp_path / "home", "debian-sid", "containerd", "ssh")
    before = tree(host)
    setup = ("setup", "--yes", "--only", "toolkit,runtime", "--trust-key", lab.repo_fingerprint)
    expect(me.gpunode(host, *setup), 0)
    assert default_runtime(host, me, "containerd") == "nvidia"

    killed = subprocess.Popen(
        (sys.executable, "-m", "gpunode", "undo", "--yes", "--ssh", host.name),
        env=me.env(host),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until(lambda: '"kind": "command"' in host.read(JOURNAL).partition('"undo": {"runs"')[2])
    killed.kill()
    killed.wait()
    host.nsrun("pkill -KILL -f '^sshd(-session)?: root'")

    went_on = expect(me.gpunode(host, "undo", "--yes", "--packages", "-v"), 0)
    assert default_runtime(host, me, "containerd") == "runc", went_on.stderr
    assert difference(before, tree(host)) == []


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end, "it did not come to that within a minute"
        time.sleep(0.02)
