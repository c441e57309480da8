"""What every export begins and ends with: the spec, gpunode as a zipapp, and the directory that is written."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gpunode import __version__
from gpunode.cli.errors import say
from gpunode.cli.options.export import BringOptions, DirectoryOptions
from gpunode.cli.options.spec import flag_texts, wanted_file
from gpunode.errors import UsageError
from gpunode.export.files import MANIFEST, Carried, ExportedFile, Request, with_manifest
from gpunode.masking import masked
from gpunode.model.spec import RebootPolicy
from gpunode.offline.output_directory import check_directory, write_directory
from gpunode.regex import regex
from gpunode.specfile import spec_text

if TYPE_CHECKING:
    from gpunode.cli.options.setup import SpecOptions

# No user, no password and nothing a shell or a log would split; a query may hold a signature, and is never shown.
_URL = regex(r"https?://[A-Za-z0-9.\-\[\]:]+/[!-~]*")


def carried() -> bytes:
    """gpunode itself as a zipapp: made anew, or the one that this is. Raises UnsupportedHost."""
    from gpunode import resources
    from gpunode.release.zipapp import zipapp

    if (mine := resources.archive()) is not None:
        return Path(mine).read_bytes()
    return zipapp()


def request_of(wanted: SpecOptions, bring: BringOptions, *words: str, reboot: str | None = None) -> Request:
    """The spec that was typed, validated as setup does. `words`: what setup gets beyond it; `reboot`: its policy where
    neither file nor flag has one. Raises UsageError.
    """
    refuse_bundle(wanted)
    file = wanted_file(wanted)
    if reboot and "reboot" not in file.keys and "reboot" not in flag_texts(wanted):
        words = (*words, "--reboot", reboot)
    url, path = bring.gpunode_url, bring.gpunode_path
    if url and path:
        raise UsageError("--gpunode-url and --gpunode-path exclude each other", remedy="choose one")
    _refuse_odd_source(url, path)
    return Request(spec_text(file.spec), words, Carried(carried(), url, path), __version__)


def refuse_bundle(wanted: SpecOptions) -> None:
    """Raises UsageError where packages are to come from a bundle: no export carries one."""
    if wanted.bundle:
        raise UsageError(
            "--bundle is not for this export", evidence="a bundle is sent to a host", remedy="setup --bundle does it"
        )


def refuse_without_source(bring: BringOptions, why: str) -> None:
    """Raises UsageError where nothing says how gpunode comes onto the hosts."""
    if bring.gpunode_url is None and bring.gpunode_path is None:
        raise UsageError(
            "how does gpunode come onto the hosts?",
            evidence=why,
            remedy="--gpunode-url URL or --gpunode-path FILE: where you will put the export's gpunode.pyz",
        )


def refuse_reboot(wanted: SpecOptions, why: str, remedy: str) -> None:
    """Raises UsageError where the spec asks for reboots that are not setup's here."""
    if wanted_file(wanted).spec.reboot != RebootPolicy.NEVER:
        raise UsageError("--reboot if-needed is not for this export", evidence=why, remedy=remedy)


def image_request(wanted: SpecOptions, bring: BringOptions) -> Request:
    """request_of for an image that is built without a GPU and boots later. Raises UsageError."""
    words = () if wanted.allow_no_gpu else ("--allow-no-gpu",)
    request = request_of(wanted, bring, *words)
    refuse_reboot(wanted, "a build does not reboot", "leave it out: the image boots later")
    return request


def write_export(target: str, output: DirectoryOptions, make: Callable[[], Sequence[ExportedFile]]) -> Path:
    """Make the files and write them. What is wrong with --output is said before they are made. Raises UsageError."""
    if output.output is None:
        raise UsageError("where to?", evidence="an export is a directory", remedy="--output DIR")
    path = Path(str(output.output))
    check_directory(path, "--output", MANIFEST)
    whole = with_manifest(target, __version__, make())
    write_directory(path, whole, "--output", MANIFEST)
    for one in whole:
        say(f"gpunode: {path / one.name}")
    return path


def _refuse_odd_source(url: str | None, path: str | None) -> None:
    if url is not None and not _URL.fullmatch(url):
        raise UsageError(
            f"--gpunode-url {masked(url)[:200]!r} is not of the right form",
            evidence="it is http:// or https://, with no user and no password: its readers would have them too",
            remedy="for example https://files.example/gpunode.pyz",
        )
    if path is not None and not re.fullmatch(r"/[!-~]+", path):
        raise UsageError(
            f"--gpunode-path {path[:200]!r} is not a whole path without blanks", remedy="for example /opt/gpunode.pyz"
        )
