"""A bundle's packages by apt itself, in a root of its own: a Debian or Ubuntu that is not here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from gpunode.bundles.contents import DEB_MACHINES, Contents, Origin
from gpunode.bundles.manifest import PATH
from gpunode.bundles.scratch import FETCH_S, copy, last_words, run_script
from gpunode.errors import GpunodeError, StepFailed
from gpunode.model.bundle import BundledPackage
from gpunode.transport.base import Completed, Transport


def fetched(transport: Transport, work: Path, contents: Contents, status: bytes) -> tuple[BundledPackage, ...]:
    """The files below `work`/bundle, as the repositories have them, but for the keys. `status`: a dpkg status file.

    Raises StepFailed with apt's own words.
    """
    bundle = work / "bundle"
    _configure(work, contents, status)
    done = run_script(transport, "bundle/apt_download", FETCH_S, str(work), *contents.names)
    if done.code:
        raise _failed(done, contents)
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    _place_indexes(lines, contents.origins, bundle)
    return tuple(_place_packages(lines, contents.origins, work))


def _configure(work: Path, contents: Contents, status: bytes) -> None:
    """What apt goes by: nothing of this machine's own."""
    root, machine = work / "root", DEB_MACHINES[contents.target.machine]
    for name in ("etc/apt/preferences.d", "var/lib/apt/lists/partial", "var/cache/apt/archives/partial"):
        (root / name).mkdir(parents=True)
    (root / "status").write_bytes(status)
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


def _place_indexes(lines: Sequence[str], origins: Sequence[Origin], bundle: Path) -> None:
    """The Packages files and signed indexes of all repositories, from apt's lists."""
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
        copy(Path(file), base / key)
        signed = Path(file.removesuffix(mangled) + "InRelease")
        if not signed.is_file():
            raise GpunodeError(f"{origin.url} has no InRelease, and a bundle keeps the signature", evidence=str(signed))
        copy(signed, base / "InRelease")


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
        copy(local or work / "root/var/cache/apt/archives" / file, work / "bundle" / origin.path / path)
        name, version = (unquote(word) for word in file.split("_")[:2])
        yield BundledPackage(name, version, f"{origin.path}/{path}")


def _spelled(url: str) -> str:
    """apt prints file:/srv for file:///srv."""
    return re.sub(r"^file:/+", "file:/", url).rstrip("/")


def _failed(done: Completed, contents: Contents) -> StepFailed:
    what = {65: "an index could not be fetched, or its signature is not the expected one", 69: "apt-get is not here"}
    problem = what.get(done.code, f"apt finds no way to install {contents.target} from these repositories")
    return StepFailed(
        problem,
        evidence=last_words(done),
        remedy="name the distribution's archive with --archive, and with --status what such a host has installed",
    )
