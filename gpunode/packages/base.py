"""Commands of a package manager, as Run values. A backend knows its tool and nothing about GPUs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

from gpunode.advice import typed
from gpunode.model.action import Run
from gpunode.model.files import FileFacts
from gpunode.model.packages import PackageFacts, PackageVersion


class Repository(NamedTuple):
    """One package repository as it should be on the host."""

    id: str  # file stem: "gpunode-cuda", "gpunode-container-toolkit"
    title: str
    url: str  # base URL, ends in "/"
    keyring: str  # path of the trusted key on the host
    gpg_check_packages: bool = True  # rpm: packages are signed themselves, not only the metadata
    path: str | None = None  # the file that names it already; None: the backend's own (source_file)
    priority: int | None = None  # rpm: below 99 it wins over every other repository that has a package of the same name


class Part(NamedTuple):
    """One of the distribution's repositories in a bundle that lies unpacked on the host."""

    name: str  # "gpunode-bundle-0"
    url: str  # "file:///var/cache/gpunode/bundle/archive/0/"
    suite: str = ""  # apt
    components: tuple[str, ...] = ()


class Wanted(NamedTuple):
    """A package that should be installed; version None: what the repository's pin gives."""

    name: str
    version: str | None = None  # the package manager's own form: "1.20.0-1"


# Commands that gpunode names in remedies: "purge" removes the configuration too where the manager has that, "owner"
# asks which package owns a file, "repair" finishes an interrupted transaction. Where packages can be `doubled`,
# "versions" prints those installed of a package, "remove-version" removes one of them.
Verb = Literal["install", "remove", "purge", "owner", "repair", "search", "versions", "remove-version"]


