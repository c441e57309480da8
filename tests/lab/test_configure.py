"""`gpunode runtime configure` alone, on files that the packages brought; then the real daemons are asked."""

from __future__ import annotations

import json

import pytest

from .lab import Lab
from .product_runs import expect
from .site import ROOT, site_path


@pytest.mark.parametrize("distribution", ["debian12", "debian13", "debian-sid"])
def test_the_daemons_run_what_was_written_without_asking_them(lab: Lab, distribution: str) -> None:
    host = lab.host(distribution, runtime="docker", files={"/etc/docker/daemon.json": '{\n\t"debug": false\n}\n'})
    host.write("/usr/bin/nvidia-container-runtime", '#!/bin/sh\nexec runc "$@"\n', 0o755)
    host.install_gpunode(ROOT, site_path(ROOT / "pyproject.toml"))
    before = host.read("/etc/containerd/config.toml")

    for name in ("docker", "containerd"):
        assert expect(host.run(f"gpunode runtime configure {name}"), 0).stdout.startswith("changed ")
        assert expect(host.run(f"gpunode runtime configure {name}"), 0).stdout.startswith("unchanged ")
    kept = iter(host.read("/etc/containerd/config.toml").splitlines())
    assert all(line in kept for line in before.splitlines())
    version = "containerd --version | grep -o '[0-9]*\\.[0-9]*\\.[0-9]*' | head -n 1"
    told = host.run(f"gpunode runtime configure containerd --daemon-version $({version})")
    assert expect(told, 0).stdout.startswith("unchanged ")

    host.run("systemctl reload docker && systemctl restart containerd", check=True)
    shown = json.loads(expect(host.run("gpunode runtime show --json"), 0).stdout)
    engines = {e["name"]: e for e in shown["hosts"][0]["runtimes"]}
    assert {n: e["effective_default"] for n, e in engines.items()} == {"docker": "nvidia", "containerd": "nvidia"}
    for engine in engines.values():
        (default,) = [s for s in engine["settings"] if s["setting"] == "default runtime"]
        assert "nvidia" in host.read(default["path"]).splitlines()[default["line"] - 1]


def test_anybody_may_write_a_file_of_theirs_and_nobody_elses(lab: Lab) -> None:
    host = lab.host("debian12", runtime="docker")
    host.install_gpunode(ROOT, site_path(ROOT / "pyproject.toml"))
    words = "gpunode runtime configure docker --config ~/.config/docker/daemon.json --backup"
    for _ in range(2):
        expect(host.run(words, user="admin"), 0)
    path = "/home/admin/.config/docker/daemon.json"
    assert host.nsrun(f"stat -c '%U %a' {path}").stdout == "admin 644\n"
    host.write("/etc/docker/daemon.json", "{}")
    before = host.nsrun("ls -A /etc/docker").stdout
    refused = expect(host.run("gpunode runtime configure docker", user="admin"), 1)
    assert "/etc/docker/daemon.json cannot be written" in " ".join(refused.stderr.split())
    assert host.read("/etc/docker/daemon.json") == "{}"
    assert host.nsrun("ls -A /etc/docker").stdout == before
