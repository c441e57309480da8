"""A manager on a host where a bundle is unpacked: no command of it waits for a repository that no network reaches."""

from __future__ import annotations

import pytest

from gpunode.model.action import Run
from gpunode.packages.base import Part, Wanted
from gpunode.packages.registry import backend

PACKAGES = [Wanted("nvidia-open", "595.91.07")]
PARTS = (Part("gpunode-bundle-0", "file:///var/cache/gpunode/bundle/archive/0/"),)
ONLY = {"dnf": "--disablerepo=* --enablerepo=gpunode-*", "zypper": "--no-remote"}


def commands(name: str, *, alone: bool) -> dict[str, Run]:
    manager = backend(name).alone() if alone else backend(name)
    return {
        "refresh_all": manager.refresh_all(),
        "simulate": manager.simulate(PACKAGES, ("*nvidia*",)),
        "fetch": manager.fetch(PACKAGES),
        "install": manager.install(PACKAGES),
        "reinstall": manager.reinstall(PACKAGES),
        "remove": manager.remove(["nvidia-open"]),
        "erase": manager.erase(["nvidia-open"], "/var/lib/gpunode/backup/1/packages"),
    }


@pytest.mark.parametrize("name", ["dnf", "dnf5", "zypper"])
def test_every_command_that_reads_indexes_is_told_so_and_no_other_host_is(name: str) -> None:
    only = ONLY[name.removesuffix("5")]
    for alone in (True, False):
        for verb, run in commands(name, alone=alone).items():
            words = f"{' '.join(run.argv)}\n{run.stdin}".replace("'", "")
            assert (only in words) is alone, (name, verb, alone)
    for run in (*backend("dnf").alone().stream("nvidia-driver", "595-open"), backend("dnf").alone().hold(["x"])):
        assert ONLY["dnf"] in f"{' '.join(run.argv)}\n{run.stdin}"


@pytest.mark.parametrize("name", ["dnf", "zypper"])
def test_the_archive_of_a_bundle_checks_signatures_and_names_no_key(name: str) -> None:
    manager = backend(name)
    ((path, text),) = manager.bundle_files("a" * 64, PARTS, "").items()
    assert path == manager.bundle_file
    assert "[gpunode-bundle-0]\n" in text
    assert "baseurl=file:///var/cache/gpunode/bundle/archive/0/\n" in text
    assert "gpgcheck=1\n" in text
    assert "gpgkey" not in text
    assert ("enabled=0\n" in text) is (name == "dnf"), "its index names packages that the bundle has not"
    assert [one.id for one in manager.bundle_indexes(PARTS)] == ["gpunode-bundle-0"]


def test_apt_prefers_it_instead_and_other_managers_have_none() -> None:
    assert backend("apt").alone() is backend("apt")
    assert [name for name in ("yum", "tdnf", "pacman") if backend(name).bundle_file] == []
