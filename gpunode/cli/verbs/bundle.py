"""gpunode bundle: packages for a site without a network, as one file; checked, and compared."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpunode.cli.options.groups import option, wanted
from gpunode.cli.options.verb import verb
from gpunode.cli.typer_classes import VerbGroup

if TYPE_CHECKING:
    from gpunode.bundles.contents import Contents, Origin
    from gpunode.model.bundle import Bundle, Target

_File = Annotated[Path, typer.Argument(metavar="FILE", help="A bundle.", show_default=False)]
_STATUS_BYTES = 512 << 20  # rpm's of a desktop has a fifth of that


def register(app: typer.Typer) -> None:
    bundle = typer.Typer(
        cls=VerbGroup,
        help="Make, check and compare files with the packages of a driver for hosts without a network.",
        rich_markup_mode=None,
        epilog="\b\nExamples:\n  gpunode bundle create --target debian-12/595 --output gpu.bundle\n"
        "  gpunode setup --ssh gpu01 --bundle gpu.bundle",
        no_args_is_help=True,
    )
    verb(
        bundle,
        "create",
        help="Resolve, fetch and verify all packages of a target, and write them with their signed indexes as a file.",
        examples=(
            "gpunode bundle create --target debian-12/595 --output gpu.bundle",
            "gpunode bundle create --target debian-12/595.91.07 --lock gpu.lock --output gpu.bundle",
        ),
    )(create)
    verb(
        bundle,
        "verify",
        help="Check that a bundle is whole, unchanged and not too old. Needs no network and changes nothing.",
        examples=("gpunode bundle verify gpu.bundle", "gpunode bundle verify /media/usb/gpu.bundle"),
    )(verify)
    verb(
        bundle,
        "diff",
        help="Compare the packages of two bundles.",
        examples=("gpunode bundle diff old.bundle new.bundle", "gpunode bundle diff a.bundle b.bundle"),
    )(diff)
    app.add_typer(bundle, name="bundle")


def create(
    target: Annotated[
        str, option("--target", metavar="TARGET", help="debian-12/595: release, branch or version of the driver.")
    ],
    output: Annotated[Path, option("--output", metavar="FILE", help="The bundle goes there.")],
    lock: Annotated[
        Path | None, wanted("--lock", metavar="FILE", help="Driver, toolkit and kernel as this lock has them.")
    ] = None,
    machine: Annotated[str | None, wanted("--machine", metavar="x86_64|aarch64", help="Default x86_64.")] = None,
    flavour: Annotated[
        str | None, wanted("--flavour", metavar="open|proprietary", help="Kernel module type (default open).")
    ] = None,
    kernel: Annotated[
        list[str] | None, wanted("--kernel", metavar="RELEASE", help="Headers of this kernel too. Repeatable.")
    ] = None,
    package: Annotated[
        list[str] | None,
        wanted("--package", metavar="NAME", help="One more package: nvidia-fabricmanager. Repeatable."),
    ] = None,
    archive: Annotated[
        list[str] | None,
        wanted("--archive", metavar="URI [SUITE COMPONENT...]", help="The distribution's archive. Repeatable."),
    ] = None,
    archive_keyring: Annotated[
        Path | None, wanted("--archive-keyring", metavar="FILE", help="The keys that sign it.")
    ] = None,
    status: Annotated[
        Path | None, wanted("--status", metavar="FILE", help="Package database of such a host: not fetched again.")
    ] = None,
    mirror: Annotated[
        str | None, wanted("--mirror", metavar="URL|DIRECTORY", help="A mirror of NVIDIA's repositories.")
    ] = None,
    trust_key: Annotated[
        list[str] | None,
        wanted("--trust-key", metavar="FINGERPRINT", help="One more repository key, 40 hex digits. Repeatable."),
    ] = None,
) -> int:
    from tempfile import TemporaryDirectory

    from gpunode.bundles.archive import read_bundle, write_bundle
    from gpunode.bundles.resolve import fetched
    from gpunode.cli.errors import say
    from gpunode.model.spec import parse_fingerprint, parse_mirror
    from gpunode.offline.output_file import check, write_stream
    from gpunode.transport.local import Local

    contents = _contents(
        target,
        lock,
        machine or "x86_64",
        flavour or "",
        kernel or [],
        package or [],
        archive or [],
        archive_keyring,
        parse_mirror(mirror) if mirror else None,
        [parse_fingerprint(one) for one in trust_key or []],
    )
    check(output, "--output")
    installed = _database(status) if status else b""
    say(f"gpunode: fetching {len(contents.names)} packages and what they need, for {contents.target}")
    with TemporaryDirectory(prefix="gpunode-bundle-") as scratch:
        work = Path(scratch)
        _add_gpunode(work / "bundle")
        manifest = fetched(Local(become="never"), work, contents, installed)
        write_stream(output, lambda out: write_bundle(manifest, work / "bundle", out), "--output")
    _show(read_bundle(output))
    return 0


def _add_gpunode(directory: Path) -> None:
    """gpunode as one file, for a site that has none; where this one cannot be made into one, that is said."""
    from gpunode.bundles.contents import GPUNODE
    from gpunode.cli.errors import say
    from gpunode.errors import GpunodeError
    from gpunode.release.zipapp import zipapp

    directory.mkdir()
    try:
        (directory / GPUNODE).write_bytes(zipapp())
    except GpunodeError as error:
        say(f"gpunode: {GPUNODE} is not in the bundle: {error.problem}")


def verify(file: _File) -> int:
    from gpunode.bundles.archive import read_bundle

    _show(read_bundle(file))
    return 0


def diff(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="A bundle.", show_default=False)],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="Another one.", show_default=False)],
) -> int:
    import sys

    from gpunode.bundles.archive import read_bundle
    from gpunode.bundles.compare import differences
    from gpunode.render.door import show

    before, after = (read_bundle(one, however_old=True).manifest for one in (old, new))
    lines = differences(before, after)
    show("\n".join(lines or ("both have the same packages",)), sys.stdout)
    return int(bool(lines))


def _show(bundle: Bundle) -> None:
    import sys

    from gpunode.render.door import show

    manifest = bundle.manifest
    lines = [
        f"{bundle.path}: whole, {bundle.size_bytes >> 20} MiB",
        f"  for      {manifest.target} on {manifest.target.machine}",
        f"  packages {len(manifest.packages)}, indexes as of {manifest.as_of}, "
        + (f"valid until {bundle.valid_until}" if bundle.valid_until else "which do not end"),
        f"  sha256   {bundle.sha256}",
    ]
    show("\n".join(lines), sys.stdout)


def _contents(
    target: str,
    lock: Path | None,
    machine: str,
    flavour: str,
    kernels: list[str],
    more: list[str],
    archives: list[str],
    keyring: Path | None,
    mirror: str | None,
    trusted: list[str],
) -> Contents:
    """Raises UsageError for what was typed, or stands in the lock, and is not of the right form."""
    from dataclasses import replace

    from gpunode.bundles.contents import contents_of, distro_of, parse_target
    from gpunode.catalog.load import load_catalog
    from gpunode.model.expectation import FORMS, parse_expected_flavour
    from gpunode.specfile import load_lock

    aim = parse_target(target, machine)
    locked = load_lock(lock) if lock else None
    setup, expected = (locked.setup, locked.expected) if locked else ({}, {})
    if version := setup.get("driver"):
        _refuse_another(version, aim.driver)
        aim = replace(aim, driver=version)
    _refuse_elsewhere(aim, setup, expected)
    kernels += [expected["kernel"]] if "kernel" in expected and not kernels else []
    for release in kernels:
        FORMS["kernel"](release)
    catalog = load_catalog()
    return contents_of(
        aim,
        catalog,
        flavour=parse_expected_flavour(flavour or setup.get("flavour", "open")),
        toolkit=setup.get("toolkit"),
        kernels=kernels,
        more=[_package(name) for name in more],
        mirror=mirror,
        trusted=trusted,
        archives=_archives(archives, keyring, distro_of(aim, catalog).manager),
    )


def _refuse_another(version: str, asked: str) -> None:
    from gpunode.errors import UsageError

    if version != asked and not version.startswith(f"{asked}."):
        raise UsageError(
            f"--target asks for driver {asked}, and the lock has {version}",
            remedy="name the lock's driver, or its branch, in --target",
        )


def _refuse_elsewhere(aim: Target, setup: Mapping[str, str], expected: Mapping[str, str]) -> None:
    """The lock of a host of another release, or whose driver is none of those that a bundle has: NVIDIA's own."""
    from gpunode.errors import UsageError

    os = expected.get("os", f"{aim.distribution} {aim.version}")
    if not f"{os}.".startswith(f"{aim.distribution} {aim.version}."):
        raise UsageError(
            f"--target is for {aim.distribution} {aim.version}, and the lock is of {os}",
            remedy="name the lock's release in --target, or a lock of a host of that release",
        )
    if setup.get("driver_source", "cuda") != "cuda":
        raise UsageError(
            "the lock's driver is not from NVIDIA's repository, the only one that a bundle has a driver of",
            evidence=f"the lock: driver_source: {setup['driver_source']}",
            remedy="lock a host with NVIDIA's packages, or leave --lock out: a mirror of the distribution's archive "
            "has the others",
        )


