"""SUSE family: zypper. Pins are locks, which refuse a removal too."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from gpunode import resources
from gpunode.model.action import Run
from gpunode.model.files import FileFacts
from gpunode.packages import rpm, scripts
from gpunode.packages.base import Backend, Part, Repository, Wanted
from gpunode.packages.holds import ZYPP_LOCKS, zypp_locks
from gpunode.values import dataclass

# libzypp gives up at once when another process holds its lock, unless this says for how many seconds it waits.
ENV = (*rpm.ENV, ("ZYPP_LOCK_TIMEOUT", "300"))
ZYPPER = ("zypper", "--non-interactive")
# A locked package cannot be removed, and a lock without its package would refuse the next install.
REMOVE = (
    'zypper --non-interactive removelock "$@" </dev/null\n'
    + rpm.PRESENT
    + 'exec zypper --non-interactive $only remove --clean-deps "$@"\n'
)
# A package that did not come is reported in the output alone (libzypp 17.38): the exit code is 0. Of one whose transfer
# timed out there is no more than a line without its "done".
TIMED_OUT = r"Preloading: .*\[\]$"
DESPITE = f"returned error: |completed with error|{TIMED_OUT}"
# zypper(8): 102 asks for a reboot, 103 for a second run after zypper itself was updated; both mean it is in.
# Not 107: a package's script failed, which for a kernel module package means that it was not built.
OK = (0, 102, 103)

# SUSE's kernels that are upgraded by this name (SLES, Leap and Tumbleweed repositories).
KERNELS = frozenset({"kernel-default", "kernel-azure", "kernel-64kb", "kernel-longterm", "kernel-rt"})


@dataclass
class Zypper(rpm.Family):
    """Never --gpg-auto-import-keys: a key gets in through `trust`, after its fingerprint was computed."""

    name: str = "zypper"
    only: tuple[str, ...] = ()
    source_directory = "/etc/zypp/repos.d"
    bundle_file = "/etc/zypp/repos.d/gpunode-bundle.repo"
    key_tools: tuple[str, ...] = ("gpg2", "curl", "ca-certificates")
    hold_tools: tuple[str, ...] = ()
    default_flavour = "default"
    tools = ("zypper", "rpm")
    source_files = ("/etc/zypp/repos.d/*.repo",)
    hold_files = (ZYPP_LOCKS,)
    proxy_files = ("/etc/sysconfig/proxy",)
    pid_files = ("/run/zypp.pid",)
    directories = (*rpm.Family.directories, "/etc/zypp/")
    commands = rpm.commands("zypper")

    def held(self, listing: str, files: Mapping[str, FileFacts]) -> frozenset[str]:
        return zypp_locks(files)

    def kernel_headers(self, installed: Collection[str]) -> tuple[tuple[str, str], ...]:
        """kernel-default and its kind: the -devel package that each has, of the same version."""
        return tuple((name, f"{name}-devel") for name in sorted(KERNELS & set(installed)))

    def source_file(self, repository: Repository) -> tuple[str, str]:
        return rpm.repo_file(self.source_directory, repository, "zypp")

    def alone(self) -> Backend:
        """zypper skips what cannot be reached, and ends as if it had failed; so it is told to."""
        return replace(self, only=("--no-remote",))

    def bundle_files(self, sha256: str, parts: Sequence[Part], keyring: str) -> Mapping[str, str]:
        """Behind every other repository: with a network, what the bundle lacks comes from there."""
        return rpm.bundle_files(self, sha256, parts, "zypp")

    def bundle_indexes(self, parts: Sequence[Part]) -> tuple[Repository, ...]:
        return rpm.bundle_indexes(parts)

    def own_keys(self) -> Run | None:
        return rpm.own_keys()

    def refresh(self, repositories: Sequence[Repository]) -> Run:
        argv = (*ZYPPER, *self.only, "refresh", "--force", *(r.id for r in repositories))
        return scripts.refresh(argv, "zypper refresh", ENV, ok_codes=OK, sources=self.source_files)

    def refresh_all(self) -> Run:
        # 4: some could not be refreshed; 6: there are none; 106: some were skipped.
        return scripts.refresh_all(
            (*ZYPPER, *self.only, "refresh"), ENV, ok_codes=(0, 4, 6, 106), sources=self.source_files
        )

    def simulate(self, packages: Sequence[Wanted], mine: Sequence[str], *, downgrade: bool = False) -> Run:
        script = self._script(resources.script("packages/zypper_resolve"))
        return scripts.simulate(self.name, script, _words(packages, downgrade), mine, ENV)

    def fetch(self, packages: Sequence[Wanted], *, downgrade: bool = False) -> Run:
        argv = (*ZYPPER, *self.only, "install", "--download-only", *_words(packages, downgrade))
        description = "download " + " ".join(_named(packages))
        return scripts.fetch(
            argv,
            " ".join((*ZYPPER, *self.only, "refresh")),
            description,
            ENV,
            ok_codes=OK,
            despite=DESPITE,
            sources=self.source_files,
            again=not self.only,
        )

    def install(self, packages: Sequence[Wanted], *, downgrade: bool = False) -> Run:
        argv = rpm.patient(*ZYPPER, *self.only, "install", *_words(packages, downgrade))
        description = "zypper install " + " ".join(_named(packages))
        return replace(scripts.transaction(argv, "", rpm.names(packages), description, ENV), ok_codes=OK)

    def reinstall(self, packages: Sequence[Wanted]) -> Run:
        argv = rpm.patient(*ZYPPER, *self.only, "install", "--force", *_words(packages, downgrade=False))
        description = "zypper install --force " + " ".join(_named(packages))
        return replace(scripts.transaction(argv, "", rpm.names(packages), description, ENV), ok_codes=OK)

    def remove(self, names: Sequence[str]) -> Run:
        description = "zypper remove " + " ".join(names)
        # 104: none of them is installed.
        ok_codes, argv = (*OK, 104), rpm.patient("sh", "-s", "--", *names)
        return replace(scripts.transaction(argv, self._script(REMOVE), names, description, ENV), ok_codes=ok_codes)

    def erase(self, names: Sequence[str], inventory: str) -> Run:
        """What came along is pinned as the rest of the set is, and zypper takes nothing for needless that is locked."""
        description = f"zypper remove {' '.join(names)}, and what came with them"
        argv = rpm.patient("sh", "-s", "--", inventory or "-", *names)
        script = self._script(rpm.needed_by_none() + resources.script("packages/zypper_erase"))
        return replace(scripts.transaction(argv, script, names, description, ENV), ok_codes=(*OK, 104))

    def hold(self, names: Sequence[str]) -> Run:
        return Run((*ZYPPER, "addlock", *names), timeout_s=300, env=ENV)

    def unhold(self, names: Sequence[str]) -> Run:
        return Run((*ZYPPER, "removelock", *names), timeout_s=300, env=ENV)

    def same_version(self, lead: str, patterns: Sequence[str], *, hold: bool) -> Run:
        return rpm.same_version(lead, patterns, f'{" ".join(ZYPPER)} addlock "$@"' if hold else "")

    def _script(self, text: str) -> str:
        return f"only='{' '.join(self.only)}'\n{text}"


def _words(packages: Sequence[Wanted], downgrade: bool) -> tuple[str, ...]:
    switches = ("--no-recommends", "--auto-agree-with-licenses")
    return (*switches, *(("--oldpackage",) if downgrade else ()), *_named(packages))


def _named(packages: Sequence[Wanted]) -> tuple[str, ...]:
    return tuple(f"{p.name}={p.version}" if p.version else p.name for p in packages)
