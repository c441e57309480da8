from __future__ import annotations

import pytest

from gpunode.facts.packages import manager_of, parse_packages
from gpunode.facts.wire import Section, Sections, file_facts
from gpunode.packages.registry import BACKENDS

DNF4 = """
# Added lock on Sat Nov 21 16:41:12 2026
kmod-nvidia-open-dkms-3:595.91.07-1.*

# Added lock on Sat Nov 21 16:41:22 2026
nvidia-container-toolkit-base-0:1.20.0-1.*
!kernel-0:5.14.0-1.el9.*
"""
DNF5 = """version = "1.0"

[[packages]]
name = "nvidia-open"
comment = "Added by 'versionlock add' command on 2026-11-21 16:42:24"

[[packages.conditions]]
key = "evr"
comparator = "="
value = "3:595.58.03-1"
"""
ZYPP = """
type: package
match_type: glob
case_sensitive: on
solvable_name: nvidia-compute-utils-G06


type: patch
match_type: glob
case_sensitive: on
solvable_name: openSUSE-2026-1


type: package
match_type: glob
case_sensitive: on
solvable_name: libnvidia-container1
"""


@pytest.mark.parametrize(
    ("manager", "path", "text", "names"),
    [
        ("dnf", "/etc/dnf/plugins/versionlock.list", DNF4, {"kmod-nvidia-open-dkms", "nvidia-container-toolkit-base"}),
        (
            "yum",
            "/etc/yum/pluginconf.d/versionlock.list",
            "3:nvidia-driver-branch-535-535.183.06-1.el7.*\n",
            {"nvidia-driver-branch-535"},
        ),
        ("dnf5", "/etc/dnf/versionlock.toml", DNF5, {"nvidia-open"}),
        ("zypper", "/etc/zypp/locks", ZYPP, {"nvidia-compute-utils-G06", "libnvidia-container1"}),
        (
            "tdnf",
            "/etc/tdnf/locks.d/gpunode.conf",
            "nvidia-open\nnvidia-fabricmanager\n",
            {"nvidia-open", "nvidia-fabricmanager"},
        ),
        (
            "pacman",
            "/etc/pacman.d/gpunode-hold.conf",
            "# Written by gpunode\nIgnorePkg = nvidia-utils nvidia-open-dkms\n",
            {"nvidia-utils", "nvidia-open-dkms"},
        ),
        ("pacman", "/etc/pacman.d/gpunode-hold.conf", "# Written by gpunode\n", set()),
    ],
    ids=[
        "dnf 4 keeps versions, excludes are no holds",
        "yum puts the epoch first",
        "dnf5 keeps TOML",
        "zypper keeps blocks, patches are not packages",
        "tdnf keeps names",
        "pacman keeps one line",
        "pacman with none",
    ],
)
def test_holds(manager: str, path: str, text: str, names: set[str]) -> None:
    assert path in BACKENDS[manager].hold_files
    assert BACKENDS[manager].held("", {path: file_facts(path, text)}) == names


@pytest.mark.parametrize(
    ("tools", "manager"),
    [
        ("/usr/bin/apt-get /usr/bin/dpkg-query /usr/bin/rpm /usr/bin/dnf", "apt"),
        ("/usr/bin/dnf /usr/bin/dnf-3 /usr/bin/yum /usr/bin/dnf-3 /usr/bin/rpm", "dnf"),
        ("/usr/bin/dnf /usr/bin/dnf5 /usr/bin/rpm", "dnf5"),
        ("/usr/bin/dnf /usr/bin/yum /usr/bin/rpm", "dnf"),
        ("/usr/bin/yum /usr/bin/rpm", "yum"),
        ("/usr/bin/zypper /usr/bin/rpm", "zypper"),
        ("/usr/bin/zypper /usr/bin/dnf /usr/bin/rpm", "zypper"),
        ("/usr/bin/tdnf /usr/bin/dnf /usr/bin/dnf-3 /usr/bin/rpm", "tdnf"),
        ("/usr/bin/pacman", "pacman"),
        ("/usr/bin/dnf", None),
        ("", None),
    ],
    ids=[
        "a Debian with rpm tools is apt's",
        "dnf links to dnf-3 on EL",
        "dnf links to dnf5 on Fedora",
        "a recording that did not follow the link",
        "CentOS 7 has yum alone",
        "SUSE",
        "SUSE with dnf beside it",
        "Azure Linux with dnf beside it",
        "Arch",
        "dnf without rpm's database",
        "none",
    ],
)
def test_the_manager_of_a_host(tools: str, manager: str | None) -> None:
    assert manager_of("\n".join(tools.split())) == manager


def test_pacman_lists_names_and_versions() -> None:
    listing = "nvidia-open-dkms 595.91.07-1\nnvidia-utils 595.91.07-1\n"
    facts = parse_packages(Sections({"tools": Section("/usr/bin/pacman\n"), "pacman": Section(listing)}), {})
    assert {name: have.version for name, have in facts.installed.items()} == {
        "nvidia-open-dkms": "595.91.07-1",
        "nvidia-utils": "595.91.07-1",
    }
    assert all(have.configured for have in facts.installed.values())
