"""Each tool's own words in, values out."""

from __future__ import annotations

import pytest

from gpunode.facts.driver import parse_dkms
from gpunode.facts.recordings import mask_secrets
from gpunode.facts.runtimes import effective_cri
from gpunode.facts.security import parse_security
from gpunode.facts.smi import parse_smi
from gpunode.facts.toolkit import cdi_devices
from gpunode.packages.listings import parse_dpkg
from gpunode.packages.registry import BACKENDS


@pytest.mark.parametrize(
    ("line", "want"),
    [
        (
            "nvidia/580.95.05, 6.8.0-52-generic, x86_64: installed",
            ("nvidia", "580.95.05", "6.8.0-52-generic", "installed"),
        ),
        (
            "nvidia, 535.261.03, 6.1.0-30-amd64, x86_64: installed",
            ("nvidia", "535.261.03", "6.1.0-30-amd64", "installed"),
        ),
        ("nvidia/580.95.05: added", ("nvidia", "580.95.05", None, "added")),
    ],
    ids=["dkms 3 parts name and version with a slash", "dkms 2 with a comma", "added has no kernel"],
)
def test_dkms(line: str, want: tuple[str, ...]) -> None:
    row = parse_dkms(line)[0]
    assert (row.module, row.version, row.kernel, row.state) == want


def test_a_removed_package_is_not_installed_and_a_half_configured_one_is_not_configured() -> None:
    found = parse_dpkg("docker.io\t26.1.5\tamd64\trc \nnvidia-open\t580\tamd64\tiF \n")
    assert set(found) == {"nvidia-open"}
    assert not found["nvidia-open"].configured


def test_what_rpm_lists_in_two_versions_is_known_unless_it_is_meant_so() -> None:
    listing = "".join(
        f"{name}\t{version}\t{architecture}\n"
        for name, architecture in (
            ("nvidia-driver-cuda", "x86_64"),
            ("kernel-core", "x86_64"),
            ("kmod-nvidia-5.14", "x86_64"),
        )
        for version in ("3:580.178.04-1.el9", "3:595.91.07-1.el9")
    )
    both = "glibc\t2.34\tx86_64\nglibc\t2.34\ti686\nnvidia-kmp-default\t1\tx86_64\nnvidia-kmp-default\t2\tx86_64\n"
    for name in ("dnf", "dnf5", "yum", "tdnf", "zypper"):
        doubled = BACKENDS[name].doubled(listing + both)
        assert doubled == {"nvidia-driver-cuda": ("3:580.178.04-1.el9", "3:595.91.07-1.el9")}


def test_unattended_upgrades_switched_on_without_the_package_upgrade_nothing() -> None:
    assert not BACKENDS["apt"].auto_upgrades('APT::Periodic::Unattended-Upgrade "1";\n', {}, {})


def test_lockdown_is_the_word_in_brackets() -> None:
    facts = parse_security("uefi=1\nsecure_boot=1\nlockdown=none [integrity] confidentiality\nselinux=0\n")
    assert (facts.secure_boot, facts.lockdown, facts.selinux) == (True, "integrity", "Permissive")


@pytest.mark.parametrize("text", ["Failed to initialize NVML: Driver/library version mismatch\n"])
def test_a_failed_nvidia_smi_keeps_its_words(text: str) -> None:
    assert parse_smi(text, 18).message == text.strip()


def test_a_handler_without_systemd_cgroup_is_on_cgroupfs() -> None:
    runtimes = {"runc": {"options": {"SystemdCgroup": True}}, "nvidia": {"options": {}}}
    facts = effective_cri({"containerd": {"defaultRuntimeName": "nvidia", "runtimes": runtimes}, "enableCDI": True})
    assert (facts["default"], facts["systemd_cgroup"]) == ("nvidia", {"runc": True, "nvidia": False})


def test_cdi_names_are_qualified_by_their_kind() -> None:
    text = (
        'kind: nvidia.com/gpu\ndevices:\n- name: "0"\n  containerEdits:\n    deviceNodes:\n    - path: /dev/nvidia0\n'
    )
    assert cdi_devices(text) == ("nvidia.com/gpu=0",)


@pytest.mark.parametrize(
    "text",
    [
        'password = "hunter2"',
        '{"auth": "hunter2"}',
        "http://u:hunter2@p:3128",
        "arg=--token\narg=hunter2",
        "--token=hunter2",
    ],
)
def test_secrets_are_masked(text: str) -> None:
    assert "hunter2" not in mask_secrets(text)


@pytest.mark.parametrize(("says", "known"), [("0 0", False), ("1 1", True), ("", None), ("x", None)])
def test_whether_containers_may_use_devices_is_what_the_policy_has_now(says: str, known: bool | None) -> None:
    assert parse_security(f"selinux=1\nselinux_devices={says}\n").containers_may is known
