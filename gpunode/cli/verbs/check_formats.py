"""check for programs that are not gpunode's own readers: each renderer is loaded when its format was asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpunode.cli.results import Checked
    from gpunode.render.style import Style


def junit(result: Checked, style: Style) -> Iterator[str]:
    from gpunode.render.junit import junit_xml

    report = result.report
    return junit_xml(report.hosts, seconds_s=report.seconds, at_s=result.at_s, strict=result.strict)


def prometheus(result: Checked, style: Style) -> Iterator[str]:
    from gpunode.render.prometheus import prometheus_text

    return prometheus_text(result.report.hosts, seconds_s=result.report.seconds, at_s=result.at_s)


def nvsentinel(result: Checked, style: Style) -> Iterator[str]:
    from gpunode.render.nvsentinel import health_events

    return health_events(result.report.hosts, at_s=result.at_s)


def html(result: Checked, style: Style) -> str:
    from gpunode.render.matrix.page import matrix_html

    report = result.report
    return matrix_html(report.hosts, result.sights, at_s=result.at_s, seconds_s=report.seconds, ssh=result.ssh)
