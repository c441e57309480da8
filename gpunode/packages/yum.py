"""CentOS 7: yum 3, whose versionlock is a plugin of its own and whose downgrade is a verb of its own."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from gpunode.model.action import Run
from gpunode.model.files import FileFacts
from gpunode.packages import rpm, scripts
from gpunode.packages.base import Repository, Wanted
from gpunode.packages.holds import VERSIONLOCKS, versionlocks
from gpunode.packages.rpm import ENV

VERSIONLOCK = "yum-plugin-versionlock"
# An `add` on top of an older lock, such as one that chose the branch, would leave the older one to count as well.
LOCK = 'yum -q -y versionlock delete "$@" >/dev/null 2>&1 </dev/null || :\nyum -y versionlock add "$@"\n'
REMOVE = (
    'yum -q -y versionlock delete "$@" >/dev/null 2>&1 </dev/null || :\n' + rpm.PRESENT + 'exec yum -y remove "$@"\n'
)
# yum 3 ends with 0 when a named package does not exist or is there in another version: check again.
INSTALL = 'yum -y install "$@" && { rpm -q "$@" >/dev/null || yum -y downgrade "$@"; } && rpm -q "$@"\n'


class Yum(rpm.Family):
    """yum 3 waits for /var/run/yum.pid and reports who holds it. Written from yum(8); never run on a CentOS 7."""

    name = "yum"
    source_directory = "/etc/yum.repos.d"
    key_tools: tuple[str, ...] = ("gnupg2", "curl", "ca-certificates")
    hold_tools: tuple[str, ...] = (VERSIONLOCK,)
    tools = ("yum", "rpm")
    hold_files = VERSIONLOCKS
    proxy_files = ("/etc/yum.conf",)
    pid_files = ("/var/run/yum.pid",)
    commands = rpm.commands("yum")

    def held(self, listing: str, files: Mapping[str, FileFacts]) -> frozenset[str]:
        return versionlocks(files)

    def kernel_headers(self, installed: Collection[str]) -> tuple[tuple[str, str], ...]:
        return (("kernel", "kernel-devel"),) if "kernel" in installed else ()

    def source_file(self, repository: Repository) -> tuple[str, str]:
        return rpm.repo_file(self.source_directory, repository, "yum")

    def refresh(self, repositories: Sequence[Repository]) -> Run:
        ids = ",".join(r.id for r in repositories)
        limit = ("--disablerepo=*", f"--enablerepo={ids}") if ids else ()
        argv = ("yum", "-y", *rpm.SILENCE, "--setopt=*.skip_if_unavailable=0", *limit, "makecache")
        return scripts.refresh(argv, "yum makecache", ENV, sources=self.source_files)

    def refresh_all(self) -> Run:
        return scripts.refresh_all(
            ("yum", "-y", "makecache", "fast", *rpm.SILENCE), ENV, ok_codes=(0, 1), sources=self.source_files
        )

    def simulate(self, packages: Sequence[Wanted], mine: Sequence[str], *, downgrade: bool = False) -> Run:
        return scripts.simulate(self.name, rpm.resolve("yum"), rpm.named(packages), mine, ENV)

    def fetch(self, packages: Sequence[Wanted], *, downgrade: bool = False) -> Run:
        argv = ("yum", "-y", "install", "--downloadonly", *rpm.SILENCE, *rpm.named(packages))
        description = "download " + " ".join(rpm.named(packages))
        return scripts.fetch(argv, "yum -y clean expire-cache", description, ENV, sources=self.source_files)

    def install(self, packages: Sequence[Wanted], *, downgrade: bool = False) -> Run:
        words, touched = rpm.named(packages), rpm.names(packages)
        description = "yum install " + " ".join(words)
        argv = rpm.patient("sh", "-s", "--", *words)
        return scripts.transaction(argv, INSTALL, touched, description, ENV)

    def remove(self, names: Sequence[str]) -> Run:
        description = "yum remove " + " ".join(names)
        argv = rpm.patient("sh", "-s", "--", *names)
        return scripts.transaction(argv, REMOVE, names, description, ENV)

    def hold(self, names: Sequence[str]) -> Run:
        description = "yum versionlock add " + " ".join(names)
        return Run(("sh", "-s", "--", *names), timeout_s=300, env=ENV, stdin=LOCK, description=description)

    def unhold(self, names: Sequence[str]) -> Run:
        return Run(("yum", "-y", "versionlock", "delete", *names), timeout_s=300, env=ENV)

    def same_version(self, lead: str, patterns: Sequence[str], *, hold: bool) -> Run:
        return rpm.same_version(lead, patterns, LOCK if hold else "")
