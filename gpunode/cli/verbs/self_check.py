"""gpunode self check: whether this gpunode is what was released."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from gpunode.cli.options.groups import ResultOptions

if TYPE_CHECKING:
    from gpunode.cli.results import SelfChecked
    from gpunode.render.style import Style

MOST_SHOWN = 20


def check(output: ResultOptions) -> int:
    from gpunode.cli.results import SelfChecked, choose, show_result
    from gpunode.errors import ExitCode
    from gpunode.release.installed import differences, released

    choose(output, SelfChecked)
    release, place = released()
    found = differences(release, Path(place))
    show_result(SelfChecked(release, place, found), output)
    return int(ExitCode.FAILED if found else ExitCode.DONE)


def page(result: SelfChecked, style: Style) -> str:
    """Each difference on a line; the last line says it all."""
    release, found = result.release, result.differences
    shown = found[:MOST_SHOWN]
    width = max((len(one.path) for one in shown), default=0)
    lines = [f"{one.path.ljust(width)}  {one.what}" for one in shown]
    lines += (
        [f"{len(found) - len(shown)} others are not shown; --json shows them all"] if len(found) > len(shown) else []
    )
    day = time.strftime("%Y-%m-%d", time.gmtime(release.committed_at_s))
    what = f"gpunode {release.version} ({release.artifact}), commit {release.commit[:12]} of {day}"
    verdict = f"{len(found)} differences: install it again" if len(found) > 1 else "1 difference: install it again"
    return "\n".join((*lines, f"{what}: {verdict if found else f'all {len(release.files)} files are as released'}"))


def json_whole(result: SelfChecked, style: Style) -> str:
    from gpunode.render.encode import dumps

    return dumps({"schema": "gpunode.self-check/1", **_values(result)}) + "\n"


def json_line(result: SelfChecked, style: Style) -> str:
    from gpunode.render.encode import dumps

    return dumps({"schema": "gpunode.self-check/1", **_values(result)}, indent=None) + "\n"


def _values(result: SelfChecked) -> dict[str, object]:
    release = result.release
    return {
        "version": release.version,
        "commit": release.commit,
        "artifact": release.artifact,
        "place": result.place,
        "files": len(release.files),
        "differences": [one._asdict() for one in result.differences],
    }
