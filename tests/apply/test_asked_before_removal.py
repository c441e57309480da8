"""What the driver's removal would take along is asked of the resolver before anything is touched."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.model.action import Run
from gpunode.model.facts import DriverFacts
from gpunode.model.spec import DriverRequest, DriverSource, Spec
from gpunode.planner.plan import make_plan
from tests.packages.test_repo_scripts import perform, tool
from tests.planner.builders import L4, host, packages

CATALOG = load_catalog()
NAMES = ("libcuda1", "nvidia-kernel-open-dkms", "nvidia-open")
DRIVER = packages(dict.fromkeys(NAMES, "595.91.07-1"), held=NAMES)
FACTS = host(L4, os="debian-12", packages=DRIVER, driver=DriverFacts("595.91.07", "open", "595.91.07", "open"))
NONE = Spec(only=("driver",), driver=DriverRequest("none"))
ARCHIVE = replace(NONE, driver=DriverRequest("branch", branch=535), driver_source=DriverSource.DISTRO)
OWN = "Remv nvidia-open [595.91.07-1]\nRemv libcuda1 [595.91.07-1] []\nRemv libcuda1:i386 [595.91.07-1]\n"
ALONG = "Remv libnvcuvid1 [595.91.07-1]\nRemv nvidia-settings [595.91.07-1]\n"
STRANGERS = "Remv slurm-wlm-nvml-plugin [22.05.8-4]\n"


def removal(spec: Spec, step_id: str) -> list[Run]:
    step = next(step for step in make_plan(FACTS, spec, CATALOG).steps if step.id == step_id)
    return [action for action in step.actions if isinstance(action, Run)]


@pytest.mark.parametrize(("spec", "step"), [(NONE, "driver.remove"), (ARCHIVE, "driver.replace")])
@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [
        (OWN, 0, ""),
        (OWN + ALONG, 0, ""),
        (OWN + STRANGERS, 65, "apt would remove what is not the driver's: slurm-wlm-nvml-plugin\n"),
    ],
    ids=["the driver", "what belongs to it", "what needs it"],
)
def test_a_removal_that_takes_others_along_is_refused_first(
    spec: Spec, step: str, answer: str, code: int, said: str, tmp_path: Path
) -> None:
    question = removal(spec, step)[0]
    asked = tmp_path / "asked"
    tool(tmp_path, "apt-get", f"echo \"$*\" >{asked}\ncat <<'E'\n{answer}E\n")
    done = perform(question, tmp_path)
    assert (done.returncode, done.stderr) == (code, said)
    assert asked.read_text() == f"-s -q remove -y --allow-change-held-packages {' '.join(NAMES)}\n"
    assert question.read_only
    assert dict(question.remedies)[65].startswith("`apt-get remove` those packages first")


def test_an_apt_that_cannot_answer_stops_the_removal(tmp_path: Path) -> None:
    tool(tmp_path, "apt-get", "echo 'E: Unmet dependencies' >&2\nexit 100\n")
    done = perform(removal(NONE, "driver.remove")[0], tmp_path)
    assert (done.returncode, done.stderr) == (100, "E: Unmet dependencies\n")
