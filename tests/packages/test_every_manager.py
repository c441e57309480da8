"""What holds for every package manager: never asks, never weakens a signature check, outlives the connection."""

from __future__ import annotations

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.errors import UnsupportedHost
from gpunode.model.action import Run
from gpunode.packages.base import Backend, Repository, Wanted, installation
from gpunode.packages.registry import BACKENDS, backend

WEAKER = (
    "--nogpgcheck",
    "--no-gpg-check",
    "--gpg-auto-import-keys",
    "--allow-unauthenticated",
    "--allow-insecure",
    "--force-yes",
    "--skippgpcheck",
    "SigLevel",
    "gpgcheck=0",
    "--setopt=gpgcheck",
)
UNASKED = {
    "apt": "-y",
    "dnf": "-y",
    "dnf5": "-y",
    "yum": "-y",
    "zypper": "--non-interactive",
    "tdnf": "-y",
    "pacman": "--noconfirm",
}
WANTED = [Wanted("nvidia-open", "595.91.07"), Wanted("nvidia-fabricmanager")]
REPOSITORY = Repository(
    "gpunode-cuda", "NVIDIA's CUDA repository", "https://example.com/x/", "/etc/keys/gpunode-cuda.key"
)


def changing(manager: Backend) -> list[Run]:
    _, fetch, install = installation(manager, WANTED, ["*nvidia*"], downgrade=True)
    again = manager.reinstall(WANTED)
    return [
        manager.refresh([REPOSITORY]),
        manager.refresh_all(),
        fetch,
        install,
        manager.remove(["nvidia-open"]),
        again,
    ]


def words(run: Run) -> str:
    return " ".join(run.argv) + "\n" + run.stdin


@pytest.mark.parametrize("name", BACKENDS)
def test_nothing_asks_and_nothing_weakens_a_check(name: str) -> None:
    manager = BACKENDS[name]
    held = [manager.hold(["nvidia-open"]), manager.unhold(["nvidia-open"])]
    for run in (*changing(manager), *held, manager.simulate(WANTED, ["*nvidia*"]), manager.repair(["nvidia-open"])):
        assert not [switch for switch in WEAKER if switch in words(run)]
    for run in changing(manager)[2:]:
        assert UNASKED[name] in words(run).split(), run.argv


@pytest.mark.parametrize("name", BACKENDS)
def test_a_transaction_outlives_the_connection(name: str) -> None:
    assert all(run.detach for run in changing(BACKENDS[name]))


@pytest.mark.parametrize("name", [name for name in BACKENDS if name != "pacman"])
@pytest.mark.parametrize("packages_are_signed", [True, False])
def test_a_repository_is_bound_to_its_key_and_checked(name: str, packages_are_signed: bool) -> None:
    manager = BACKENDS[name]
    repository = Repository("r", "T", "https://example.com/x/", "/etc/keys/r.key", packages_are_signed)
    path, text = manager.source_file(repository)
    assert path.startswith(f"{manager.source_directory}/r.")
    assert "/etc/keys/r.key" in text
    if name != "apt":  # apt checks every index against Signed-By
        assert {"gpgcheck=1", "repo_gpgcheck=1"} & set(text.splitlines())
        assert f"{'' if packages_are_signed else 'repo_'}gpgcheck=1" in text.splitlines()


def test_tdnf_never_leaves_packages_unchecked_since_its_metadata_check_is_a_plugin() -> None:
    _, text = BACKENDS["tdnf"].source_file(Repository("r", "T", "https://e.com/", "/k", gpg_check_packages=False))
    assert "gpgcheck=1" in text.splitlines()


def test_pacman_has_no_vendor_repository() -> None:
    with pytest.raises(UnsupportedHost, match="no packages for pacman"):
        BACKENDS["pacman"].source_file(REPOSITORY)


@pytest.mark.parametrize("name", BACKENDS)
def test_undo_knows_what_an_install_touches(name: str) -> None:
    assert BACKENDS[name].install(WANTED).packages == ("nvidia-open", "nvidia-fabricmanager")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("apt", "nvidia-open=595.91.07"),
        ("dnf", "nvidia-open-595.91.07"),
        ("dnf5", "nvidia-open-595.91.07"),
        ("yum", "nvidia-open-595.91.07"),
        ("zypper", "nvidia-open=595.91.07"),
        ("tdnf", "nvidia-open-595.91.07"),
        ("pacman", "nvidia-open"),
    ],
)
def test_a_version_is_named_in_the_managers_own_way(name: str, told: str) -> None:
    assert told in BACKENDS[name].install(WANTED).argv


@pytest.mark.parametrize(
    ("name", "switch"),
    [
        ("apt", "--allow-downgrades"),
        ("dnf", "--allowerasing"),
        ("dnf5", "--allow-downgrade"),
        ("zypper", "--oldpackage"),
    ],
)
def test_down_only_where_it_is_asked_for(name: str, switch: str) -> None:
    manager = BACKENDS[name]
    assert switch in manager.install(WANTED, downgrade=True).argv
    assert switch not in manager.install(WANTED).argv


def test_zypper_waits_for_the_lock_and_takes_a_reboot_hint_for_success() -> None:
    run = BACKENDS["zypper"].install(WANTED)
    assert dict(run.env)["ZYPP_LOCK_TIMEOUT"] == "300"
    assert run.ok_codes == (0, 102, 103)
    assert 107 not in run.ok_codes  # a package's script failed: the module was not built


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("apt", "apt-get install --reinstall"),
        ("dnf", "dnf -y reinstall nvidia-open nvidia-fabricmanager"),
        ("dnf5", "dnf -y reinstall nvidia-open nvidia-fabricmanager"),
        ("yum", "yum -y reinstall nvidia-open nvidia-fabricmanager"),
        ("tdnf", "tdnf -y reinstall nvidia-open nvidia-fabricmanager"),
        ("zypper", "zypper --non-interactive install --force"),
        ("pacman", "-S --noconfirm nvidia-open nvidia-fabricmanager"),
    ],
)
def test_files_of_an_installed_package_are_written_anew(name: str, told: str) -> None:
    run = BACKENDS[name].reinstall(WANTED)
    assert told in words(run)
    assert run.packages == ("nvidia-open", "nvidia-fabricmanager")


def test_an_unknown_manager_is_refused_with_the_list() -> None:
    with pytest.raises(UnsupportedHost, match="emerge") as refused:
        backend("emerge")
    assert "zypper" in refused.value.evidence


def test_every_distribution_of_the_catalog_has_a_manager_that_is_known() -> None:
    assert {distro.manager for distro in load_catalog().distros} - set(BACKENDS) == set()
