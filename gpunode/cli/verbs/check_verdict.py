"""check --npd and check --nhc: one line on stdout, and an exit code of those programs in place of gpunode's own."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import NamedTuple

from gpunode.cli.options.groups import OutputOptions
from gpunode.cli.results import Verdict, say_problems, show_result
from gpunode.errors import GpunodeError
from gpunode.model.report import FleetReport
from gpunode.render.style import Style
from gpunode.render.verdict import NHC_BYTES, NPD_BYTES, UNKNOWN, no_verdict, verdict


class Protocol(NamedTuple):
    most: int  # bytes of its line
    lead: str  # who says so, where nothing around the line does


PROTOCOLS = {"--npd": Protocol(NPD_BYTES, ""), "--nhc": Protocol(NHC_BYTES, "gpunode: ")}


def show_verdict(flag: str, look: Callable[[], FleetReport], output: OutputOptions, *, strict: bool) -> int:
    """`look` checks this one host. Whatever keeps it from that is no verdict, and never a node that is unfit:
    gpunode's own codes would be read so (1), and a whole cluster drained for a spec that does not parse.
    Where the line cannot be printed, app.py has the same code.
    """
    protocol = PROTOCOLS[flag]
    try:
        report = look()
        (host,) = report.hosts
        code, text = verdict(host, strict=strict, most=protocol.most, lead=protocol.lead)
        say_problems(report, ssh=False)
    except GpunodeError as error:
        from gpunode.cli.errors import say_error

        say_error(error)
        code, text = UNKNOWN, no_verdict(error.problem, protocol.most, protocol.lead)
    except Exception as error:
        from gpunode.cli.errors import say_crash

        say_crash(error)
        problem = "".join(traceback.format_exception_only(error)).strip()  # "MemoryError", "ValueError: odd"
        code, text = UNKNOWN, no_verdict(f"internal error: {problem}", protocol.most, protocol.lead)
    show_result(Verdict(code, text), output)
    return code


def page(result: Verdict, style: Style) -> str:
    return result.line
