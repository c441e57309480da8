"""Red Hat family: dnf 4 (EL 8, 9 and 10) with module streams and a versionlock plugin; dnf5 (Fedora 41 and later)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from gpunode import resources
from gpunode.model.action import Run
from gpunode.model.files import FileFacts
from gpunode.model.packages import PackageVersion
from gpunode.packages import rpm, scripts
from gpunode.packages.base import Backend, Part, Repository, Wanted
from gpunode.packages.holds import VERSIONLOCK5, VERSIONLOCKS, versionlocks
from gpunode.packages.rpm import ENV
from gpunode.values import dataclass

VERSIONLOCK = "python3-dnf-plugin-versionlock"
# An `add` on top of an older lock, such as one that chose the branch, would leave the older one to count as well.
LOCK = '$dnf -q -y versionlock delete "$@" >/dev/null 2>&1 </dev/null || :\n$dnf -y versionlock add "$@"\n'
# A lock outlives its package and would refuse the next version of it; without the plugin there is none to take away.
REMOVE = (
    '$dnf -q -y versionlock delete "$@" >/dev/null 2>&1 </dev/null || :\n' + rpm.PRESENT + 'exec $dnf -y remove "$@"\n'
)


@dataclass
class Dnf(rpm.Family):
    """dnf waits for its own lock and reports who holds it; a missing repository is an error only where it is set so.

    dnf-automatic resolves as dnf does, so a versionlock binds it too. dnf5 is called dnf where it is at home.
    """

    name: str = "dnf"  # "dnf5": versionlock is built in
    # `install name-version` goes down as well as up in dnf 4; allowerasing lets one flavour take the other's place.
    downwards: tuple[str, ...] = ("--allowerasing",)
    hold_tools: tuple[str, ...] = (VERSIONLOCK,)
    only: tuple[str, ...] = ()
    source_directory = "/etc/yum.repos.d"
    bundle_file = "/etc/yum.repos.d/gpunode-bundle.repo"
    key_tools: tuple[str, ...] = ("gnupg2", "curl", "ca-certificates")
    family = "dnf"
    tools = ("dnf", "rpm")
    hold_files = (*VERSIONLOCKS, VERSIONLOCK5)
    proxy_files = ("/etc/dnf/dnf.conf",)
    lock_files = (*rpm.Family.lock_files, "/var/cache/dnf/metadata_lock.pid")
    directories = (*rpm.Family.directories, "/etc/dnf/")
    commands = rpm.commands("dnf")

    def is_at_home(self, tools: Collection[str]) -> bool:
        """By what `dnf` links to, since dnf 4 (dnf-3) and dnf5 speak differently."""
        fifth = "dnf5" in tools and "dnf-3" not in tools
        return super().is_at_home(tools) and fifth == (self.name == "dnf5")

    def held(self, listing: str, files: Mapping[str, FileFacts]) -> frozenset[str]:
        return versionlocks(files)

    def auto_upgrades(
        self, settings: str, installed: Mapping[str, PackageVersion], services: Mapping[str, str]
    ) -> bool:
        """A timer that applies is active.

        apply_updates = yes
        """
        if services.get("dnf-automatic-install.timer") == "active":
            return True
        applies = re.search(r"^[ \t]*apply_updates[ \t]*=[ \t]*(yes|true|1)\b", settings, re.MULTILINE | re.IGNORECASE)
        return applies is not None and services.get("dnf-automatic.timer") == "active"

    def kernel_headers(self, installed: Collection[str]) -> tuple[tuple[str, str], ...]:
        if "kernel-uek-core" in installed:  # Oracle Linux has kernel-core beside it, which is not the default there
            return (("kernel-uek-core", "kernel-uek-devel"),)
        if "kernel-64k-core" in installed:
            return (("kernel-64k-core", "kernel-64k-devel-matched"),)
        if "kernel-core" not in installed:
            return ()
        old = "kernel-devel" in installed and "kernel-devel-matched" not in installed  # EL 8 has no -matched
        return (("kernel-core", "kernel-devel" if old else "kernel-devel-matched"),)

    def source_file(self, repository: Repository) -> tuple[str, str]:
        return rpm.repo_file(self.source_directory, repository, "yum")

    def named(self, name: str, version: str) -> str:
        return rpm.named([Wanted(name, version)])[0]

    def alone(self) -> Backend:
        """A repository that cannot be reached is an error of every command, whatever it asks for."""
        return replace(self, only=("--disablerepo=*", "--enablerepo=gpunode-*"))

    def bundle_files(self, sha256: str, parts: Sequence[Part], keyring: str) -> Mapping[str, str]:
        """Switched off: for whatever else asks dnf its index would name packages that the bundle has not."""
        return rpm.bundle_files(self, sha256, parts, "yum")

    def bundle_indexes(self, parts: Sequence[Part]) -> tuple[Repository, ...]:
        return rpm.bundle_indexes(parts)

    def own_keys(self) -> Run | None:
        return rpm.own_keys()

    def refresh(self, repositories: Sequence[Repository]) -> Run:
        # makecache exits 0 ("Ignoring repositories") for one that answers 404, unless skip_if_unavailable is off.
        ids = ",".join(r.id for r in repositories)
        limit = ("--disablerepo=*", f"--enablerepo={ids}") if ids else ()
        argv = ("dnf", "-y", "makecache", "--refresh", *rpm.SILENCE, "--setopt=*.skip_if_unavailable=0", *limit)
        return scripts.refresh(argv, "dnf makecache", ENV, sources=self.source_files)

    def refresh_all(self) -> Run:
        return scripts.refresh_all(
            ("dnf", "-y", "makecache", *self.only, *rpm.SILENCE), ENV, ok_codes=(0, 1), sources=self.source_files
        )

    def simulate(self, packages: Sequence[Wanted], mine: Sequence[str], *, downgrade: bool = False) -> Run:
        return scripts.simulate(self.name, rpm.resolve("dnf"), self._words(packages, downgrade), mine, ENV)

    def fetch(self, packages: Sequence[Wanted], *, downgrade: bool = False) -> Run:
        argv = ("dnf", "-y", "install", "--downloadonly", *rpm.SILENCE, *self._words(packages, downgrade))
        return scripts.fetch(
            argv,
            shlex.join(("dnf", "-y", "makecache", "--refresh", *self.only, *rpm.SILENCE)),
            _says("download", packages),
            ENV,
            sources=self.source_files,
            again=not self.only,
        )

    def install(self, packages: Sequence[Wanted], *, downgrade: bool = False) -> Run:
        argv = rpm.patient("dnf", "-y", "install", *self._words(packages, downgrade))
        touched = rpm.names(packages)
        return scripts.transaction(argv, "", touched, _says("dnf install", packages), ENV)

    def remove(self, names: Sequence[str]) -> Run:
        description = "dnf remove " + " ".join(names)
        argv = rpm.patient("sh", "-s", "--", *names)
        return scripts.transaction(argv, self._script(REMOVE), names, description, ENV)

    def hold(self, names: Sequence[str]) -> Run:
        description = "dnf versionlock add " + " ".join(names)
        return Run(
            ("sh", "-s", "--", *names), timeout_s=300, env=ENV, stdin=self._script(LOCK), description=description
        )

    def unhold(self, names: Sequence[str]) -> Run:
        if self.name == "dnf5":
            description, script = "dnf versionlock delete " + " ".join(names), resources.script("packages/dnf5_unlock")
            return Run(("sh", "-s", "--", *names), timeout_s=300, env=ENV, stdin=script, description=description)
        return Run(("dnf", "-y", *self.only, "versionlock", "delete", *names), timeout_s=300, env=ENV)

    def same_version(self, lead: str, patterns: Sequence[str], *, hold: bool) -> Run:
        return rpm.same_version(lead, patterns, self._script(LOCK) if hold else "")

    def stream_file(self, module: str) -> str:
        return f"/etc/dnf/modules.d/{module}.module"

    def enabled_stream(self, text: str) -> str | None:
        """Of libdnf's own file: `stream=595-open` and `state=enabled`, each on a line."""
        lines = [line.strip() for line in text.splitlines()]
        named = (re.fullmatch(r"stream=([A-Za-z0-9._+-]{1,64})", line) for line in lines)
        return next((found[1] for found in named if found), None) if "state=enabled" in lines else None

    def stream(self, module: str, stream: str | None) -> tuple[Run, ...]:
        """Choose a module stream, None: none of them. Reset first, since dnf 4 refuses to switch an enabled one."""
        words = (("reset", module), *([("enable", f"{module}:{stream}")] if stream else []))
        return tuple(
            Run(("dnf", "-y", *self.only, "module", *what), timeout_s=300, env=ENV, detach=True) for what in words
        )

    def _words(self, packages: Sequence[Wanted], downgrade: bool) -> tuple[str, ...]:
        return (*self.only, *(self.downwards if downgrade else ()), *rpm.named(packages))

    def _script(self, text: str) -> str:
        return f"dnf={shlex.quote(' '.join(('dnf', *self.only)))}\n{text}"


def _says(verb: str, packages: Sequence[Wanted]) -> str:
    return f"{verb} " + " ".join(rpm.named(packages))
