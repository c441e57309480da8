"""What the resolver would install decides, not what the packages are called: another branch is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpunode.apply.resolver_preview import with_answers
from gpunode.catalog.load import load_catalog
from gpunode.errors import ExitCode
from gpunode.model.action import Run
from gpunode.model.facts import DriverFacts, KernelTree, SecurityFacts
from gpunode.model.plan import Plan, Step
from gpunode.model.spec import DriverRequest, Spec
from gpunode.planner.plan import make_plan
from gpunode.render.plan_text import plan_text
from tests.apply.machine import Machine
from tests.packages.test_repo_scripts import perform, tool
from tests.planner.builders import L4, RELEASE, host, kernel, packages

CATALOG = load_catalog()
SECURE = host(L4, security=SecurityFacts(secure_boot=True))
# As of 550, should Ubuntu's packages of it become what those of 570 are (xnvme/aisio#67): stubs of its own version.
STUBS = (
    "Inst nvidia-utils-550-server (550.163.01-0ubuntu1 Ubuntu [amd64])\n"
    "Inst nvidia-utils-580-server (580.178.04-0ubuntu1 Ubuntu [amd64])\n"
    "Inst linux-modules-nvidia-580-server-open-generic (6.8.0-51.52 Ubuntu [amd64])\n"
    "Inst libnvidia-compute-580-server (580.178.04-0ubuntu1 Ubuntu [amd64])\n"
)
RIGHT = (
    "Inst nvidia-utils-550-server (550.163.01-0ubuntu1 Ubuntu [amd64])\n"
    "Inst linux-modules-nvidia-550-server-open-generic (6.8.0-51.52 Ubuntu [amd64])\n"
    "Inst nvidia-firmware-550-server-550.163.01 (550.163.01-0ubuntu1 Ubuntu [amd64])\n"
    "Inst nvidia-persistenced (525.85.05-1 Ubuntu [amd64])\n"
)
# Packages of the replaced branch may go or be emptied.
RENAMED = (
    "Remv nvidia-utils-535-server [535.261.03]\n"
    "Inst libnvidia-compute-535 [535.261.03] (550.163.01 Ubuntu [amd64])\n"
    "Inst libcuda1 (550.163.01-1 Ubuntu [amd64])\n"
)


def asked(branch: str) -> Run:
    """The question to the resolver in the step that installs this branch of Ubuntu's archive."""
    plan = make_plan(SECURE, Spec(driver=DriverRequest.parse(branch)), CATALOG)
    step = next(step for step in plan.steps if step.id == "driver.install")
    return next(a for a in step.actions if isinstance(a, Run) and a.read_only and a.record_output)


@pytest.mark.parametrize(
    ("answer", "code"),
    [(STUBS, 66), (RIGHT, 0), (RENAMED, 0), ("Inst libcuda1 (3:580.178.04-1 NVIDIA [amd64])\n", 66)],
    ids=["stubs of another branch", "the branch", "the old one is replaced", "a library of another branch"],
)
def test_an_answer_of_another_branch_is_refused_before_anything_changes(answer: str, code: int, tmp_path: Path) -> None:
    tool(tmp_path, "apt-get", f"case $* in *--print-uris*) ;; *) cat <<'E'\n{answer}E\n;; esac\n")
    done = perform(asked("550"), tmp_path)
    assert done.returncode == code, done.stderr
    assert ("branch 550 was chosen" in done.stderr) == (code == 66)
    assert "nvidia-utils-550-server 550" not in done.stderr


def test_the_setup_that_stops_there_names_the_options() -> None:
    assert "--driver" in dict(asked("550").remedies)[66]


def test_a_source_that_provides_its_newest_only_is_not_held_to_a_branch() -> None:
    plan = make_plan(host("2684", os="arch"), Spec(), CATALOG)
    step = next(step for step in plan.steps if step.id == "driver.install")
    assert not any("branch=" in a.stdin for a in step.actions if isinstance(a, Run) and a.record_output)


