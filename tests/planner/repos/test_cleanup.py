"""Old repository lists: what is dead, doubled or another release's is disabled; every other byte stays."""

from __future__ import annotations

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.model.action import PutFile
from gpunode.model.files import FileFacts
from gpunode.model.spec import Spec
from gpunode.planner.plan import make_plan
from gpunode.planner.repos.cleanup import MARK, lists_step, live_sources, repaired
from tests.planner.builders import T4, host, packages

CATALOG = load_catalog()
CUDA = "https://developer.download.nvidia.com/compute/cuda/repos"
ML = "https://developer.download.nvidia.com/compute/machine-learning/repos"
TOOLKIT = "https://nvidia.github.io/libnvidia-container/stable/deb/$(ARCH)"
KEYED = f"deb [signed-by=/usr/share/keyrings/cuda-archive-keyring.gpg] {CUDA}/ubuntu2404/x86_64/ /\n"
LISTS = "/etc/apt/sources.list.d"


def after(*files: tuple[str, str], os: str = "ubuntu-24.04") -> dict[str, str]:
    """path -> text of the files that change"""
    sources = tuple(FileFacts(path, text, "0" * 64) for path, text in files)
    facts = host(T4, os=os, packages=packages({}, sources=sources))
    distro = CATALOG.distro(facts.os)
    assert distro is not None
    return {repair.file.path: repair.text for repair in repaired(facts, distro)}


@pytest.mark.parametrize(
    ("path", "text", "becomes"),
    [
        pytest.param(
            f"{LISTS}/nvidia-docker.list",
            "# kept\ndeb https://nvidia.github.io/nvidia-docker/ubuntu18.04/$(ARCH) /\n",
            f"# kept\n{MARK}deb https://nvidia.github.io/nvidia-docker/ubuntu18.04/$(ARCH) /\n",
            id="nvidia-docker.list",
        ),
        pytest.param(
            f"{LISTS}/libnvidia-container.list",
            "deb https://nvidia.github.io/libnvidia-container/stable/ubuntu22.04/$(ARCH) /\n",
            f"{MARK}deb https://nvidia.github.io/libnvidia-container/stable/ubuntu22.04/$(ARCH) /\n",
            id="the toolkit's repository by release",
        ),
        pytest.param(
            f"{LISTS}/nvidia-ml.list",
            f"deb [signed-by=/k.gpg] {ML}/ubuntu2004/x86_64 /\n",
            f"{MARK}deb [signed-by=/k.gpg] {ML}/ubuntu2004/x86_64 /\n",
            id="the machine-learning repository, whose key was retired",
        ),
        pytest.param(
            f"{LISTS}/cuda.list",
            f"deb {CUDA}/ubuntu2404/x86_64/ /\n",
            f"{MARK}deb {CUDA}/ubuntu2404/x86_64/ /\n",
            id="a CUDA list without a key",
        ),
        pytest.param(
            f"{LISTS}/cuda-ubuntu2004.list",
            KEYED.replace("ubuntu2404", "ubuntu2004"),
            MARK + KEYED.replace("ubuntu2404", "ubuntu2004"),
            id="another release's repository",
        ),
        pytest.param(
            f"{LISTS}/old.sources",
            f"Types: deb\nURIs: {CUDA}/ubuntu2204/x86_64/\nSuites: /\nSigned-By: /k.gpg\n\nTypes: deb\nURIs: https://other/\n",
            f"Types: deb\n# disabled by gpunode\nEnabled: no\nURIs: {CUDA}/ubuntu2204/x86_64/\nSuites: /\n"
            "Signed-By: /k.gpg\n\nTypes: deb\nURIs: https://other/\n",
            id="one stanza of a deb822 file",
        ),
        pytest.param(
            "/etc/yum.repos.d/cuda.repo",
            f"[cuda]\nname=cuda\nbaseurl={CUDA}/rhel9/x86_64\nenabled=1\ngpgcheck=1\ngpgkey={CUDA}/rhel9/x86_64/7fa2af80.pub\n"
            "\n[other]\nenabled=1\n",
            f"[cuda]\n# disabled by gpunode\nenabled=0\nname=cuda\nbaseurl={CUDA}/rhel9/x86_64\ngpgcheck=1\n"
            f"gpgkey={CUDA}/rhel9/x86_64/7fa2af80.pub\n\n[other]\nenabled=1\n",
            id="a .repo section that trusts the retired key",
        ),
    ],
)
def test_a_dead_entry_is_disabled_and_the_rest_stays(path: str, text: str, becomes: str) -> None:
    os = "rocky-9" if path.endswith(".repo") else "ubuntu-24.04"
    assert after((path, text), os=os) == {path: becomes}
    assert after((path, becomes), os=os) == {}, "once is enough"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        pytest.param(f"{LISTS}/cuda-ubuntu2404-x86_64.list", KEYED, id="the vendor's own list"),
        pytest.param(
            f"{LISTS}/nvidia-container-toolkit.list", f"deb [signed-by=/k] {TOOLKIT} /\n", id="the toolkit's list"
        ),
        pytest.param(
            f"{LISTS}/x.list", "# deb https://nvidia.github.io/nvidia-docker/ubuntu18.04/ /\n", id="a comment"
        ),
        pytest.param(
            "/etc/apt/preferences.d/cuda", "Package: *\nPin: origin nvidia.github.io/nvidia-docker/\n", id="a pin"
        ),
    ],
)
def test_what_is_right_is_left_alone(path: str, text: str) -> None:
    assert after((path, text)) == {}


