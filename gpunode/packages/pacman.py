"""Arch Linux: pacman. Holds are IgnorePkg lines in a file of gpunode's own that pacman.conf includes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from gpunode import resources
from gpunode.errors import UnsupportedHost
from gpunode.model.action import Run
from gpunode.model.files import FileFacts
from gpunode.model.packages import PackageVersion
from gpunode.packages import scripts
from gpunode.packages.base import Backend, Repository, Wanted
from gpunode.packages.holds import PACMAN_IGNORES, pacman_ignores
from gpunode.packages.listings import parse_pacman

ENV = (("LC_ALL", "C.UTF-8"),)
LOCK_S = "300"  # how long another pacman is waited for
# A name that is ignored would be asked about when it is installed by name; --noconfirm answers yes to that one.
HOLD = scripts.hold_file(PACMAN_IGNORES, key="IgnorePkg", includer="/etc/pacman.conf", section="options")
MIRRORS = ("/etc/pacman.conf", "/etc/pacman.d/mirrorlist")
ASK_NOTHING = ("--noconfirm", "--needed")

LIST = """find_tool pacman || return 127
"$TOOL" -Q
"""
# The repositories' kernels (wiki.archlinux.org/title/Kernel), each with headers of its own.
KERNELS = frozenset({"linux", "linux-lts", "linux-zen", "linux-hardened", "linux-rt", "linux-rt-lts"})


class Pacman(Backend):
    """One version of everything: the repositories hold no other, so none can be asked for by name.

    The index is refreshed for an install, as `pacman -Sy` does, without upgrading the rest: when that is not the
    admin's wish, they upgrade first and there is nothing to refresh.
    """

    name = "pacman"
    source_directory = "/etc/pacman.d"
    key_directory = "/etc/pacman.d"
    key_suffix = ".asc"
    key_tools: tuple[str, ...] = ("gnupg", "curl", "ca-certificates")
    hold_tools: tuple[str, ...] = ()
    names_version = False
    tools = ("pacman",)
    listing = "pacman"
    list_script = LIST
    # 1 is its answer where nothing is installed, too (query.c); then its database is checked.
    names_script = "pacman -Qq || pacman -Dk >/dev/null\n"
    source_files = ()
    hold_files = (PACMAN_IGNORES,)
    directories = ("/etc/pacman",)
    commands = MappingProxyType(
        {
            "install": ("pacman", "-S"),
            "remove": ("pacman", "-Rs"),
            "purge": ("pacman", "-Rns"),
            "owner": ("pacman", "-Qo"),
            "repair": ("pacman", "-Dk"),
            "search": ("pacman", "-Ss"),
        }
    )

    def installed(self, listing: str) -> Mapping[str, PackageVersion]:
        return parse_pacman(listing)

    def held(self, listing: str, files: Mapping[str, FileFacts]) -> frozenset[str]:
        return pacman_ignores(files)

    def kernel_headers(self, installed: Collection[str]) -> tuple[tuple[str, str], ...]:
        return tuple((kernel, f"{kernel}-headers") for kernel in sorted(KERNELS & set(installed)))

    def source_file(self, repository: Repository) -> tuple[str, str]:
        raise UnsupportedHost(
            f"{repository.title} has no packages for pacman",
            evidence="NVIDIA builds .deb and .rpm packages; Arch Linux builds its own",
            remedy="use --driver-source distro",
        )

    def refresh(self, repositories: Sequence[Repository]) -> Run:
        argv = ("sh", "-c", resources.script("packages/pacman"), "sh", LOCK_S, "-Sy", "--noconfirm")
        return scripts.refresh(argv, "pacman -Sy", ENV, sources=MIRRORS)

    def refresh_all(self) -> Run:
        return self.refresh(())

    def simulate(self, packages: Sequence[Wanted], mine: Sequence[str], *, downgrade: bool = False) -> Run:
        return scripts.simulate(self.name, resources.script("packages/pacman_resolve"), _names(packages), mine, ENV)

    def simulate_removal(self, names: Sequence[str], mine: Sequence[str]) -> Run | None:
        return scripts.simulate(self.name, resources.script("packages/pacman_resolve_removal"), names, mine, ENV)

    def fetch(self, packages: Sequence[Wanted], *, downgrade: bool = False) -> Run:
        words = (LOCK_S, "-Sw", *ASK_NOTHING, *_names(packages))
        description = "download " + " ".join(_names(packages))
        argv = ("sh", "-c", resources.script("packages/pacman"), "sh", *words)
        return scripts.fetch(argv, "pacman -Sy --noconfirm", description, ENV, sources=MIRRORS)

    def install(self, packages: Sequence[Wanted], *, downgrade: bool = False) -> Run:
        names = _names(packages)
        return _pacman(("-S", *ASK_NOTHING, *names), "pacman -S " + " ".join(names), packages=names)

    def reinstall(self, packages: Sequence[Wanted]) -> Run:
        names = _names(packages)
        return _pacman(("-S", "--noconfirm", *names), "pacman -S " + " ".join(names), packages=names)

    def remove(self, names: Sequence[str]) -> Run:
        """With their pins; what nothing else needs is removed too (-s), edited files are kept as .pacsave."""
        script = f'(\nset -- unhold "$@"\n{HOLD})\n'
        script += 'set -- $(pacman -Qq "$@" 2>/dev/null)\n[ $# -gt 0 ] || exit 0\n'
        script += f'set -- {LOCK_S} -Rs --noconfirm "$@"\n{resources.script("packages/pacman")}'
        description = "pacman -Rs " + " ".join(names)
        argv = ("sh", "-s", "--", *names)
        return scripts.transaction(argv, script, names, description, ENV)

    def hold(self, names: Sequence[str]) -> Run:
        return _file("hold", names)

    def unhold(self, names: Sequence[str]) -> Run:
        return _file("unhold", names)

    def same_version(self, lead: str, patterns: Sequence[str], *, hold: bool) -> Run:
        words = f'set -- hold "$@"\n{HOLD}' if hold else ""
        return scripts.same_version(resources.script("packages/pacman_versions"), words, lead, patterns, ENV)

    def repair(self, names: Sequence[str]) -> Run:
        """A killed pacman leaves its lock behind, which pacman.sh removes; then the database is checked."""
        return _pacman(("-Dk",), "pacman -Dk")

    def trust(self, keyring: str, url: str) -> Run | None:
        """Nothing to import: packages come from the distribution alone."""
        return None

    def distrust(self, keyring: str, url: str) -> Run | None:
        return None

    def forget(self, keys: Sequence[str]) -> Run | None:
        return None


def _pacman(words: Sequence[str], description: str, *, packages: tuple[str, ...] = ()) -> Run:
    argv, script = ("sh", "-s", "--", LOCK_S, *words), resources.script("packages/pacman")
    return scripts.transaction(argv, script, packages, description, ENV)


def _file(verb: str, names: Sequence[str]) -> Run:
    description = f"{verb} {' '.join(names)} in /etc/pacman.d/gpunode-hold.conf"
    return Run(("sh", "-s", "--", verb, *names), env=ENV, stdin=HOLD, description=description)


def _names(packages: Sequence[Wanted]) -> tuple[str, ...]:
    return tuple(p.name for p in packages)
