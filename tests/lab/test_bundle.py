"""A bundle made by real apt where there is a network, and hosts without any route that are set up from it alone."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
from dataclasses import replace
from pathlib import Path

from gpunode.bundles.archive import read_bundle, write_bundle
from gpunode.model.bundle import HOME, BundledFile

from .host import Host, Result
from .lab import Lab
from .product_runs import expect, fingerprint_of_state
from .site import ROOT, site_path
from .test_driver_change import versions

ARCHIVE = (
    "--archive",
    "http://deb.lab/debian bookworm main",
    "--archive-keyring",
    "/usr/share/keyrings/lab-debian.asc",
)


def typed(host: Host, *words: str) -> Result:
    """On the host itself, behind sshd's back: its link is down."""
    return host.nsrun(shlex.join(("gpunode", *words)), timeout=600)


def made(lab: Lab, builder: Host, target: str, into: Path) -> Path:
    """A bundle that a host with a network makes, copied from it as on a stick."""
    name = f"{target.partition('/')[2]}.bundle"
    kernel = os.uname().release
    created = typed(
        builder, "bundle", "create", "--target", target, "--output", f"/root/{name}", "--kernel", kernel, *ARCHIVE,
        "--package", "linux-headers-amd64", "--status", "/var/lib/dpkg/status", "--trust-key", lab.repo_fingerprint,
    )  # fmt: skip
    expect(created, 0)
    assert f"for      {target} on x86_64" in created.stdout
    shutil.copyfile(builder.path(f"/root/{name}"), into / name)
    return into / name


def alone(lab: Lab, distribution: str, bundles: list[Path]) -> Host:
    """A host whose network namespace has no route at all, with gpunode and these files on it."""
    host = lab.host(distribution, gpu="h100", runtime="docker")
    host.install_gpunode(ROOT, site_path(ROOT / "pyproject.toml"))
    for bundle in bundles:
        shutil.copyfile(bundle, host.path(f"/root/{bundle.name}"))
    host.nsrun("ip link set host0 down", check=True)
    routes = host.nsrun("ip route; ip -6 route", check=True).stdout.splitlines()
    assert [route for route in routes if "docker0" not in route] == [], "docker's own bridge leads nowhere"
    return host


def forged(bundle: Path, into: Path) -> Path:
    """Another driver in place of the real one, and a manifest that agrees with it."""
    manifest, scratch = read_bundle(bundle).manifest, into / "forged"
    shutil.unpack_archive(bundle, scratch, "tar")
    path = next(one.path for one in manifest.packages if one.name == "nvidia-open")
    file = scratch / "gpunode-bundle" / path
    file.write_bytes(file.read_bytes()[:-1] + b"!")
    new = BundledFile(hashlib.sha256(file.read_bytes()).hexdigest(), manifest.files[path].size_bytes)
    with (into / "forged.bundle").open("wb") as out:
        write_bundle(replace(manifest, files={**manifest.files, path: new}), scratch / "gpunode-bundle", out)
    return into / "forged.bundle"


def test_a_host_without_any_route_is_set_up_changed_and_undone_from_files_alone(lab: Lab, tmp_path: Path) -> None:
    builder = lab.host("debian12")
    builder.install_gpunode(ROOT, site_path(ROOT / "pyproject.toml"))
    old, new = (made(lab, builder, f"debian-12/{branch}", tmp_path) for branch in (580, 595))
    difference = typed(builder, "bundle", "diff", "/root/580.bundle", "/root/595.bundle")
    assert "nvidia-open 580.178.04-1 -> 595.91.07-1" in expect(difference, 1).stdout

    torn, wrong = tmp_path / "torn.bundle", forged(new, tmp_path)
    data = new.read_bytes()
    torn.write_bytes(data[:-20_000] + bytes([data[-20_000] ^ 1]) + data[-19_999:])
    host = alone(lab, "debian12", [old, new, torn, wrong])
    setup = ("setup", "--yes", "--trust-key", lab.repo_fingerprint)

    refused = expect(typed(host, *setup, "--bundle", "/root/torn.bundle"), 2)
    assert "torn.bundle was changed after it was made" in refused.stderr
    stranger = expect(typed(host, *setup[:-2], "--bundle", "/root/595.bundle"), 1)
    assert lab.repo_fingerprint in (stranger.stdout + stranger.stderr).replace(" ", "")
    forgery = expect(typed(host, *setup, "--bundle", "/root/forged.bundle"), 1)
    assert re.search("[Hh]ash [Ss]um mismatch", forgery.stdout + forgery.stderr), forgery.stdout + forgery.stderr
    assert versions(host) == set()
    assert not host.exists(f"{HOME}/MANIFEST.json")
    assert not host.nsrun("ls /etc/apt/sources.list.d /etc/apt/preferences.d | grep gpunode").stdout

    expect(typed(host, *setup, "--bundle", "/root/580.bundle"), 0)
    assert versions(host) == {"580.178.04"}
    settled = fingerprint_of_state(host)
    expect(typed(host, *setup, "--bundle", "/root/580.bundle"), 0)
    assert fingerprint_of_state(host) == settled

    expect(typed(host, *setup, "--bundle", "/root/forged.bundle"), 1)
    assert versions(host) == {"580.178.04"}
    assert host.path(f"{HOME}/SHA256").read_text().strip() == read_bundle(old).sha256, "apt's sources name it still"
    read = host.nsrun(f"apt-get update 2>&1 | grep -F file:{HOME}").stdout  # the distribution's own is out of reach
    assert f"file:{HOME}/archive/0" in read
    assert not re.search(r"^(Err|Ign)", read, re.MULTILINE), read

    changed = typed(host, *setup, "--bundle", "/root/595.bundle")
    assert changed.returncode in (0, 5), changed.stdout + changed.stderr
    assert versions(host) == {"595.91.07"}
    assert not host.exists(f"{HOME}.old")

    expect(typed(host, "undo", "--yes", "--packages"), 0)
    assert versions(host) == set()
    assert not host.exists(HOME)
    assert not host.nsrun("ls /etc/apt/sources.list.d /etc/apt/preferences.d | grep gpunode").stdout

    other = alone(lab, "debian13", [new])
    elsewhere = expect(typed(other, *setup, "--bundle", "/root/595.bundle"), 4)
    assert "the bundle is for debian 12 on x86_64, and this is debian 13" in " ".join(elsewhere.stderr.split())
