"""The packages of a bundle, resolved and fetched by the real resolver of the target's kind, here."""

from __future__ import annotations

import hashlib
import re
import shlex
import shutil
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path
from urllib.parse import unquote, urlsplit

from gpunode import resources
from gpunode.bundles.archive import INDEX_BYTES, date_of, iso
from gpunode.bundles.contents import DEB_MACHINES, Contents, Origin
from gpunode.bundles.manifest import PATH
from gpunode.errors import GpunodeError, StepFailed
from gpunode.foreign import read_file
from gpunode.model.bundle import BundledFile, BundledPackage, BundledRepository, Manifest
from gpunode.transport.base import Completed, Transport

_KEY_S, _FETCH_S = 180, 3600  # a driver and its dependencies are 500 MB, and mirrors can be slow
# Of all that a host has, to begin with nothing: apt then fetches the whole of what the names need.
_CHUNK = 1 << 20


def fetched(transport: Transport, work: Path, contents: Contents, status: str) -> Manifest:
    """The bundle's files below `work`/bundle, as the repositories have them. `status`: a dpkg status file's text.

    Raises StepFailed with the resolver's own words.
    """
    bundle = work / "bundle"
    for origin in contents.origins:
        if origin.key_url:
            _fetch_key(transport, origin, work / "bundle" / origin.key_path)
    _configure(work, contents, status)
    done = _run(transport, "bundle/apt_download", _FETCH_S, str(work), *contents.names)
    if done.code:
        raise _failed(done, contents)
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    newest = _place_indexes(lines, contents.origins, bundle)
    packages = tuple(sorted(_place_packages(lines, contents.origins, work), key=lambda one: one.path))
    files = {path.relative_to(bundle).as_posix(): _described(path) for path in bundle.rglob("*") if path.is_file()}
    repositories = tuple(BundledRepository(o.kind, o.path, o.suite, o.components) for o in contents.origins)
    return Manifest(contents.target, iso(newest), repositories, packages, files)


def _run(transport: Transport, script: str, timeout_s: float, *arguments: str) -> Completed:
    return transport.run(f"set -- {shlex.join(arguments)}\n{resources.script(script)}", timeout_s=timeout_s)


def _fetch_key(transport: Transport, origin: Origin, place: Path) -> None:
    done = _run(transport, "repos/fetch_key", _KEY_S, origin.key_url, str(place), *origin.fingerprints)
    if done.code:
        raise StepFailed(
            f"the key of {origin.url} is not to be believed, or cannot be fetched",
            evidence=_last(done),
            remedy="--trust-key names the fingerprint of a mirror's own key",
        )


def _configure(work: Path, contents: Contents, status: str) -> None:
    """What apt goes by: nothing of this machine's own."""
    root, machine = work / "root", DEB_MACHINES[contents.target.machine]
    for name in ("etc/apt/preferences.d", "var/lib/apt/lists/partial", "var/cache/apt/archives/partial"):
        (root / name).mkdir(parents=True)
    (root / "status").write_text(status, encoding="utf-8", errors="surrogateescape")
    settings = {
        "Dir": root, "Dir::State::status": root / "status", "APT::Architecture": machine,
        "APT::Architectures": machine, "Acquire::Languages": "none", "Acquire::GzipIndexes": "false",
        "APT::Sandbox::User": "root", "Acquire::Retries": "2",
    }  # fmt: skip
    (work / "apt.conf").write_text("".join(f'{key} "{value}";\n' for key, value in settings.items()))
    sources = (_source(origin, machine, work / "bundle") for origin in contents.origins)
    (root / "etc/apt/sources.list").write_text("".join(sources))
    (root / "etc/apt/preferences").write_text(
        f"Package: /nvidia/ /libcuda/ /libnv/ /cuda-drivers/\nPin: version {contents.driver}\nPin-Priority: 1001\n\n"
    )


def _source(origin: Origin, machine: str, bundle: Path) -> str:
    keyring = origin.keyring or str(bundle / origin.key_path)
    words = ("deb", f"[arch={machine} signed-by={keyring}]", origin.url, origin.suite, *origin.components)
    return " ".join(words) + "\n"


def _place_indexes(lines: Sequence[str], origins: Sequence[Origin], bundle: Path) -> datetime:
    """The Packages files and signed indexes of all repositories, from apt's lists. Answers the newest one's date."""
    newest = datetime.fromtimestamp(0, timezone.utc)
    for line in lines:
        words = line.split(" ")
        if words[0] != "index" or len(words) != 5:
            continue
        uri, suite, key, file = words[1:]
        origin = next((o for o in origins if _spelled(o.url) == _spelled(uri) and o.suite in (suite, "/")), None)
        if origin is None or not PATH.fullmatch(key):
            raise GpunodeError("apt-get indextargets names another repository", evidence=line[:200])
        base = bundle / origin.path if origin.suite == "/" else bundle / origin.path / "dists" / origin.suite
        if "/binary-all/" in key and not Path(file).exists():
            continue  # few archives have packages of no architecture apart
        mangled = key.replace("/", "_")
        _copy(Path(file), base / key)
        signed = Path(file.removesuffix(mangled) + "InRelease")
        if not signed.is_file():
            raise GpunodeError(f"{origin.url} has no InRelease, and a bundle keeps the signature", evidence=str(signed))
        _copy(signed, base / "InRelease")
        text = read_file(base / "InRelease", INDEX_BYTES).decode("utf-8", "replace")
        newest = max(newest, date_of(text, "Date") or newest)
    return newest


def _place_packages(lines: Sequence[str], origins: Sequence[Origin], work: Path) -> Iterator[BundledPackage]:
    for line in lines:
        found = re.fullmatch(r"deb '([^']*)' (\S+)", line)
        if not found:
            continue
        uri, file = found[1], found[2]
        origin = next((one for one in origins if _spelled(uri).startswith(f"{_spelled(one.url)}/")), None)
        path = unquote(_spelled(uri).removeprefix(f"{_spelled(origin.url)}/")).removeprefix("./") if origin else ""
        if origin is None or not PATH.fullmatch(f"{origin.path}/{path}") or "/" in file:
            raise GpunodeError("the resolver takes a package from another place", evidence=line[:200])
        # apt uses a package of a file: repository where it lies.
        local = Path(unquote(urlsplit(uri).path)) if uri.startswith("file:") else None
        _copy(local or work / "root/var/cache/apt/archives" / file, work / "bundle" / origin.path / path)
        name, version = (unquote(word) for word in file.split("_")[:2])
        yield BundledPackage(name, version, f"{origin.path}/{path}")


def _spelled(url: str) -> str:
    """apt prints file:/srv for file:///srv."""
    return re.sub(r"^file:/+", "file:/", url).rstrip("/")


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def _described(path: Path) -> BundledFile:
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
    return BundledFile(digest.hexdigest(), size)


def _last(done: Completed) -> str:
    lines = (done.stderr or done.stdout).decode("utf-8", "replace").strip().splitlines()
    return "\n".join(lines[-8:])[:2000] or f"exit code {done.code}"


def _failed(done: Completed, contents: Contents) -> StepFailed:
    what = {65: "an index could not be fetched, or its signature is not the expected one", 69: "apt-get is not here"}
    problem = what.get(done.code, f"apt finds no way to install {contents.target} from these repositories")
    return StepFailed(
        problem,
        evidence=_last(done),
        remedy="name the distribution's archive with --archive, and with --status what such a host has installed",
    )
