"""Debian and Ubuntu: apt-get, apt-mark and dpkg."""

from __future__ import annotations

from collections.abc import Sequence

from gpunode import resources
from gpunode.model.plan import Run
from gpunode.packages.base import Repository, Wanted

# needrestart (Ubuntu 22.04 and later) asks and restarts daemons by itself otherwise; `l` only lists them.
ENV = (("DEBIAN_FRONTEND", "noninteractive"), ("NEEDRESTART_MODE", "l"), ("LC_ALL", "C.UTF-8"))
# apt waits for dpkg's lock (unattended-upgrades holds it for minutes) instead of exiting 100 at once.
LOCK = ("-o", "DPkg::Lock::Timeout=300")
# Keep the admin's config files without asking.
CONFFILES = ("-o", "Dpkg::Options::=--force-confdef", "-o", "Dpkg::Options::=--force-confold")
# The lock on the lists has no timeout option in apt 2.6: try again after these pauses.
PAUSES_S = (5.0, 15.0, 30.0)
INSTALL_S = 3600  # a DKMS build on a small host takes more than ten minutes


class Apt:
    name = "apt"
    source_folder = "/etc/apt/sources.list.d"
    key_folder = "/etc/apt/keyrings"
    key_suffix = ".asc"  # apt takes armoured keys by this ending

    def source_file(self, repository: Repository) -> tuple[str, str]:
        text = resources.render(
            "repo/apt.sources.j2", title=repository.title, url=repository.url, keyring=repository.keyring
        )
        return f"{self.source_folder}/{repository.id}.sources", text

    def refresh(self, repositories: Sequence[Repository]) -> Run:
        # --error-on=any: without it apt-get update exits 0 when a repository is unreachable or signed by another key
        # (seen with apt 2.6 to 3.0). Limited to one file, so that somebody else's broken repository is not our failure;
        # List-Cleanup=0 keeps the other indexes.
        limit: tuple[str, ...] = ()
        if len(repositories) == 1:
            path = repositories[0].path or self.source_file(repositories[0])[0]
            limit = (
                "-o",
                f"Dir::Etc::sourcelist={path}",
                "-o",
                "Dir::Etc::sourceparts=-",
                "-o",
                "APT::Get::List-Cleanup=0",
            )
        argv = ("apt-get", "update", "--error-on=any", *LOCK, *limit)
        return Run(argv, timeout_s=300, env=ENV, detach=True, retry=PAUSES_S)

    def refresh_all(self) -> Run:
        """Fetch every index; what cannot be fetched is left to the install that needs it."""
        return Run(("apt-get", "update", *LOCK), ok=(0, 100), timeout_s=300, env=ENV, detach=True)

    def install(self, packages: Sequence[Wanted], *, downgrade: bool = False) -> Run:
        # --allow-change-held-packages: gpunode holds what it installed, and only what is named here changes.
        switches = ("-y", "--no-install-recommends", "--allow-change-held-packages", *LOCK, *CONFFILES)
        down = ("--allow-downgrades",) if downgrade else ()
        names = tuple(f"{p.name}={p.version}" if p.version else p.name for p in packages)
        says = "apt-get install " + " ".join(names)
        argv = ("apt-get", "install", *switches, *down, *names)
        touched = tuple(p.name for p in packages)
        return Run(argv, timeout_s=INSTALL_S, env=ENV, detach=True, packages=touched, says=says)

    def remove(self, names: Sequence[str]) -> Run:
        argv = ("apt-get", "remove", "-y", "--allow-change-held-packages", *LOCK, *names)
        return Run(argv, timeout_s=INSTALL_S, env=ENV, detach=True, packages=tuple(names))

    def hold(self, names: Sequence[str]) -> Run:
        return Run(("apt-mark", "hold", *names), env=ENV, retry=PAUSES_S)

    def unhold(self, names: Sequence[str]) -> Run:
        return Run(("apt-mark", "unhold", *names), env=ENV, retry=PAUSES_S)

    def same_version(self, lead: str, patterns: Sequence[str], *, hold: bool) -> Run:
        verb = "hold" if hold else "check"
        says = f"check that all packages are at {lead}'s version" + (", and hold them" if hold else "")
        script = (resources.folder("templates") / "repo/same-version.dpkg.sh").read_text(encoding="utf-8")
        return Run(("sh", "-s", "--", verb, lead, *patterns), env=ENV, stdin=script, says=says)

    def repair(self) -> Run:
        # What a power cut leaves: dpkg finishes its own packages first, then apt what they still need.
        script = (
            f"dpkg --configure -a --force-confdef --force-confold && apt-get install -y --fix-broken {' '.join(LOCK)}\n"
        )
        says = "dpkg --configure -a; apt-get install --fix-broken"
        return Run(("sh", "-s"), timeout_s=INSTALL_S, env=ENV, stdin=script, detach=True, says=says)

    def trust(self, keyring: str) -> Run | None:
        """Nothing to import: the source names its key."""
        return None
