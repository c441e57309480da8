"""A bundle's packages by dnf or zypper itself, below a root of its own: an EL, Fedora or SUSE that is not here.

What counts is checked twice, by the manager and here: the index's signature, each package's hash in that index, and
each package's own signature by the key of the repository that it is from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from gpunode.bundles.archive import INDEX_BYTES
from gpunode.bundles.contents import Contents, Origin
from gpunode.bundles.manifest import PATH
from gpunode.bundles.repodata import index_files, listed
from gpunode.bundles.scratch import FETCH_S, KEY_S, copy, described, last_words, run_script
from gpunode.errors import GpunodeError, StepFailed, UsageError
from gpunode.foreign import read_file
from gpunode.model.bundle import BundledPackage
from gpunode.transport.base import Completed, Transport

# How the file of rpm's package database begins, by its kind, and what it is called then.
_DATABASES = {b"SQLite format 3\0": "rpmdb.sqlite", b"RpmP": "Packages.db"}
# The lists of files, since a package may need one by its path; of a zchunk no bundle keeps the other form.
_DNF = "[main]\ngpgcheck=1\nbest=1\nplugins=0\nzchunk=0\noptional_metadata_types=filelists\n"


def fetched(transport: Transport, work: Path, contents: Contents, status: bytes) -> tuple[BundledPackage, ...]:
    """The files below `work`/bundle, as the repositories have them, but for the keys. `status`: a file of rpm's
    package database.

    Raises StepFailed with the manager's own words.
    """
    bundle = work / "bundle"
    (work / "repos").mkdir()
    for number, origin in enumerate(contents.origins):
        signed = _fetch_index(transport, origin, bundle, work / f"primary-{number}")
        _configure(work, origin, number, signed=signed)
    _put_database(transport, work, status)
    (work / "dnf.conf").write_text(_DNF + _platform(contents))
    done = _download(transport, work, contents)
    if done.code:
        raise _failed(done, contents)
    _refuse_moved(Path(done.stdout.decode().strip().removeprefix("root ")), contents.origins, bundle)
    packages = tuple(_place_packages(contents.origins, work))
    for origin in contents.origins:
        if origin.signs_packages:
            _check_signatures(transport, work, origin)
    return packages


def _keyring(origin: Origin, bundle: Path) -> str:
    return origin.keyring or str(bundle / origin.key_path)


def _fetch_index(transport: Transport, origin: Origin, bundle: Path, primary: Path) -> bool:
    """Whether it is signed, as it has to be where the packages are not."""
    place = bundle / origin.path
    done = run_script(transport, "bundle/rpm_index", KEY_S, str(place), origin.url, _keyring(origin, bundle))
    if done.code:
        problem = f"the index of {origin.url} cannot be fetched"
        if done.code == 65:
            problem = f"the index of {origin.url} is not signed by the expected key"
        raise StepFailed(problem, evidence=last_words(done))
    signed = done.stdout.decode("utf-8", "replace").strip() == "signed"
    if not signed and not origin.signs_packages:
        raise GpunodeError(
            f"{origin.url} has no signature of its index, and its packages have none",
            evidence="repodata/repomd.xml.asc is not there",
        )
    repomd = read_file(place / "repodata/repomd.xml", INDEX_BYTES).decode("utf-8", "replace")
    words = [word for pair in index_files(repomd, origin.url) for word in pair]
    done = run_script(transport, "bundle/rpm_files", FETCH_S, str(place), origin.url, str(primary), *words)
    if done.code:
        raise StepFailed(f"the index of {origin.url} cannot be fetched", evidence=last_words(done))
    return signed


def _configure(work: Path, origin: Origin, number: int, *, signed: bool) -> None:
    """One entry, as both managers read it; its keys beside it, for the one that has no gpgkey of its own."""
    key = work / "repos" / f"{number}.key"
    copy(Path(_keyring(origin, work / "bundle")), key)
    (work / "repos" / f"origin-{number}.repo").write_text(
        f"[origin-{number}]\nname={origin.kind}\nbaseurl={origin.url}\nenabled=1\nautorefresh=1\n"
        f"gpgcheck={int(origin.signs_packages)}\nrepo_gpgcheck={int(signed)}\ngpgkey=file://{key}\n"
        "skip_if_unavailable=0\n"
    )


def _put_database(transport: Transport, work: Path, status: bytes) -> None:
    if not status:
        return
    name = next((name for begins, name in _DATABASES.items() if status.startswith(begins)), None)
    if name is None:
        raise UsageError(
            "--status is not a file of rpm's package database",
            evidence=f"it begins as none of {', '.join(_DATABASES.values())}",
            remedy="rpm --eval %_dbpath prints where a host has it",
        )
    done = transport.run("rpm --eval %_dbpath", timeout_s=60)
    place = work / "root" / done.stdout.decode("utf-8", "replace").strip().lstrip("/")
    place.mkdir(parents=True)
    (place / name).write_bytes(status)


def _platform(contents: Contents) -> str:
    """Which distribution's module streams are meant: "platform:el9"."""
    return f"module_platform_id=platform:el{contents.target.version.partition('.')[0]}\n" if contents.module else ""


