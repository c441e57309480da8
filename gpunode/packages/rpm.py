"""What every rpm-based manager shares: .repo files, rpm's own key store and database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from urllib.parse import urlsplit

from gpunode import resources
from gpunode.model.action import Run
from gpunode.model.packages import PackageVersion
from gpunode.packages import scripts
from gpunode.packages.base import Backend, Part, Repository, Verb, Wanted
from gpunode.packages.listings import parse_rpm, rpm_doubled
from gpunode.regex import regex

ENV = (("LC_ALL", "C.UTF-8"),)
KEYS = "/etc/pki/rpm-gpg"
IMPORT = "rpm --import "
# Where dnf, dnf5, yum, tdnf and zypper keep their repositories.
LISTS = "/etc/yum.repos.d:/etc/distro.repos.d:/usr/share/dnf5/repos.d:/etc/zypp/repos.d"
_ADDED = regex(r"(?m)^added ([0-9a-f]{8,40}-[0-9a-f]{1,16},\d{1,15},[0-9a-f]{40,64},[A-Za-z0-9._:-]+)$")
LOCK_S = "300"  # how long another rpm is waited for
# Of "$@" those that are installed: a roll-back may name what never got in.
PRESENT = 'set -- $(rpm -q --qf "%{NAME}\\n" "$@" | grep -v " is not installed$")\n[ $# -gt 0 ] || exit 0\n'

# Debian's rpm has a database of its own for each user, and makes it in their HOME when it is asked: this one goes with
# the probe's other files. Where rpm is the system's own, HOME decides nothing.
LIST = r"""find_tool rpm || return 127
HOME=$T "$TOOL" -qa --qf '%{NAME}\t%|EPOCH?{%{EPOCH}:}|%{VERSION}-%{RELEASE}\t%{ARCH}\n'
"""


class Family(Backend):
    """What dnf, dnf5, yum, tdnf and zypper have in common, since rpm is below each of them."""

    package_format: str = "rpm"
    listing: str = "rpm"
    list_script: str = LIST
    names_script: str = "rpm -qa --queryformat '%{NAME}\\n'\n"
    source_files: tuple[str, ...] = ("/etc/yum.repos.d/*.repo",)
    key_files: tuple[str, ...] = (f"{KEYS}/*",)
    lock_files: tuple[str, ...] = ("/var/lib/rpm/.rpm.lock", "/usr/lib/sysimage/rpm/.rpm.lock")
    directories: tuple[str, ...] = ("/etc/yum", "/etc/pki/")
    key_directory: str = KEYS
    key_suffix: str = ".key"
    names_version: bool = True
    only: tuple[str, ...] = ()  # options with which it asks gpunode's own repositories alone

    def installed(self, listing: str) -> Mapping[str, PackageVersion]:
        return parse_rpm(listing)

    def doubled(self, listing: str) -> Mapping[str, tuple[str, ...]]:
        return rpm_doubled(listing)

    def trust(self, keyring: str, url: str) -> Run | None:
        return trust(keyring, url)

    def distrust(self, keyring: str, url: str) -> Run | None:
        return distrust(keyring, url)

    def forget(self, keys: Sequence[str]) -> Run | None:
        return forget(keys)

    def added_keys(self, description: str, answer: str) -> tuple[str, ...]:
        return added_keys(description, answer)

    def key_title(self, key: str) -> str:
        return f"{key_name(key)} from rpm's keys"

    def simulate_removal(self, names: Sequence[str], mine: Sequence[str]) -> Run | None:
        return scripts.simulate(self.name, resources.script("packages/rpm_resolve_removal"), names, mine, ENV)

    def erase(self, names: Sequence[str], inventory: str) -> Run:
        removal = self.remove(names)
        argv = patient("sh", "-s", "--", inventory or "-", *names)
        return replace(removal, argv=argv, stdin=f"{needed_by_none()}shift\n{removal.stdin}")

    def repair(self, names: Sequence[str]) -> Run:
        return repair()

    def reinstall(self, packages: Sequence[Wanted]) -> Run:
        tool, touched = self.commands["install"][0], names(packages)
        argv, description = (
            patient(tool, "-y", "reinstall", *self.only, *touched),
            f"{tool} reinstall {' '.join(touched)}",
        )
        return scripts.transaction(argv, "", touched, description, ENV)


def bundle_files(manager: Backend, sha256: str, parts: Sequence[Part], dialect: str) -> Mapping[str, str]:
    text = resources.render("repo/bundle.repo.j2", sha256=sha256, parts=parts, dialect=dialect)
    return {manager.bundle_file: text}


def bundle_indexes(parts: Sequence[Part]) -> tuple[Repository, ...]:
    return tuple(Repository(part.name, "", part.url, "") for part in parts)


def own_keys() -> Run:
    """What an install from the host's own repositories would import; nothing to roll back, since it is theirs."""
    return Run(
        ("sh", "-s", "--", LISTS),
        timeout_s=120,
        env=ENV,
        stdin=resources.script("packages/rpm_own_keys"),
        description="rpm --import the key files that this host's own enabled repositories name",
    )


