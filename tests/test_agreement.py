"""check and plan agree on every sample host: what a finding sends people to, the planner would do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpunode.cli.app import main
from gpunode.cli.verbs.check_host import checked
from gpunode.errors import ExitCode
from gpunode.fleet.host import Host
from gpunode.model.report import CheckReport, CheckResult, Finding
from gpunode.model.spec import Spec
from gpunode.remedy import WANT, Command
from gpunode.transport.recorded import Recorded

EXAMPLES = Path(__file__).parent.parent / "examples" / "hosts"
HOSTS = sorted(path.name for path in EXAMPLES.iterdir() if (path / "facts.txt").is_file())
STEP = re.compile(r"^ +\d+  ([a-z0-9@.-]+)  ", re.MULTILINE)
# The steps of setup that mend what a check finds, as beginnings of their ids; a check that is not here: any step.
MENDS = {
    "boot.nouveau-": ("kernel.nouveau",),
    "boot.initramfs": ("kernel.nouveau",),
    "ctk.": ("toolkit.",),
    "cdi.": ("cdi.",),
    "drv.headers-": ("kernel.headers",),
    "drv.dkms-": ("kernel.headers", "driver.install", "driver.build"),
    "drv.branch-": ("driver.install",),
    "drv.flavour-": ("driver.install",),
    "drv.module-loaded": ("driver.install", "driver.build", "kernel."),
    "pci.driver-bound": ("driver.install", "driver.build", "kernel."),
    "rt.docker-": ("docker.default",),
    "rt.containerd-": ("containerd.default",),
    "rt.effective-default": (".default",),
    "user.lib": ("driver.install",),
}


def report_of(slug: str) -> CheckReport:
    outcome = checked(Host(Recorded((EXAMPLES / slug / "facts.txt").read_bytes(), slug), recorded=True), Spec(), False)
    assert outcome.check is not None
    return outcome.check


def commands(report: CheckReport) -> Iterator[tuple[CheckResult, Command]]:
    """Every command of gpunode that a finding asks for, but those that come after a manual step ("..., then")."""
    for result in (*report.failures, *report.warnings):
        assert isinstance(result.outcome, Finding)
        before: str | Command = ""
        for part in result.outcome.remedy.parts:
            if isinstance(part, Command) and part.verb in WANT and not part.again and not str(before).endswith("then "):
                yield result, part
            before = part


def plan(slug: str, options: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    """What `gpunode plan` says to these options: its exit code, and the ids of its steps."""
    code = main(["plan", "--recorded", str(EXAMPLES / slug), *options])
    shown = capsys.readouterr()
    assert "internal error" not in shown.err
    return code, STEP.findall(shown.out)


def mended(id: str, steps: list[str]) -> bool:
    """Whether a plan has a step for what this check found."""
    wanted = next((steps for start, steps in MENDS.items() if id.startswith(start)), ("",))
    return any(words in step for step in steps for words in wanted)


@pytest.mark.parametrize("slug", HOSTS)
def test_a_remedys_command_is_one_whose_plan_does_what_the_finding_needs(
    slug: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _ = plan(slug, (), capsys)
    assert code in (ExitCode.DONE, ExitCode.UNSUPPORTED)
    wrong = []
    for result, command in commands(report_of(slug)):
        code, steps = plan(slug, command.options, capsys)
        if code != ExitCode.DONE and not steps:
            wrong.append(f"{result.id}: {command} is refused")
        elif command.verb == "setup" and not mended(result.id, steps):
            wrong.append(f"{result.id}: {command} has no step for it")
    assert wrong == []
