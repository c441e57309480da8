"""What the tests of package managers share: a host of each family, and how its own manager is asked."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from gpunode.packages.registry import BACKENDS

from . import foreign_repositories as foreign
from .foreign_repositories import CUDA
from .host import Host
from .lab import Lab
from .product_runs import Controller
from .stubs import arch, rpm, rpms

OLD, NEW = "595.58.03", "595.91.07"
OLD_TOOLKIT, NEW_TOOLKIT = "1.19.1", "1.20.1"
ONLY = ("--only", "driver,toolkit")


@dataclass(frozen=True)
class Case:
    """One package manager, where it is at home."""

    distribution: str
    manager: str  # gpunode's name of it
    upgrade: str  # what an admin types to bring everything up to date
    listing: str  # prints NAME VERSION for every installed package
    first: tuple[str, ...]  # what setup is asked for at first
    then: tuple[str, ...]  # what brings the set up; () where the repository has no choice of versions
    versions: tuple[tuple[str, str], ...]  # of the lead packages after `first`
    later: tuple[tuple[str, str], ...]  # and after `then`
    held: str  # a command that prints the holds
    automatic: str = ""  # what upgrades by itself at night


# Not what was removed and left its configuration.
APT = r"dpkg-query -W -f '${db:Status-Status} ${Package} ${Version}\n' | sed -n 's/^installed //p'"
RPM = "rpm -qa --qf '%{NAME} %{VERSION}\\n'"
# dnf-automatic, as its timer runs it; Debian's dnf has its code and no command for it.
DNF_AUTOMATIC = (
    "printf '[commands]\\nupgrade_type=default\\nrandom_sleep=0\\n[emitters]\\nemit_via=stdio\\n[email]\\n[base]\\n'"
    " >/root/automatic.conf && python3 -c 'import sys; from dnf.automatic.main import main;"
    ' sys.exit(main(["/root/automatic.conf", "--installupdates"]))\''
)
EXACT = (("--driver", OLD, "--toolkit", OLD_TOOLKIT), ("--driver", NEW, "--toolkit", NEW_TOOLKIT))
TOOLKIT = "nvidia-container-toolkit"


def apt(distribution: str) -> Case:
    first, then = EXACT
    return Case(
        distribution,
        "apt",
        "apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get -y dist-upgrade",
        APT,
        first,
        then,
        (("nvidia-open", f"{OLD}-1"), (TOOLKIT, f"{OLD_TOOLKIT}-1")),
        (("nvidia-open", f"{NEW}-1"), (TOOLKIT, f"{NEW_TOOLKIT}-1")),
        "apt-mark showhold",
    )


def dnf(distribution: str) -> Case:
    first, then = EXACT
    return Case(
        distribution,
        "dnf5" if distribution.startswith("fedora") else "dnf",
        "dnf -y upgrade --refresh",
        RPM,
        first,
        then,
        (("nvidia-open", OLD), (TOOLKIT, OLD_TOOLKIT)),
        (("nvidia-open", NEW), (TOOLKIT, NEW_TOOLKIT)),
        "cat /etc/dnf/plugins/versionlock.list /etc/dnf/versionlock.toml 2>/dev/null",
        "" if distribution.startswith("fedora") else DNF_AUTOMATIC,
    )


ZYPPER = Case(
    "sles15",
    "zypper",
    "zypper --non-interactive refresh && zypper --non-interactive update",
    RPM,
    ("--driver", "580", "--toolkit", OLD_TOOLKIT),
    ("--driver", "580", "--toolkit", NEW_TOOLKIT),
    (("nvidia-compute-utils-G06", rpms.SUSE_VERSIONS[1]), (TOOLKIT, OLD_TOOLKIT)),
    (("nvidia-compute-utils-G06", rpms.SUSE_VERSIONS[1]), (TOOLKIT, NEW_TOOLKIT)),
    "cat /etc/zypp/locks",
)
PACMAN = Case(
    "arch",
    "pacman",
    "pacman -Syu --noconfirm",
    "pacman -Q || :",  # 1 for none at all
    (),
    (),
    (("nvidia-open-dkms", f"{foreign.ARCH_VERSIONS[0]}-1"), (TOOLKIT, f"{foreign.ARCH_VERSIONS[1]}-1")),
    (("nvidia-open-dkms", f"{foreign.ARCH_VERSIONS[0]}-1"), (TOOLKIT, f"{foreign.ARCH_VERSIONS[1]}-1")),
    "cat /etc/pacman.d/gpunode-hold.conf",
)


def packages(host: Host, case: Case) -> dict[str, str]:
    """Installed packages of the driver and the toolkit."""
    rows = (line.split() for line in host.nsrun(case.listing, check=True).stdout.splitlines())
    return {row[0]: row[1] for row in rows if "nvidia" in row[0] or "cuda" in row[0]}


def remove(host: Host, case: Case) -> None:
    """Take the whole set away with the backend's own verb, as apply runs it."""
    run = BACKENDS[case.manager].remove(sorted(packages(host, case)))
    environment = [f"{name}={value}" for name, value in run.env]
    done = host.run(shlex.join(("env", *environment, *run.argv)), input=run.stdin)
    assert done.returncode in run.ok_codes, done.stdout + done.stderr


def setup(lab: Lab, me: Controller, host: Host, *wanted: str) -> tuple[str, ...]:
    """The words of a whole `gpunode setup`."""
    return ("setup", "--yes", *ONLY, *wanted, "--trust-key", lab.repo_fingerprint)


def go_back(lab: Lab, case: Case, releases: int = 1) -> None:
    """Let the repository be as it was before the newest, where its managers cannot be asked for a version."""
    if case.distribution == "sles15":
        directory = lab.web.root / CUDA / "sles15/x86_64"
        for version in rpms.SUSE_VERSIONS[-releases:]:
            for file in directory.glob(f"*{version}*"):
                file.unlink()
        rpm.index(directory, lab.trust.vendor)


def move_on(lab: Lab, case: Case, built: Path, version: str = rpms.SUSE_VERSIONS[-1]) -> None:
    """A new release appears in the repository. `built`: the repositories as they were made; `version`: SUSE's."""
    if case.distribution == "sles15":
        directory = lab.web.root / CUDA / "sles15/x86_64"
        for file in (built / CUDA / "sles15/x86_64").glob(f"*{version}*"):
            (directory / file.name).hardlink_to(file)
        rpm.index(directory, lab.trust.vendor)
    elif case.distribution == "arch":
        foreign.publish_arch(lab.web.root / foreign.EXTRA, arch.packages(NEW, NEW_TOOLKIT), lab.trust.debian)
