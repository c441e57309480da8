"""Red Hat family: dnf 4 (EL 8, 9 and 10), its module streams and the versionlock plugin."""

from __future__ import annotations

from collections.abc import Sequence

from gpunode import resources
from gpunode.model.plan import Run
from gpunode.packages.base import Repository, Wanted

INSTALL_S = 3600  # a DKMS build on a small host takes more than ten minutes
ENV = (("LC_ALL", "C.UTF-8"),)
VERSIONLOCK = "python3-dnf-plugin-versionlock"


class Dnf:
    """dnf waits for its own lock and says who holds it; a missing repository is an error only when it is told so."""

    name = "dnf"
    source_folder = "/etc/yum.repos.d"
    key_folder = "/etc/pki/rpm-gpg"
    key_suffix = ".key"

    def source_file(self, repository: Repository) -> tuple[str, str]:
        text = resources.render(
            "repo/rpm.repo.j2",
            id=repository.id,
            title=repository.title,
            url=repository.url,
            keyring=repository.keyring,
            gpg_check_packages=repository.gpg_check_packages,
        )
        return f"{self.source_folder}/{repository.id}.repo", text

    def refresh(self, repositories: Sequence[Repository]) -> Run:
        # makecache exits 0 ("Ignoring repositories") for one that answers 404, unless skip_if_unavailable is off.
        ids = ",".join(r.id for r in repositories)
        limit = ("--disablerepo=*", f"--enablerepo={ids}") if ids else ()
        argv = ("dnf", "-y", "makecache", "--refresh", "--setopt=*.skip_if_unavailable=0", *limit)
        return Run(argv, timeout_s=600, env=ENV, detach=True)

    def refresh_all(self) -> Run:
        return Run(("dnf", "-y", "makecache"), ok=(0, 1), timeout_s=600, env=ENV, detach=True)

    def install(self, packages: Sequence[Wanted], *, downgrade: bool = False) -> Run:
        names = tuple(f"{p.name}-{p.version}" if p.version else p.name for p in packages)
        # `install name-version` goes down as well as up in dnf 4; allowerasing lets one flavour take the other's place.
        erase = ("--allowerasing",) if downgrade else ()
        says = "dnf install " + " ".join(names)
        argv = ("dnf", "-y", "install", *erase, *names)
        touched = tuple(p.name for p in packages)
        return Run(argv, timeout_s=INSTALL_S, env=ENV, detach=True, packages=touched, says=says)

    def remove(self, names: Sequence[str]) -> Run:
        argv = ("dnf", "-y", "remove", *names)
        return Run(argv, timeout_s=INSTALL_S, env=ENV, detach=True, packages=tuple(names))

    def hold(self, names: Sequence[str]) -> Run:
        return Run(("dnf", "-y", "versionlock", "add", *names), timeout_s=300, env=ENV)

    def unhold(self, names: Sequence[str]) -> Run:
        return Run(("dnf", "-y", "versionlock", "delete", *names), timeout_s=300, env=ENV)

    def same_version(self, lead: str, patterns: Sequence[str], *, hold: bool) -> Run:
        verb = "hold" if hold else "check"
        says = f"check that all packages are at {lead}'s version" + (", and hold them" if hold else "")
        script = (resources.folder("templates") / "repo/same-version.rpm.sh").read_text(encoding="utf-8")
        return Run(("sh", "-s", "--", verb, lead, *patterns), timeout_s=300, env=ENV, stdin=script, says=says)

    def stream(self, module: str, stream: str) -> tuple[Run, ...]:
        """Choose a module stream: reset first, since dnf 4 refuses to switch an enabled one."""
        return (
            Run(("dnf", "-y", "module", "reset", module), timeout_s=300, env=ENV, detach=True),
            Run(("dnf", "-y", "module", "enable", f"{module}:{stream}"), timeout_s=300, env=ENV, detach=True),
        )

    def repair(self) -> Run:
        # rpm knows no half-configured package; what a power cut can leave is a database that does not answer.
        return Run(("rpm", "--rebuilddb"), timeout_s=INSTALL_S, env=ENV, detach=True)

    def trust(self, keyring: str) -> Run | None:
        """rpm's own key store, for gpgcheck; the file was verified before."""
        return Run(("rpm", "--import", keyring))
