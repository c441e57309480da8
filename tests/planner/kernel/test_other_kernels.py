"""Kernels that are not the distribution's own: their headers have other names, and another compiler built some."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.facts.wire import file_facts
from gpunode.model.action import PutFile
from gpunode.model.facts import HostFacts, KernelTree
from gpunode.model.plan import Step
from gpunode.model.spec import Spec
from gpunode.packages.dnf import Dnf
from gpunode.planner.kernel.setup import follower, headers_step
from gpunode.planner.kernel.toolset import toolset_step
from gpunode.planner.site import survey
from tests.planner.builders import H100, host, kernel, packages

CATALOG = load_catalog()
UEK8 = "6.12.0-100.28.2.2.el9uek.x86_64"


def running(os: str, release: str) -> HostFacts:
    trees = (KernelTree(release, True, False, None),)
    return host(H100, os=os, kernel=replace(kernel(), release=release, trees=trees, next_boot=release))


@pytest.mark.parametrize(
    ("os", "release", "wanted"),
    [
        ("oracle-9", UEK8, f"kernel-uek-devel-{UEK8}, kernel-headers"),
        (
            "oracle-9",
            "5.14.0-570.el9.x86_64",
            "kernel-devel-5.14.0-570.el9.x86_64, kernel-devel-matched, kernel-headers",
        ),
        (
            "rocky-9",
            "5.14.0-570.el9.aarch64+64k",
            "kernel-64k-devel-5.14.0-570.el9.aarch64, kernel-64k-devel-matched, kernel-headers",
        ),
        ("debian-12", "6.8.12-9-pve", "proxmox-headers-6.8.12-9-pve"),
        ("debian-13", "6.17.2-1-pve", "proxmox-headers-6.17.2-1-pve"),
    ],
    ids=["Oracle's UEK", "Red Hat's kernel on Oracle Linux", "64k pages", "Proxmox VE 8", "Proxmox VE 9"],
)
def test_the_headers_of_a_kernel_are_called_as_its_vendor_calls_them(os: str, release: str, wanted: str) -> None:
    step = headers_step(survey(running(os, release), Spec(), CATALOG))
    assert isinstance(step, Step)
    assert step.title == f"install {wanted}"


@pytest.mark.parametrize(
    ("os", "release", "asked"),
    [
        ("oracle-9", UEK8, True),
        ("oracle-9", "5.14.0-570.el9.x86_64", False),
        ("oracle-10", "6.12.0-100.28.2.el10uek.x86_64", False),
    ],
    ids=["UEK 8 by gcc 14 where 11 is the default", "Red Hat's kernel", "UEK 8 where 14 is the default"],
)
def test_dkms_is_told_of_the_toolset_that_built_the_kernel_once(os: str, release: str, asked: bool) -> None:
    facts = running(os, release)
    step = toolset_step(survey(facts, Spec(), CATALOG))
    assert (step is not None) is asked
    if step is not None:
        put = {a.path: file_facts(a.path, a.text) for a in step.actions if isinstance(a, PutFile)}
        assert toolset_step(survey(replace(facts, files={**facts.files, **put}), Spec(), CATALOG)) is None


@pytest.mark.parametrize(
    ("installed", "pair"),
    [
        ({"kernel-core", "kernel-uek-core"}, ("kernel-uek-core", "kernel-uek-devel")),
        ({"kernel-64k-core"}, ("kernel-64k-core", "kernel-64k-devel-matched")),
    ],
    ids=["Oracle's UEK beside Red Hat's", "64k pages"],
)
def test_what_follows_the_kernel_is_asked_of_the_kernel_that_is_the_default(
    installed: set[str], pair: tuple[str, str]
) -> None:
    assert Dnf().kernel_headers(installed) == (pair,)


def test_proxmox_headers_follow_proxmox_kernels() -> None:
    facts = running("debian-12", "6.8.12-9-pve")
    for installed, follows in (({"proxmox-default-kernel": "1.1.0"}, "proxmox-default-headers"), ({}, None)):
        there = replace(facts, packages=packages(installed))
        assert follower(survey(there, Spec(), CATALOG)) == follows
