"""Packages that build the module while they are installed: at the module's version; failing when it does not build."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace

from gpunode import resources
from gpunode.model.action import Run
from gpunode.model.driver import DriverChoice, DriverOrigin
from gpunode.planner.driver.source import DRIVER_NAMES
from gpunode.planner.site import Site

DOES_NOT_BUILD = 65  # explain_build.sh's exit code


def say_why(run: Run, ways: str) -> Run:
    """The same command; where a module does not build, it fails in the compiler's words, and `ways` is the remedy."""
    text = resources.script("kernel/explain_build")
    remedies = (*run.remedies, (DOES_NOT_BUILD, ways))
    if run.stdin:  # a script of its own, which is read whole before it begins
        return replace(run, stdin=f'{text}attempt() {{\n{run.stdin}}}\nsay_why attempt "$@"\n', remedies=remedies)
    argv, description = ("sh", "-s", "--", *run.argv), run.description or shlex.join(run.argv)
    return replace(run, argv=argv, stdin=f'{text}say_why "$@"\n', description=description, remedies=remedies)


def ways_out(site: Site, source: DriverOrigin) -> str:
    """What to do about a driver that does not build for a kernel of this host."""
    other = "--driver takes a newer branch (gpunode catalog lists them)"
    if source == "distro" and site.distro.cuda is not None:
        other = "--driver-source cuda takes NVIDIA's own, newer driver"
    return f"{other}; or keep to a kernel that this driver was made for, and remove the newer one"


def with_module(site: Site, choice: DriverChoice, runs: Sequence[Run]) -> tuple[Run, ...]:
    """`runs`: ask, download, install. Where Debian's archive builds the module, its version is everybody's.

    Most managers call an install done although a module does not build.
    """
    if not site.backend.fails_with_build or choice.signed:
        return tuple(runs)
    *before, install = runs
    runs = (*before, say_why(install, ways_out(site, choice.source)))
    module = next((name for name in choice.packages if name.endswith("-dkms")), None)
    if choice.source != "distro" or module is None:
        return runs
    return site.backend.led_by(module, DRIVER_NAMES, runs)