def _download(transport: Transport, work: Path, contents: Contents) -> Completed:
    target = contents.target
    script, chosen = "bundle/dnf_download", (contents.module, contents.lock)
    if contents.manager.name == "zypper":
        script, chosen = "bundle/zypper_download", (contents.lead, " ".join(contents.follow))
    words = (str(work), target.version, target.machine, *chosen)
    return run_script(transport, script, FETCH_S, *words, *contents.names)


def _refuse_moved(root: Path, origins: Sequence[Origin], bundle: Path) -> None:
    """The manager fetched the index again: had it changed meanwhile, its packages would be of another one."""
    for number, origin in enumerate(origins):
        kept = (bundle / origin.path / "repodata/repomd.xml").read_bytes()
        names = (f"origin-{number}", f"origin-{number}-*")  # dnf adds a hash of the address
        seen = [path for name in names for path in root.rglob(f"{name}/repodata/repomd.xml")]
        if not seen or any(read_file(path, INDEX_BYTES) != kept for path in seen):
            raise GpunodeError(f"{origin.url} changed while it was read", remedy="run the same command again")


def _place_packages(origins: Sequence[Origin], work: Path) -> Iterator[BundledPackage]:
    """Where its repository's own index has each; a package that none of them lists is refused."""
    for file in sorted((work / "packages").rglob("*.rpm")):
        sha256 = described(file).sha256
        seen = ((origin, listed(work / f"primary-{number}", sha256)) for number, origin in enumerate(origins))
        origin, found = next(((one, package) for one, package in seen if package), (None, None))
        if origin is None or found is None:
            raise GpunodeError(f"{file.name} is in none of the indexes", evidence=f"its SHA-256 is {sha256}")
        path = f"{origin.path}/{found.path}"
        if not PATH.fullmatch(path):
            raise GpunodeError(f"{origin.url} has a package at a place that no bundle has", evidence=found.path)
        copy(file, work / "bundle" / path)
        yield BundledPackage(found.name, found.version, path)


def _check_signatures(transport: Transport, work: Path, origin: Origin) -> None:
    bundle = work / "bundle"
    words = (str(work), _keyring(origin, bundle), str(bundle / origin.path))
    done = run_script(transport, "bundle/rpm_signatures", FETCH_S, *words)
    if done.code:
        raise StepFailed(
            f"a package of {origin.url} is not signed by the expected key",
            evidence=last_words(done),
            remedy="--trust-key and --archive-keyring name keys that count",
        )


def _failed(done: Completed, contents: Contents) -> StepFailed:
    name = contents.manager.name
    what = {
        65: "an index is not signed by the expected key",
        69: f"{name} cannot be used here",
    }
    return StepFailed(
        what.get(done.code, f"{name} finds no way to install {contents.target} from these repositories"),
        evidence=last_words(done),
        remedy="name the distribution's repositories with --archive, and with --status what such a host has installed",
    )
