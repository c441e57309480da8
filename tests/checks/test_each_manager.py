"""What a check reports on hosts of every package manager."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.checks import run_all
from gpunode.model.facts import HostFacts
from gpunode.model.packages import PackageVersion
from gpunode.model.report import CheckOutcome, Finding
from tests.checks import hosts as h


def on(manager: str, host: HostFacts) -> HostFacts:
    return replace(host, packages=replace(host.packages, manager=manager))


def finding(id: str, host: HostFacts) -> Finding:
    outcome = run_all(host, None, load_catalog()).results[id].outcome
    assert isinstance(outcome, Finding), outcome
    return outcome


@pytest.mark.parametrize(
    ("manager", "typed"),
    [
        ("apt", "apt-get purge nvidia-docker2"),
        ("dnf", "dnf remove nvidia-docker2"),
        ("dnf5", "dnf remove nvidia-docker2"),
        ("yum", "yum remove nvidia-docker2"),
        ("zypper", "zypper remove nvidia-docker2"),
        ("tdnf", "tdnf remove nvidia-docker2"),
        ("pacman", "pacman -Rns nvidia-docker2"),
    ],
)
def test_an_old_package_is_removed_with_the_hosts_own_manager(manager: str, typed: str) -> None:
    host = on(manager, h.host(packages=h.packages(nvidia__docker2="2.13")))
    assert finding("ctk.legacy-packages", host).remedy.text.endswith(f"; then {typed}")


@pytest.mark.parametrize(
    ("manager", "asks"), [("apt", "dpkg -S"), ("dnf", "rpm -qf"), ("zypper", "rpm -qf"), ("pacman", "pacman -Qo")]
)
def test_the_owner_of_a_stale_library_is_asked_of_the_hosts_own_manager(manager: str, asks: str) -> None:
    stale = "/b/libcuda.so.550.163.01"
    libraries = {**h.READY.driver.libraries, "libcuda.so.1": ("/a/libcuda.so.595.91.07", stale)}
    assert finding("user.stale-libs", on(manager, h.driver(libraries=libraries))).remedy.text.startswith(
        f"{asks} {stale} "
    )


@pytest.mark.parametrize(
    ("manager", "kernel", "headers"),
    [
        ("dnf", "kernel-core", "kernel-devel-matched"),
        ("yum", "kernel", "kernel-devel"),
        ("zypper", "kernel-default", "kernel-default-devel"),
        ("zypper", "kernel-azure", "kernel-azure-devel"),
        ("tdnf", "kernel", "kernel-devel"),
        ("pacman", "linux", "linux-headers"),
        ("pacman", "linux-lts", "linux-lts-headers"),
    ],
)
def test_a_kernel_package_without_its_headers_package_is_found(manager: str, kernel: str, headers: str) -> None:
    def outcome(*names: str) -> CheckOutcome:
        installed = {name: PackageVersion("6.18-1") for name in ("nvidia-open-dkms", *names)}
        host = on(manager, h.host(packages=replace(h.packages(), installed=installed)))
        return run_all(host, None, load_catalog()).results["drv.headers-meta"].outcome

    found = outcome(kernel)
    assert isinstance(found, Finding), found
    assert found.summary == f"{kernel} is installed and {headers} is not"
    assert outcome(kernel, headers) is None