class Backend(Protocol):
    """One package manager: all that differs between it and the others, and nothing about GPUs.

    Every Run that changes packages is detached, waits for the lock, and never asks. What has a body here is right for
    most managers.
    """

    name: str  # a key of registry.BACKENDS: "apt", "dnf", "dnf5", ...
    source_directory: str  # "/etc/apt/sources.list.d"
    key_directory: str  # "/etc/apt/keyrings": where a repository's verified key lies
    key_suffix: str  # ".asc"
    key_tools: tuple[str, ...]  # packages that fetch a key over https and compute its fingerprint
    hold_tools: tuple[str, ...]  # packages without which it cannot pin anything
    names_version: bool  # `install` names an exact driver version; False: something else decides (pinning package)
    commands: Mapping[Verb, tuple[str, ...]]  # commands to run; the names follow

    def words(self, verb: Verb, *names: str) -> str:
        """A command to run: "apt-get remove nvidia-open"."""
        return typed(*self.commands[verb], *names)

    family: str = ""  # managers of one family replace each other: what the catalog calls "dnf" may be a host's dnf5
    package_format: str = ""  # "deb" | "rpm": which of a vendor's repositories it reads; "": neither
    vendor_release: str = ""  # what follows a driver's version in the versions of packages: "-*"
    default_flavour: str = "generic"  # of a kernel whose release names none
    signs_indexes: bool = True  # it can be relied on to check the signature of a repository's index
    bundle_file: str = ""  # what names a bundle's part of the distribution's archive; "": no bundles are made for it
    preferences: str = ""  # directory of files that choose a package's source; "": a repository's priority does
    erase_resumes: bool = False  # an interrupted `erase` knows by itself what it was about to remove
    reads_lists: tuple[Run, ...] = ()  # fails where its lists are at odds with each other; nothing is fetched
    fails_with_build: bool = False  # an install fails when a package's module does not build
    not_found: int | None = None  # exit code of an install whose package or version is in no repository
    tools: tuple[str, ...]  # its programs, which the probe looks for
    listing: str  # the probe's section with its packages: "dpkg", "rpm", "pacman"; managers may share one
    # sh of the probe that prints that section, a line for each package that begins with its name and a blank or a tab;
    # `find_tool NAME` puts a trusted path into $TOOL.
    list_script: str
    names_script: str  # sh that prints the name of every installed package, one a line
    # Paths on the host, for the probe; globs are filled in.
    source_files: tuple[str, ...]  # that may hold repositories and pins
    key_files: tuple[str, ...] = ()  # that may hold their keys
    hold_files: tuple[str, ...] = ()  # that list what is pinned
    proxy_files: tuple[str, ...] = ()  # that may set a proxy for it; it goes by the login's as well
    lock_files: tuple[str, ...] = ()  # on which its processes take an fcntl lock
    pid_files: tuple[str, ...] = ()  # that hold the number of its process
    directories: tuple[str, ...] = ()  # beginnings of paths: what is written there goes when the packages go

    def is_at_home(self, tools: Collection[str]) -> bool:
        """Whether this is the manager of a host with these tools."""
        return set(self.tools) <= set(tools)

    def installed(self, listing: str) -> Mapping[str, PackageVersion]:
        """Name -> version and status, from its section of the probe."""
        ...

    def held(self, listing: str, files: Mapping[str, FileFacts]) -> frozenset[str]:
        """Pinned names, or patterns where a pin is one, from its section and from `hold_files`."""
        return frozenset()

    def residue(self, listing: str) -> frozenset[str]:
        """Removed packages of which it keeps the configuration, from its section."""
        return frozenset()

    def doubled(self, listing: str) -> Mapping[str, tuple[str, ...]]:
        """Name -> versions of packages that an interrupted transaction left in more than one, from its section."""
        return {}

    def auto_upgrades(
        self, settings: str, installed: Mapping[str, PackageVersion], services: Mapping[str, str]
    ) -> bool:
        """Whether it applies updates by itself; `settings`: the probe's `auto_upgrade`, `services`: unit -> state."""
        return False

    def kernel_headers(self, installed: Collection[str]) -> tuple[tuple[str, str], ...]:
        """(package that installs new kernels, package of their headers) for those that are installed."""
        return ()

    def source_file(self, repository: Repository) -> tuple[str, str]:
        """(path, text) of the file that adds `repository`; overwrites nothing an admin wrote."""
        ...

    def named(self, name: str, version: str) -> str:
        """A package at a version, as `install` takes the words."""
        return f"{name}={version}"

    def alone(self) -> Backend:
        """The same manager on a host where a bundle is unpacked: what needs a network is not asked."""
        return self

    def bundle_files(self, sha256: str, parts: Sequence[Part], keyring: str) -> Mapping[str, str]:
        """Path -> text of what makes the `parts` of the bundle with this hash known; the path `bundle_file` is in it.

        `keyring`: what the host's own source of the same archive names, where it was read; "": the manager's own keys.
        """
        return {}

    def bundle_indexes(self, parts: Sequence[Part]) -> tuple[Repository, ...]:
        """What `refresh` takes for those files, each by itself."""
        return ()

    def own_keys(self) -> Run | None:
        """Accept the keys that the host's own repositories name, as their first package would; None where a source
        names its key."""
        return None

    def refresh(self, repositories: Sequence[Repository]) -> Run:
        """Fetch their indexes; fail when any of them cannot be fetched or is not signed right."""
        ...

    def refresh_all(self) -> Run:
        """Fetch every index as far as possible; an install that needs a missing one fails."""
        ...

    def trust(self, keyring: str, url: str) -> Run | None:
        """Make the manager accept a key file, fetched from `url`, that was verified already; None where the source
        names its key."""
        ...

    def distrust(self, keyring: str, url: str) -> Run | None:
        """The rollback of `trust`, for the keys that it added and nothing else uses; None where `trust` is."""
        ...

    def forget(self, keys: Sequence[str]) -> Run | None:
        """The same long after: `keys` are what `trust` reported as added. None where `trust` is."""
        ...

    def added_keys(self, description: str, answer: str) -> tuple[str, ...]:
        """The keys that a command of `trust` reported as added; () for any other command's answer."""
        return ()

    def key_title(self, key: str) -> str:
        """The name of one of `added_keys`, and where it is: "gpg-pubkey-d42d0685 from rpm's keys"."""
        return key

    def simulate(self, packages: Sequence[Wanted], mine: Sequence[str], *, downgrade: bool = False) -> Run:
        """The resolver's answer to `install`, read-only; fails (65) when it removes what matches none of `mine`."""
        ...

    def fetch(self, packages: Sequence[Wanted], *, downgrade: bool = False) -> Run:
        """Download what `install` needs and install nothing; tried again while a mirror lags behind its own index."""
        ...

    def install(self, packages: Sequence[Wanted], *, downgrade: bool = False) -> Run: ...

    def reinstall(self, packages: Sequence[Wanted]) -> Run:
        """Write the files of installed packages anew, at the version they have."""
        ...

    def with_config(self, install: Run) -> Run:
        """`install`, bringing back configuration files that were removed; as it is where any install does so."""
        return install

    def stream(self, module: str, stream: str | None) -> tuple[Run, ...]:
        """Choose a module stream, None: none of them; () where there are none."""
        return ()

    def stream_file(self, module: str) -> str:
        """The file that says which stream of a module is enabled; "" where there are none."""
        return ""

    def enabled_stream(self, text: str) -> str | None:
        """The stream that the text of `stream_file` names; None: none is enabled."""
        return None

    def led_by(self, module: str, names: Sequence[str], runs: Sequence[Run]) -> tuple[Run, ...]:
        """`runs`, in which the packages that match `names` come at the version of the package `module`."""
        return tuple(runs)

    def simulate_removal(self, names: Sequence[str], mine: Sequence[str]) -> Run | None:
        """The resolver's answer to `remove`, as that of `simulate`; None where it is not asked."""
        return None

    def remove(self, names: Sequence[str]) -> Run:
        """Remove packages, and their pins with them."""
        ...

    def purge(self, names: Sequence[str]) -> Run:
        """`remove`, configuration included."""
        return self.remove(names)

    def erase(self, names: Sequence[str], inventory: str) -> Run:
        """Remove `names` for good, for an undo; fails (65) when a package that is not gpunode's needs one of them.

        `inventory`: a file on the host with the names of all packages from before, "" when there is none. Interrupted,
        the same command goes on with what it was about to remove, though none of `names` may be there any more.
        """
        return self.remove(names)

    def hold(self, names: Sequence[str]) -> Run: ...

    def same_version(self, lead: str, patterns: Sequence[str], *, hold: bool) -> Run:
        """Fail (65) unless every installed package that matches is at `lead`'s upstream version; then pin them all."""
        ...

    def unhold(self, names: Sequence[str]) -> Run: ...

    def repair(self, names: Sequence[str]) -> Run:
        """Finish what a killed transaction left half-installed, half-configured or half-removed: `names`."""
        ...


def installation(
    backend: Backend, packages: Sequence[Wanted], mine: Sequence[str], *, downgrade: bool = False
) -> tuple[Run, ...]:
    """Ask, download, install: what can go wrong in the resolver or on the way here does so before anything changes."""
    return (
        backend.simulate(packages, mine, downgrade=downgrade),
        backend.fetch(packages, downgrade=downgrade),
        backend.install(packages, downgrade=downgrade),
    )


def download_and_install(backend: Backend, packages: Sequence[Wanted]) -> tuple[Run, ...]:
    """A transaction is never ended; a download is, when its mirror sends nothing. So one comes before the other."""
    return (backend.fetch(packages), backend.install(packages))


def missing(wanted: Sequence[Wanted], packages: PackageFacts) -> tuple[Wanted, ...]:
    """Those of `wanted` that are absent, half-configured, or at another version than the one asked for."""
    return tuple(w for w in wanted if not _is_there(w, packages))


def _is_there(want: Wanted, packages: PackageFacts) -> bool:
    have = packages.installed.get(want.name)
    return have is not None and have.configured and want.version in (None, have.version)
