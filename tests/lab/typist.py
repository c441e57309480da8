"""Somebody who types at an engine: what comes of it is judged by the engine, and from inside the container."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from .host import Result
from .typed import GPUS, RUNS, WORKS


class Asked(NamedTuple):
    """A way to ask for the GPUs, and what holds in a container that has all of them (tests/lab/stubs)."""

    options: str
    holds: str


# CUDA's images have the variable. The runtime leaves lab-gpus, the hook lab-hook, a CDI device its own variable.
PLAIN = Asked("", "false")
BY_RUNTIME = Asked("-e NVIDIA_VISIBLE_DEVICES=all", "[ -s /etc/lab-gpus ]")
BY_HOOK = Asked("--gpus all", '[ "$(cat /etc/lab-hook)" = NVIDIA_VISIBLE_DEVICES=all ]')
BY_CDI = Asked("--device nvidia.com/gpu=all", '[ "$LAB_GPU" = all ] && [ -s /etc/lab-gpus ]')
# How an engine says that what follows is its error.
LEADS = ("docker: Error response from daemon: ", "Error response from daemon: ", "Error: ")


@dataclass(frozen=True)
class Typist:
    type: Callable[[str], Result]  # a command line, by the user whose engine it is
    program: str
    image: str  # without a command of its own that ends
    always: str = "--network none"  # options of every container

    def fresh(self, commands: Mapping[str, Asked]) -> dict[str, str]:
        """The commands that start a container, by row."""
        return {row: self._fresh(asked) for row, asked in commands.items()}

    def _fresh(self, asked: Asked) -> str:
        inside = f"sh -c '{asked.holds} && echo gpus; true'"
        ran = self.type(f"{self.program} run --rm {self.always} {asked.options} {self.image} {inside}")
        if ran.returncode:
            return reason(ran)
        return GPUS if ran.stdout == "gpus\n" else RUNS

    def start(self, name: str, asked: Asked) -> None:
        always = f"--name {name} --restart always {self.always}"
        done = self.type(f"{self.program} run -d {always} {asked.options} {self.image}")
        assert done.returncode == 0, done.stderr

    def there(self, name: str, called: str, asked: Asked | None = None) -> dict[str, str]:
        """A command in a container; the container restarted, and asked for its GPUs where it was made with them.

        What its last start left is removed in between.
        """
        entered = self._well(f"exec {name} true", WORKS)
        self.type(f"{self.program} exec {name} rm -f /etc/lab-gpus /etc/lab-hook")  # of a CDI device it is a mount
        restarted = self._well(f"restart -t 0 {name}", WORKS)
        if asked and restarted == WORKS:
            restarted = self._well(f"exec {name} sh -c '{asked.holds}'", GPUS)
        return {f"{called}: `{self.program} exec`": entered, f"{called}: `{self.program} restart`": restarted}

    def _well(self, command: str, well: str) -> str:
        done = self.type(f"{self.program} {command}")
        return reason(done) if done.returncode else well

    def remove(self, *names: str) -> None:
        """The exit code does not count: podman may leave the directory into which the lab's runtime wrote."""
        for command in ("kill", "rm -f"):  # what is in them ignores SIGTERM
            self.type(f"{self.program} {command} {' '.join(names)}")
        listed = self.type(f"{self.program} ps -a --format '{{{{.Names}}}}'")
        assert listed.returncode == 0, listed.stderr
        assert not set(names) & set(listed.stdout.split())


def reason(failed: Result) -> str:
    """What the engine says, as the page quotes it."""
    said = next((line for line in failed.stderr.splitlines() if line.startswith(LEADS)), failed.stderr.strip())
    for lead in LEADS:
        said = said.removeprefix(lead).rstrip(".")
    return f"`{said or f'exit code {failed.returncode}'}`"
