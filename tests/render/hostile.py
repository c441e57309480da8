"""Texts that a host may hold where a program expects a word: each format has to stay whole around them."""

from __future__ import annotations

from gpunode.errors import ExitCode
from gpunode.model.report import CheckReport, CheckResult, Finding, HostOutcome, NotApplicable, Severity
from gpunode.remedy import Remedy, RepairAction

HOSTILE = {
    "line ends": 'one\ntwo\r\nthree"} 0\ngpunode_check_status{id="x",host="y"} 2\n# EOF',
    "quotes and backslashes": '"\'`\\" \\n \\\\',
    "markup": '</failure></testcase><testcase name="x"/>]]><!-- &amp; <![CDATA[ &#0; &bogus;',
    "control characters": "".join(map(chr, range(0x20))) + "\x7f\x85\x9b31m",
    "what XML and terminals do not take": "\ufffe\uffff\u202e\u2028\u2029\u2066",
    "bytes that are no UTF-8": b"\xff\xc0\x80 \xed\xa0\x80".decode("utf-8", "surrogateescape"),
    "beyond the first plane": "🙂日本" * 40,
    "4 MiB": "a\n\"<é'" * (4 * 1024 * 1024 // 7),
    "4 MiB in one word": "x" * (4 * 1024 * 1024),
}
SECRET = "password=hunter2"


def odd_outcome(text: str) -> HostOutcome:
    """A host whose name, finding and reasons are all `text`."""
    finding = Finding(text, text, Remedy(RepairAction.NONE, text))
    results = (
        CheckResult("drv.loaded", Severity.ERROR, finding),
        CheckResult("drv.dkms-next", Severity.WARNING, finding),
        CheckResult("drv.mig", Severity.ERROR, NotApplicable(text)),
        CheckResult("rt.default", Severity.ERROR, None),
    )
    return HostOutcome(text, ExitCode.FAILED, check=CheckReport(text, {r.id: r for r in results}))


def lost_outcome(text: str) -> HostOutcome:
    """A host that gave no report, for a reason that is `text`."""
    return HostOutcome(text, ExitCode.UNREACHABLE, problem=text, evidence=text, remedy=Remedy(RepairAction.NONE, text))