def commands(tool: str) -> Mapping[Verb, tuple[str, ...]]:
    """Commands of a host whose rpm front end is `tool`."""
    return MappingProxyType(
        {
            "install": (tool, "install"),
            "remove": (tool, "remove"),
            "purge": (tool, "remove"),
            "owner": ("rpm", "-qf"),
            "repair": ("rpm", "--rebuilddb"),
            "search": (tool, "search"),
            "versions": ("rpm", "-q"),
            "remove-version": ("rpm", "-e"),
        }
    )


def repo_file(directory: str, repository: Repository, dialect: str) -> tuple[str, str]:
    """(path, text); `dialect` is yum (also dnf's), zypp or tdnf: they name their signature switches differently."""
    text = resources.render(
        "repo/rpm.repo.j2",
        id=repository.id,
        title=repository.title,
        url=repository.url,
        keyring=repository.keyring,
        gpg_check_packages=repository.gpg_check_packages,
        dialect=dialect,
        priority=repository.priority,
    )
    return f"{directory}/{repository.id}.repo", text


# A mirror that sends nothing: dnf and yum try ten times by themselves, 30 s each (dnf.conf(5)). The limit is on silence
# (or less than their own 1,000 bytes a second), not on the whole of a download.
SILENCE = ("--setopt=timeout=30", "--setopt=retries=1")


def patient(*argv: str) -> tuple[str, ...]:
    """The same command, once no other process holds rpm's lock: dnf and zypper wait for their own kind only."""
    return ("sh", "-c", resources.script("packages/rpm_lock"), "sh", LOCK_S, *argv)


def trust(keyring: str, url: str) -> Run:
    """rpm's own key store, for gpgcheck; the file was verified before. The journal keeps which keys are new in it."""
    return replace(_keys("trust", (keyring, _host(url)), f"{IMPORT}{keyring}"), record_output=True)


def distrust(keyring: str, url: str) -> Run:
    """Erase the file's keys again, as far as they came into rpm's store after the file was written."""
    return _keys("distrust", (keyring, _host(url)), f"rpm --erase the keys of {keyring}")


def forget(keys: Sequence[str]) -> Run:
    """Erase exactly the keys that `trust` reported (`added_keys`), but for those that another enabled entry uses."""
    return _keys("forget", keys, f"rpm --erase {' '.join(key_name(key) for key in keys)}, where nothing else uses it")


def added_keys(description: str, answer: str) -> tuple[str, ...]:
    """The keys that a command of `trust` reported as added to rpm's store; () for any other command's answer."""
    return tuple(_ADDED.findall(answer)) if description.startswith(IMPORT) else ()


def key_name(key: str) -> str:
    """What rpm calls a key of `added_keys`."""
    return f"gpg-pubkey-{key.partition(',')[0]}"


def _keys(verb: str, words: Sequence[str], description: str) -> Run:
    return Run(
        ("sh", "-s", "--", verb, LISTS, *words),
        env=ENV,
        stdin=resources.script("packages/rpm_keys"),
        description=description,
    )


def _host(url: str) -> str:
    return urlsplit(url).hostname or "-"


def repair() -> Run:
    """rpm knows no half-configured package; a power cut can leave a database that does not answer."""
    return Run(("rpm", "--rebuilddb"), timeout_s=scripts.INSTALL_S, env=ENV, detach=True)


def named(packages: Sequence[Wanted]) -> tuple[str, ...]:
    """name-version, the form of dnf, yum and tdnf."""
    return tuple(f"{p.name}-{p.version}" if p.version else p.name for p in packages)


def names(packages: Sequence[Wanted]) -> tuple[str, ...]:
    return tuple(p.name for p in packages)


def resolve(tool: str) -> str:
    """sh that asks dnf's resolver, or that of a tool that answers as dnf does."""
    return f"tool={tool}\n{resources.script('packages/dnf_resolve')}"


def needed_by_none() -> str:
    """sh that ends with 65 where a package that is not gpunode's needs one of NAMEs; "$@": INVENTORY NAME..."""
    asks = f"resolve() (\n{resources.script('packages/rpm_resolve_removal')})\n"
    return asks + resources.script("packages/rpm_came_along") + resources.script("packages/rpm_erase")


def same_version(lead: str, patterns: Sequence[str], hold: str) -> Run:
    return scripts.same_version(resources.script("packages/rpm_versions"), hold, lead, patterns, ENV)
