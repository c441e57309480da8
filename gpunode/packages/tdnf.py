"""Azure Linux and Photon: tdnf. Pins are names in a file of /etc/tdnf/locks.d (vmware/tdnf pull request 272)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from gpunode.model.action import Run
from gpunode.model.files import FileFacts
from gpunode.packages import rpm, scripts
from gpunode.packages.base import Repository, Wanted
from gpunode.packages.holds import TDNF_LOCKS, tdnf_locks
from gpunode.packages.rpm import ENV

# A lock file takes no patterns, and a locked package cannot be removed.
HOLD = scripts.hold_file(TDNF_LOCKS)
UNLOCKED = f'(\nset -- unhold "$@"\n{HOLD})\n'


class Tdnf(rpm.Family):
    """Written from tdnf's documentation and tests; never run on an Azure Linux."""

    name = "tdnf"
    source_directory = "/etc/yum.repos.d"
    key_tools: tuple[str, ...] = ("gnupg2", "curl", "ca-certificates")
    hold_tools: tuple[str, ...] = ()
    signs_indexes = False  # a plugin does, which may be absent
    tools = ("tdnf", "rpm")
    hold_files = (TDNF_LOCKS,)
    proxy_files = ("/etc/tdnf/tdnf.conf",)
    directories = (*rpm.Family.directories, "/etc/tdnf/")
    commands = rpm.commands("tdnf")

    def held(self, listing: str, files: Mapping[str, FileFacts]) -> frozenset[str]:
        return tdnf_locks(files)

    def kernel_headers(self, installed: Collection[str]) -> tuple[tuple[str, str], ...]:
        return (("kernel", "kernel-devel"),) if "kernel" in installed else ()

    def source_file(self, repository: Repository) -> tuple[str, str]:
        # tdnf checks signed metadata through a plugin that may be absent, and then not at all: packages are always
        # checked, so that a repository whose packages are not signed is refused instead of trusted.
        return rpm.repo_file(self.source_directory, repository, "tdnf")

    def refresh(self, repositories: Sequence[Repository]) -> Run:
        limit = ("--disablerepo=*", *(f"--enablerepo={r.id}" for r in repositories)) if repositories else ()
        argv = ("tdnf", "-y", "makecache", "--refresh", *limit)
        return scripts.refresh(argv, "tdnf makecache", ENV, sources=self.source_files)

    def refresh_all(self) -> Run:
        return scripts.refresh_all(
            ("tdnf", "-y", "makecache"), ENV, ok_codes=tuple(range(256)), sources=self.source_files
        )

    def simulate(self, packages: Sequence[Wanted], mine: Sequence[str], *, downgrade: bool = False) -> Run:
        return scripts.simulate(self.name, rpm.resolve("tdnf"), rpm.named(packages), mine, ENV)

    def fetch(self, packages: Sequence[Wanted], *, downgrade: bool = False) -> Run:
        argv = ("tdnf", "-y", "install", "--downloadonly", *rpm.named(packages))
        description = "download " + " ".join(rpm.named(packages))
        return scripts.fetch(argv, "tdnf -y makecache --refresh", description, ENV, sources=self.source_files)

    def install(self, packages: Sequence[Wanted], *, downgrade: bool = False) -> Run:
        argv = rpm.patient("tdnf", "-y", "install", *rpm.named(packages))
        description = "tdnf install " + " ".join(rpm.named(packages))
        return scripts.transaction(argv, "", rpm.names(packages), description, ENV)

    def remove(self, names: Sequence[str]) -> Run:
        description = "tdnf remove " + " ".join(names)
        script = f'{UNLOCKED}{rpm.PRESENT}exec tdnf -y remove "$@"\n'
        argv = rpm.patient("sh", "-s", "--", *names)
        return scripts.transaction(argv, script, names, description, ENV)

    def hold(self, names: Sequence[str]) -> Run:
        return _file("hold", names)

    def unhold(self, names: Sequence[str]) -> Run:
        return _file("unhold", names)

    def same_version(self, lead: str, patterns: Sequence[str], *, hold: bool) -> Run:
        return rpm.same_version(lead, patterns, f'set -- hold "$@"\n{HOLD}' if hold else "")


def _file(verb: str, names: Sequence[str]) -> Run:
    description = f"{verb} {' '.join(names)} in /etc/tdnf/locks.d"
    return Run(("sh", "-s", "--", verb, *names), env=ENV, stdin=HOLD, description=description)
