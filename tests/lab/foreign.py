"""Hosts of other families: a Debian below; above it the real dnf 4, dnf5, zypper or pacman on a database of its own.

os-release, the package database and the repositories are those of the other family, and apt is gone; kernel, libc and
systemd stay Debian's. That tests how gpunode speaks with the package manager, not the distribution around it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from . import foreign_repositories
from .authority import Trust
from .foreign_repositories import RPM_HOST
from .host import Host
from .shell import sh

GONE = (
    "apt",
    "apt-get",
    "apt-cache",
    "apt-mark",
    "dpkg",
    "dpkg-query",
    "dpkg-deb",
    "dnf",
    "dnf-3",
    "dnf5",
    "zypper",
    "pacman",
)
RPM_KEY = "/etc/pki/rpm-gpg/RPM-GPG-KEY-lab"


@dataclass(frozen=True)
class Family:
    """What makes a host look like one of these."""

    os_release: str
    keeps: tuple[str, ...]  # of GONE
    links: tuple[tuple[str, str], ...] = ()


FAMILIES = {
    "el9": Family(
        'NAME="Rocky Linux"\nVERSION="9.6 (Blue Onyx)"\nID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.6"\n'
        'PLATFORM_ID="platform:el9"\nPRETTY_NAME="Rocky Linux 9.6 (Blue Onyx)"\n',
        ("dnf-3",),
        (("/usr/bin/dnf", "dnf-3"), ("/usr/bin/yum", "dnf-3")),
    ),
    "fedora42": Family(
        'NAME="Fedora Linux"\nVERSION="42 (Server Edition)"\nID=fedora\nVERSION_ID=42\nPLATFORM_ID="platform:f42"\n'
        'PRETTY_NAME="Fedora Linux 42 (Server Edition)"\n',
        ("dnf5",),
        (("/usr/bin/dnf", "dnf5"),),
    ),
    "sles15": Family(
        'NAME="SLES"\nVERSION="15-SP6"\nVERSION_ID="15.6"\nID="sles"\nID_LIKE="suse"\n'
        'PRETTY_NAME="SUSE Linux Enterprise Server 15 SP6"\n',
        ("zypper",),
    ),
    "arch": Family('NAME="Arch Linux"\nPRETTY_NAME="Arch Linux"\nID=arch\nBUILD_ID=rolling\n', ("pacman",)),
}
LAYER = "managers"  # images/build.sh
SUITE = "sid"


def disguise(host: Host, trust: Trust, web: Path) -> None:
    """Turn a Debian that has not booted yet into one of FAMILIES."""
    name = host.recipe.distribution
    family = FAMILIES[name]
    for tool in GONE:
        if tool not in family.keeps:
            host.path(f"/usr/bin/{tool}").unlink(missing_ok=True)
    for path, target in family.links:
        host.path(path).unlink(missing_ok=True)
        host.path(path).symlink_to(target)
    host.path("/etc/debian_version").unlink(missing_ok=True)
    host.write("/usr/lib/os-release", family.os_release)
    if name == "arch":
        _arch(host, trust)
    else:
        _rpm(host, trust, web)


def _rpm(host: Host, trust: Trust, web: Path) -> None:
    # Debian's rpm keeps one database per user, in ~/.rpmdb.
    host.write("/etc/rpm/macros", "%_dbpath /var/lib/rpm\n")
    host.write(RPM_KEY, trust.debian.armored())
    zypp = host.recipe.distribution == "sles15"
    directory = "/etc/zypp/repos.d" if zypp else "/etc/yum.repos.d"
    for name in ("base", "crb"):
        enabled = name == "base" or host.recipe.distribution != "el9"
        host.write(f"{directory}/{name}.repo", _repo(name, enabled=enabled))
    if not zypp:
        host.write(
            "/etc/dnf/dnf.conf", "[main]\ngpgcheck=1\ninstallonly_limit=3\nbest=True\nskip_if_unavailable=False\n"
        )
        host.write("/etc/dnf/vars/releasever", "9\n" if host.recipe.distribution == "el9" else "42\n")
        for plugins in ("plugins", "libdnf5-plugins"):  # Debian's local plugin looks for files of its own
            local = host.path(f"/etc/dnf/{plugins}/local.conf")
            if local.exists():
                local.write_text("[main]\nenabled = false\n")
    base = next((web / RPM_HOST / "base").glob("lab-base-*.rpm"))
    host.write("/root/lab-base.rpm", base.read_bytes())
    sh(
        "chroot",
        host.files.root,
        "sh",
        "-c",
        f"rpm --initdb && rpm --import {RPM_KEY} && rpm -i --nodeps --justdb /root/lab-base.rpm",
    )


def _repo(name: str, *, enabled: bool) -> str:
    return (
        f"[{name}]\nname={name}\nbaseurl=http://{RPM_HOST}/{name}\nenabled={int(enabled)}\ngpgcheck=1\n"
        f"gpgkey=file://{RPM_KEY}\n"
    )


def _arch(host: Host, trust: Trust) -> None:
    host.write(
        "/etc/pacman.conf",
        "[options]\nHoldPkg = pacman glibc\nArchitecture = x86_64\nDisableSandbox\nSigLevel = Required\n\n"
        f"[extra]\nServer = http://{foreign_repositories.EXTRA}\n",
    )
    host.write("/root/lab.asc", trust.debian.armored())
    fingerprint = trust.debian.fingerprint
    gpg = "gpg --homedir /etc/pacman.d/gnupg --batch --quiet --no-autostart"
    script = (
        "mkdir -m700 -p /etc/pacman.d/gnupg /var/lib/pacman && touch /etc/pacman.d/gnupg/pubring.gpg && "
        f"{gpg} --import /root/lab.asc && echo {fingerprint}:6: | {gpg} --import-ownertrust"
    )
    sh("chroot", host.files.root, "sh", "-c", script)