def _package(name: str) -> str:
    import re

    from gpunode.errors import UsageError

    if re.fullmatch(r"[a-z0-9][a-z0-9.+-]{1,100}(=[0-9][\w.+~:-]{0,100})?", name, re.ASCII):
        return name
    raise UsageError(f"--package {name[:80]!r} is no name of a package", evidence="its form is NAME or NAME=VERSION")


def _database(path: Path) -> bytes:
    from gpunode.errors import UsageError
    from gpunode.foreign import read_file

    try:
        raw = read_file(path, _STATUS_BYTES)
    except OSError as error:
        raise UsageError(f"--status {path} cannot be read", evidence=str(error.strerror)) from error
    if len(raw) > _STATUS_BYTES:
        raise UsageError(f"--status {path} is over {_STATUS_BYTES >> 20} MiB")
    return raw


def _archives(texts: list[str], keyring: Path | None, manager: str) -> list[Origin]:
    from gpunode.bundles.contents import parse_archive
    from gpunode.errors import UsageError
    from gpunode.packages.registry import backend

    if bool(texts) != (keyring is not None):
        raise UsageError(
            "--archive and --archive-keyring belong together",
            evidence="what an archive sends counts only where a key that was named has signed it",
            remedy="on Debian the keys are in /usr/share/keyrings/debian-archive-keyring.gpg",
        )
    kind, keys = backend(manager).package_format, str(keyring and keyring.absolute())
    return [parse_archive(text, number, keys, kind) for number, text in enumerate(texts)]