def test_a_plan_says_what_the_resolver_would_install_instead(tmp_path: Path) -> None:
    ask = Run(
        ("sh", "-s"),
        stdin="echo install libcuda1 580.1; echo branch 550 was chosen: libcuda1 580.1 >&2; exit 66",
        read_only=True,
        record_output=True,
        remedies=((66, "ask for the branch that would come"),),
    )
    plan = Plan("testhost", Spec(), "now", steps=(Step("driver.install", "install it", "", (ask,)),))
    shown = with_answers(plan, Machine(tmp_path))
    assert shown.code is ExitCode.UNSUPPORTED
    text = " ".join(plan_text(shown).split())
    assert "setup would stop here and change nothing: branch 550 was chosen: libcuda1 580.1; ask for" in text
    assert "the resolver would install" not in text
    fine = replace(ask, stdin="echo install libcuda1 550.1")
    good = with_answers(replace(plan, steps=(replace(plan.steps[0], actions=(fine,)),)), Machine(tmp_path))
    assert good.code is ExitCode.DONE


BEHIND = (
    "Inst libnvidia-compute-580-server (580.178.04-0ubuntu1 Ubuntu [amd64])\n"
    "Inst nvidia-utils-580-server (580.178.04-0ubuntu1 Ubuntu [amd64])\n"
    "Inst nvidia-fabricmanager-580 (580.126.09-0ubuntu1 Ubuntu [amd64])\n"
)


@pytest.mark.parametrize(
    ("answer", "mixed"),
    [
        (
            BEHIND,
            "mixed libnvidia-compute-580-server 580.178.04-0ubuntu1\nmixed nvidia-fabricmanager-580 580.126.09-0u",
        ),
        (BEHIND.partition("Inst nvidia-fab")[0], ""),
    ],
    ids=["the fabric manager is behind", "one version"],
)
def test_versions_that_differ_inside_the_set_are_said(answer: str, mixed: str, tmp_path: Path) -> None:
    tool(tmp_path, "apt-get", f"case $* in *--print-uris*) ;; *) cat <<'E'\n{answer}E\n;; esac\n")
    done = perform(asked("580"), tmp_path)
    assert done.returncode == 0, done.stderr
    assert ("mixed" in done.stdout) == bool(mixed)
    assert mixed in done.stdout
    ask = Run(("sh", "-s"), stdin=f"cat <<'E'\n{done.stdout}E\n", read_only=True, record_output=True)
    plan = Plan("testhost", Spec(), "now", steps=(Step("driver.install", "install it", "", (ask,)),))
    text = " ".join(plan_text(with_answers(plan, Machine(tmp_path))).split())
    assert ("nvidia-fabricmanager-580 580.126.09-0ubuntu1" in text) == bool(mixed)
    assert "the resolver would install" in text


def test_the_modules_for_the_next_kernel_bring_no_other_branch(tmp_path: Path) -> None:
    following, version = "6.8.0-87-generic", "570.211.01"
    trees = (KernelTree(RELEASE, True, False, "/lib/modules/x/nvidia.ko"), KernelTree(following, True, False, None))
    there = dict.fromkeys(("nvidia-headless-no-dkms-570-server-open", "nvidia-utils-570-server"), f"{version}-0ubuntu1")
    facts = replace(
        SECURE,
        driver=DriverFacts(version, "open", version, "open"),
        kernel=kernel("nvidia", "nvidia_uvm", trees=trees, next_boot=following),
        packages=packages(there),
    )
    steps = make_plan(facts, Spec(only=("driver",)), CATALOG).steps
    step = next(step for step in steps if step.id == "driver.modules")
    ask = next(a for a in step.actions if isinstance(a, Run) and a.read_only and a.record_output)
    tool(tmp_path, "apt-get", f"case $* in *--print-uris*) ;; *) cat <<'E'\n{STUBS}E\n;; esac\n")
    assert perform(ask, tmp_path).returncode == 66