def test_of_two_lists_of_one_repository_the_one_that_names_the_vendors_file_stays() -> None:
    named = (f"{LISTS}/nvidia-container-toolkit.list", f"deb [signed-by=/a.gpg] {TOOLKIT} /\n")
    other = (f"{LISTS}/libnvidia-container.list", f"deb [signed-by=/b.gpg] {TOOLKIT} /\n")
    assert list(after(named, other)) == [other[0]]
    own = (f"{LISTS}/gpunode-container-toolkit.sources", f"Types: deb\nURIs: {TOOLKIT}\nSuites: /\nSigned-By: /c.gpg\n")
    assert sorted(after(named, other, own)) == [other[0], named[0]], "beside gpunode's own, both go"


def test_beside_gpunodes_own_entry_of_the_cuda_repository_no_other_key_of_it_stops_apt() -> None:
    """NVIDIA's guide begins with cuda-keyring, and people follow it after gpunode."""
    url = f"{CUDA}/ubuntu2404/x86_64/"
    theirs = (f"{LISTS}/cuda-ubuntu2404-x86_64.list", KEYED)
    other = (f"{LISTS}/arm.list", KEYED.replace("x86_64", "sbsa"))
    own = (f"{LISTS}/gpunode-cuda.sources", f"Types: deb\nURIs: {url}\nSuites: /\nSigned-By: /c.asc\n")
    assert list(after(theirs, other, own)) == [theirs[0]]
    assert after(theirs, other) == {}


def test_lists_are_put_right_first_and_the_backup_is_the_executors() -> None:
    old = FileFacts(f"{LISTS}/cuda.list", f"deb {CUDA}/ubuntu2404/x86_64/ /\n", "1" * 64)
    plan = make_plan(host(T4, packages=packages({}, sources=(old,))), Spec(), CATALOG)
    first = plan.steps[0]
    assert first.id == "repo.lists"
    assert all(isinstance(a, PutFile) and a.expect_sha256 == "1" * 64 for a in first.actions)
    assert "+# disabled by gpunode" in first.diff
    assert "repo.cuda" in [s.id for s in plan.steps], "and the repository comes anew, with its key"


def test_a_kept_driver_keeps_the_list_it_came_from() -> None:
    old = FileFacts(f"{LISTS}/cuda.list", f"deb {CUDA}/ubuntu2404/x86_64/ /\n", "1" * 64)
    facts = host(T4, packages=packages({"nvidia-open": "595.91.07-1"}, sources=(old,)))
    steps = [s.id for s in make_plan(facts, Spec(), CATALOG).steps]
    assert "toolkit.install" in steps
    assert "repo.lists" not in steps


def test_a_host_that_changes_nothing_keeps_its_lists() -> None:
    facts = host(T4)
    distro = CATALOG.distro(facts.os)
    assert distro is not None
    assert lists_step(facts, distro) is None
    assert live_sources(facts, distro) == facts.packages.sources


def test_a_password_in_an_old_list_is_not_shown() -> None:
    text = "deb https://someone:hunter2@nvidia.github.io/nvidia-docker/ubuntu18.04/amd64 /\n"
    old = FileFacts(f"{LISTS}/nvidia-docker.list", text, "1" * 64)
    step = make_plan(host(T4, packages=packages({}, sources=(old,))), Spec(), CATALOG).steps[0]
    assert step.id == "repo.lists"
    assert "nvidia-docker/ubuntu18.04" in step.diff
    assert "hunter2" not in step.diff
