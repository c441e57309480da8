"""The options of all exports: how gpunode comes onto the hosts, and where the export goes."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

from gpunode.cli.options.groups import option
from gpunode.values import dataclass

_bring = partial(option, heading="gpunode on the hosts")


@dataclass(frozen=True)
class DirectoryOptions:
    """Where an export goes."""

    output: Annotated[
        Path | None,
        option("--output", metavar="DIR", help="A new directory, or an earlier export of gpunode.", heading="Output"),
    ] = None


@dataclass(frozen=True)
class BringOptions:
    """From where a host gets gpunode; its SHA-256 is in the export."""

    gpunode_url: Annotated[
        str | None, _bring("--gpunode-url", metavar="URL", help="Where you put the export's gpunode.pyz.")
    ] = None
    gpunode_path: Annotated[
        str | None,
        _bring("--gpunode-path", metavar="FILE", help="Where the hosts' image has the export's gpunode.pyz."),
    ] = None
