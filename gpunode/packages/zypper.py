"""SUSE family: zypper. Pins are locks, which refuse a removal too."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from gpunode import resources
from gpunode.model.action import Run
from gpunode.model.files import FileFacts
from gpunode.packages import rpm, scripts
from gpunode.packages.base import Repository, Wanted
from gpunode.packages.holds import ZYPP_LOCKS, zypp_locks

# libzypp gives up at once when another process holds its lock, unless this says for how many seconds it waits.
ENV = (*rpm.ENV, ("ZYPP_LOCK_TIMEOUT", "300"))
ZYPPER = ("zypper", "--non-interactive")
LOCK = "zypper --non-interactive addlock"
# A locked package cannot be removed, and a lock without its package would refuse the next install.
REMOVE = (
    'zypper --non-interactive removelock "$@" </dev/null\n'
    + rpm.PRESENT
    + 'exec zypper --non-interactive remove --clean-deps "$@"\n'
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


class Zypper(rpm.Family):
    """Never --gpg-auto-import-keys: a key gets in through `trust`, after its fingerprint was computed."""

    name = "zypper"
    source_directory = "/etc/zypp/repos.d"
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

    def refresh(self, repositories: Sequence[Repository]) -> Run:
        argv = (*ZYPPER, "refresh", "--force", *(r.id for r in repositories))
        return scripts.refresh(argv, "zypper refresh", ENV, ok_codes=OK, sources=self.source_files)

    def refresh_all(self) -> Run:
        # 4: some could not be refreshed; 6: there are none; 106: some were skipped.
        return scripts.refresh_all((*ZYPPER, "refresh"), ENV, ok_codes=(0, 4, 6, 106), sources=self.source_files)

    def simulate(self, packages: Sequence[Wanted], mine: Sequence[str], *, downgrade: bool = False) -> Run:
        return scripts.simulate(
            self.name, resources.script("packages/zypper_resolve"), _words(packages, downgrade), mine, ENV
        )

    def fetch(self, packages: Sequence[Wanted], *, downgrade: bool = False) -> Run:
        argv = (*ZYPPER, "install", "--download-only", *_words(packages, downgrade))
        description = "download " + " ".join(_named(packages))
        return scripts.fetch(
            argv,
            "zypper --non-interactive refresh",
            description,
            ENV,
            ok_codes=OK,
            despite=DESPITE,
            sources=self.source_files,
        )

    def install(self, packages: Sequence[Wanted], *, downgrade: bool = False) -> Run:
        argv = rpm.patient(*ZYPPER, "install", *_words(packages, downgrade))
        description = "zypper install " + " ".join(_named(packages))
        return replace(scripts.transaction(argv, "", rpm.names(packages), description, ENV), ok_codes=OK)

    def reinstall(self, packages: Sequence[Wanted]) -> Run:
        argv = rpm.patient(*ZYPPER, "install", "--force", *_words(packages, downgrade=False))
        description = "zypper install --force " + " ".join(_named(packages))
        return replace(scripts.transaction(argv, "", rpm.names(packages), description, ENV), ok_codes=OK)

    def remove(self, names: Sequence[str]) -> Run:
        description = "zypper remove " + " ".join(names)
        # 104: none of them is installed.
        ok_codes, argv = (*OK, 104), rpm.patient("sh", "-s", "--", *names)
        return replace(scripts.transaction(argv, REMOVE, names, description, ENV), ok_codes=ok_codes)

    def hold(self, names: Sequence[str]) -> Run:
        return Run((*LOCK.split(), *names), timeout_s=300, env=ENV)

    def unhold(self, names: Sequence[str]) -> Run:
        return Run((*ZYPPER, "removelock", *names), timeout_s=300, env=ENV)

    def same_version(self, lead: str, patterns: Sequence[str], *, hold: bool) -> Run:
        return rpm.same_version(lead, patterns, f'{LOCK} "$@"' if hold else "")


def _words(packages: Sequence[Wanted], downgrade: bool) -> tuple[str, ...]:
    switches = ("--no-recommends", "--auto-agree-with-licenses")
    return (*switches, *(("--oldpackage",) if downgrade else ()), *_named(packages))


def _named(packages: Sequence[Wanted]) -> tuple[str, ...]:
    return tuple(f"{p.name}={p.version}" if p.version else p.name for p in packages)
