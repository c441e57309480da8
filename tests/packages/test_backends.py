from __future__ import annotations

from gpunode.packages.apt import Apt
from gpunode.packages.base import Repository, Wanted
from gpunode.packages.dnf import Dnf

REPO = Repository(
    "gpunode-cuda", "NVIDIA's CUDA repository", "https://example.com/x/", "/etc/apt/keyrings/gpunode-cuda.asc"
)


def test_apt_source_is_bound_to_its_key() -> None:
    path, text = Apt().source_file(REPO)
    assert path == "/etc/apt/sources.list.d/gpunode-cuda.sources"
    assert text.splitlines()[1:] == [
        "Types: deb",
        "URIs: https://example.com/x/",
        "Suites: /",
        "Signed-By: /etc/apt/keyrings/gpunode-cuda.asc",
    ]


def test_apt_refresh_fails_on_any_error_and_touches_one_source() -> None:
    run = Apt().refresh([REPO])
    assert run.argv[6:9] == ("apt-get", "update", "--error-on=any")
    assert "Dir::Etc::sourcelist=/etc/apt/sources.list.d/gpunode-cuda.sources" in run.argv
    assert "APT::Get::List-Cleanup=0" in run.argv


def test_apt_install_waits_for_the_lock_keeps_config_files_and_outlives_the_connection() -> None:
    run = Apt().install([Wanted("nvidia-container-toolkit", "1.20.0-1"), Wanted("curl")])
    assert run.argv[-2:] == ("nvidia-container-toolkit=1.20.0-1", "curl")
    assert "DPkg::Lock::Timeout=300" in run.argv
    assert "Dpkg::Options::=--force-confold" in run.argv
    assert "--allow-downgrades" not in run.argv
    assert run.detach
    assert "--allow-downgrades" in Apt().install([Wanted("curl")], downgrade=True).argv


def test_dnf_repo_keeps_the_vendors_checks() -> None:
    _, cuda = Dnf().source_file(REPO)
    assert "gpgcheck=1" in cuda.splitlines()
    _, toolkit = Dnf().source_file(Repository("t", "T", "https://e.com/", "/k", gpg_check_packages=False))
    assert "repo_gpgcheck=1" in toolkit.splitlines()


def test_dnf_names_versions_its_own_way() -> None:
    assert Dnf().install([Wanted("nvidia-open", "595.91.07")]).argv[-4:] == (
        *("dnf", "-y", "install"),
        "nvidia-open-595.91.07",
    )
