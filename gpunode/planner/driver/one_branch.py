"""The resolver's answer decides which driver comes, not what the packages are called."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace

from gpunode import resources
from gpunode.model.action import Run
from gpunode.model.driver import DriverChoice

# Those whose version is the driver's, where their name does not say its branch.
LIBRARIES = ("libcuda1", "libnvidia-ml1", "libnvidia-compute", "nvidia-driver-cuda-libs", "nvidia-driver-libs")
ANOTHER_BRANCH = 66  # one_branch.sh's


def of_one_branch(choice: DriverChoice, runs: Sequence[Run]) -> tuple[Run, ...]:
    """`runs`: ask, download, install. The answer is refused, before anything changes, where it is of another branch."""
    if choice.rolling:
        return tuple(runs)
    ask, *others = runs
    given = f"branch={choice.branch} family=nvidia leads={shlex.quote(' '.join(LIBRARIES))}\n"
    script = given + ask.stdin + resources.script("packages/one_branch")
    ways = "ask for the branch that would come (--driver), or take another source (--driver-source)"
    return (replace(ask, stdin=script, remedies=(*ask.remedies, (ANOTHER_BRANCH, ways))), *others)
