"""The options of setup that go back to an earlier run."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from gpunode.cli.options.groups import option
from gpunode.values import dataclass

_again = partial(option, heading="An earlier run")


@dataclass(frozen=True)
class AgainOptions:
    """One of them at a time."""

    retry_failed: Annotated[
        str | None,
        _again("--retry-failed", metavar="[ID]", help="Its hosts that did not end well (default: of the last setup)."),
    ] = None
    resume: Annotated[
        str | None,
        _again("--resume", metavar="ID", help="Go on where its controller was killed: with what has not ended."),
    ] = None
    attach: Annotated[
        str | None,
        _again("--attach", metavar="ID", help="Only watch what it left at work to its end; begins nothing."),
    ] = None
