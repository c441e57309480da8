"""What a bundle for a target holds, and targets that none can be made for."""

from __future__ import annotations

from typing import Any

import pytest

from gpunode.bundles.contents import Contents, contents_of, parse_archive, parse_target
from gpunode.catalog.load import load_catalog
from gpunode.errors import UnsupportedHost, UsageError
from gpunode.model.bundle import Target

LATEST = load_catalog().toolkit.latest


def contents(target: str = "debian-12/595", machine: str = "x86_64", **changes: Any) -> Contents:
    wanted: dict[str, Any] = {
        "flavour": "open", "toolkit": None, "kernels": [], "more": [], "mirror": None, "trusted": [], "archives": [],
    }  # fmt: skip
    return contents_of(parse_target(target, machine), load_catalog(), **(wanted | changes))


def test_a_branch_has_its_pin_and_the_toolkit_beside_it() -> None:
    names = contents().names
    assert {"nvidia-open", "nvidia-driver-pinning-595", "gnupg"} <= set(names)
    assert f"nvidia-container-toolkit={LATEST}-1" in names, "the one that setup names on the host"
    assert contents().driver == "595.*"


def test_a_version_has_its_own_pin_and_a_lock_its_toolkit() -> None:
    found = contents("debian-12/595.91.07", toolkit="1.20.0", kernels=["6.1.0-41-amd64"], more=["nvlsm"])
    assert "nvidia-driver-pinning-595.91.07" in found.names
    assert "nvidia-container-toolkit=1.20.0-1" in found.names
    assert {"linux-headers-6.1.0-41-amd64", "nvlsm"} <= set(found.names)
    assert found.driver == "595.91.07*"


def test_it_is_a_mirror_at_the_vendors_own_paths_with_the_pinned_keys() -> None:
    cuda, toolkit = contents().origins
    assert cuda.path == "vendor/compute/cuda/repos/debian12/x86_64"
    assert cuda.key_path == "vendor/compute/cuda/repos/debian12/x86_64/3bf863cc.pub"
    assert cuda.key_pins == ("EB693B3035CD5710E231E123A4B469963BF863CC",)
    assert toolkit.path == "vendor/libnvidia-container/stable/deb/amd64"
    assert toolkit.key_path == "vendor/libnvidia-container/gpgkey"
    assert toolkit.url == "https://nvidia.github.io/libnvidia-container/stable/deb/amd64/"
    mirrored = contents(mirror="file:///srv/nvidia").origins[0]
    assert mirrored.url == "file:///srv/nvidia/compute/cuda/repos/debian12/x86_64/"
    assert mirrored.path == cuda.path


def test_another_machine_has_other_directories() -> None:
    cuda, toolkit = contents("ubuntu-24.04/595", "aarch64").origins
    assert cuda.path.startswith("vendor/compute/cuda/repos/ubuntu2404/")
    assert "x86_64" not in cuda.path
    assert toolkit.path.endswith("/arm64")


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("amzn-2/580", "a bundle for Amazon Linux 2 cannot be made"),
        ("azurelinux-3.0/595", "a bundle for Azure Linux 3 cannot be made"),
        ("sles-15.6/595.91.07", "has the newest driver of a branch, and 595.91.07 is a version"),
        ("debian-7/595", "debian 7 is not a distribution gpunode installs drivers on"),
        ("debian-11/595", "has no open driver 595 for Debian 11"),
        ("debian-12/390", "has no open driver 390 for Debian 12"),
    ],
)
def test_a_target_without_packages_is_refused(target: str, said: str) -> None:
    with pytest.raises(UnsupportedHost, match=said):
        contents(target)


@pytest.mark.parametrize(
    "text", ["debian", "debian-12", "debian-12/", "debian-12/59", "debian/595", "-12/595", "a b-1/595"]
)
def test_a_target_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a target"):
        parse_target(text, "x86_64")
    assert parse_target("ubuntu-24.04/595", "x86_64") == Target("ubuntu", "24.04", "x86_64", "595")


@pytest.mark.parametrize(
    "text",
    [
        "", "http://deb", "http://deb bookworm", "deb http://deb bookworm main", "http://u:p@deb/ bookworm main",
        "http://deb/ book;worm main", "http://deb/?x bookworm main", "cdrom:// bookworm main",
        "[trusted=yes] http://d x m",
    ],
)  # fmt: skip
def test_an_archive_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not of the right form"):
        parse_archive(text, 0, "/k")
    archive = parse_archive("http://mirror.example.org/debian bookworm main contrib", 1, "/k")
    assert (archive.url, archive.suite, archive.components, archive.path, archive.keyring) == (
        "http://mirror.example.org/debian/", "bookworm", ("main", "contrib"), "archive/1", "/k",
    )  # fmt: skip


def test_what_chooses_a_branch_on_a_host_chooses_it_in_a_bundle() -> None:
    el9, el10, suse = contents("rocky-9/595"), contents("rocky-10/595", trusted=["A" * 40]), contents("sles-15.6/595")
    assert (el9.module, el9.lock, el9.lead) == ("nvidia-driver:595-open", "", "")
    assert contents("rocky-9/595", flavour="proprietary").module == "nvidia-driver:595-dkms"
    assert (el10.module, el10.lock) == ("", "595.")
    assert suse.lead == "nvidia-open-driver-G07-signed-cuda-kmp-default"
    assert "nvidia-compute-utils-G07" in suse.follow
    assert contents("sles-15.6/595", kernels=["6.4.0-150600.21-azure"]).lead.endswith("-kmp-azure")
    assert "nvidia-open" in el9.names
    assert contents("rocky-9/595.91.07").names.count("nvidia-open-595.91.07") == 1
    assert f"nvidia-container-toolkit-{LATEST}-1" in el9.names
    assert "python3-dnf-plugin-versionlock" in el9.names, "setup pins with it"


def test_rpm_repositories_lie_at_the_vendors_own_paths_too() -> None:
    cuda, toolkit = contents("rocky-9/595").origins
    assert (cuda.path, cuda.suite) == ("vendor/compute/cuda/repos/rhel9/x86_64", "repodata")
    assert toolkit.path == "vendor/libnvidia-container/stable/rpm/x86_64"
    assert toolkit.url == "https://nvidia.github.io/libnvidia-container/stable/rpm/x86_64/"
    assert (cuda.signs_packages, toolkit.signs_packages) == (True, False), "as setup's own entries for them"
    assert contents("rocky-9/595", "aarch64").origins[1].path.endswith("/rpm/aarch64")


@pytest.mark.parametrize(
    "text", ["", "http://r baseos", "r/os", "ftp://r/os", "http://u:p@r/os", "http://r/$basearch", "http://r/os?x"]
)
def test_an_archive_for_rpm_is_one_address(text: str) -> None:
    with pytest.raises(UsageError, match="is not of the right form"):
        parse_archive(text, 0, "/k", "rpm")
    archive = parse_archive("http://mirror.example.org/rocky/9/BaseOS/x86_64/os", 1, "/k", "rpm")
    assert (archive.url, archive.suite, archive.path) == (
        "http://mirror.example.org/rocky/9/BaseOS/x86_64/os/", "repodata", "archive/1",
    )  # fmt: skip
