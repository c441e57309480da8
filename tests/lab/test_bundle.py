"""A bundle made by real apt where there is a network, and hosts without any route that are set up from it alone."""

from __future__ import annotations

import re
from pathlib import Path

from gpunode.bundles.archive import read_bundle
from gpunode.model.bundle import HOME, Manifest

from .bundles import alone, altered, another_driver, builder_of, leave_only, made, torn, typed
from .lab import Lab
from .network import GATEWAY
from .product_runs import Controller, expect, fingerprint_of_state
from .repositories import publish
from .test_driver_change import versions

ARCHIVE = (
    "--archive",
    "http://deb.lab/debian bookworm main",
    "--archive-keyring",
    "/usr/share/keyrings/lab-debian.asc",
)


def options(lab: Lab) -> tuple[str, ...]:
    own = ("--package", "linux-headers-amd64", "--status", "/var/lib/dpkg/status")
    return (*ARCHIVE, *own, "--trust-key", lab.repo_fingerprint)


def test_a_host_without_any_route_is_set_up_changed_and_undone_from_files_alone(lab: Lab, tmp_path: Path) -> None:
    builder = builder_of(lab, "debian12")
    old, new = (
        made(builder, f"debian-12/{branch}", f"{branch}.bundle", tmp_path, options(lab)) for branch in (580, 595)
    )
    difference = typed(builder, "bundle", "diff", "/root/580.bundle", "/root/595.bundle")
    assert "nvidia-open 580.178.04-1 -> 595.91.07-1" in expect(difference, 1).stdout

    broken, wrong = torn(new, tmp_path), altered(new, "forged", tmp_path, another_driver("nvidia-open"))
    host = alone(lab, "debian12", "docker", [old, new, broken, wrong])
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

    other = alone(lab, "debian13", "docker", [new])
    elsewhere = expect(typed(other, *setup, "--bundle", "/root/595.bundle"), 4)
    assert "the bundle is for debian 12 on x86_64, and this is debian 13" in " ".join(elsewhere.stderr.split())


def test_an_index_whose_date_has_passed_is_refused_by_name_and_nothing_is_touched(lab: Lab, tmp_path: Path) -> None:
    """The repository's own signer wrote the date: all hashes and signatures are right, and only the day is not."""
    good = made(builder_of(lab, "debian12"), "debian-12/595", "595.bundle", tmp_path, options(lab))

    def a_week_ago(manifest: Manifest, tree: Path) -> None:
        cuda = next(one for one in manifest.repositories if one.kind == "cuda")
        publish(tree / cuda.path, lab.trust.vendor, "NVIDIA", valid_days=-7)

    expired = altered(good, "expired", tmp_path, a_week_ago)
    host = alone(lab, "debian12", "docker", [expired])
    before = fingerprint_of_state(host)
    setup = ("setup", "--yes", "--trust-key", lab.repo_fingerprint, "--bundle", "/root/expired.bundle")
    refused = " ".join(expect(typed(host, *setup), 1).stderr.split())
    path = "vendor/compute/cuda/repos/debian12/x86_64/InRelease"
    assert f"expired.bundle is too old: its signed index {path} was valid until" in refused
    assert fingerprint_of_state(host) == before
    assert not host.exists(HOME)

    # And where gpunode's own look is left out, apt finds the same.
    lines = f"deb [signed-by=/root/vendor.asc] file:/root/gpunode-bundle/{path.rpartition('/')[0]}/ /"
    host.write("/root/vendor.asc", lab.trust.vendor.armored())
    host.write("/root/expired.list", f"{lines}\n")
    only = "-o Dir::Etc::sourcelist=/root/expired.list -o Dir::Etc::sourceparts=- -o APT::Sandbox::User=root"
    told = host.nsrun(f"tar -C /root -xf /root/expired.bundle && apt-get update --error-on=any {only} 2>&1")
    assert (told.returncode, "is expired" in told.stdout) == (100, True), told.stdout


def test_a_bundle_goes_over_ssh_to_a_host_whose_only_route_leads_here(lab: Lab, tmp_path: Path) -> None:
    bundle = made(builder_of(lab, "debian12"), "debian-12/595", "595.bundle", tmp_path, options(lab))
    host = lab.host("debian12", gpu="h100", runtime="docker")
    leave_only(host, GATEWAY)
    assert host.nsrun(f"curl --silent --max-time 20 http://{GATEWAY}/").returncode == 7, "the archive is out of reach"
    me = Controller("ssh", tmp_path / "home")
    setup = ("setup", "--yes", "--trust-key", lab.repo_fingerprint, "--bundle", str(bundle))

    expect(me.gpunode(host, *setup, timeout=900), 0)
    assert versions(host) == {"595.91.07"}
    assert host.path(f"{HOME}/SHA256").read_text().strip() == read_bundle(bundle).sha256
    again = expect(me.gpunode(host, *setup, timeout=900), 0)
    assert "no changes" in again.stdout

    expect(me.gpunode(host, "undo", "--yes", "--packages", timeout=900), 0)
    assert versions(host) == set()
    assert not host.exists(HOME)
