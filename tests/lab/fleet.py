"""Several hosts in one run of gpunode: the person's home directory, a run that goes on while the test does things."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from gpunode.apply.journal.entries import open_steps, parse_journal

from .host import Host, Result
from .product_runs import Controller
from .site import ROOT

JOURNAL = "/var/lib/gpunode/journal.jsonl"
LIMIT_S = 900.0  # for what takes a minute on a machine that does nothing else
PATIENT, IMPATIENT = "gpunode", "tests.lab.impatient"
POSTINST = "pgrep -f '[n]vidia-kernel-open-dkms.postinst'"


@dataclass(frozen=True)
class Way:
    """How ~/.ssh/config leads to one host."""

    user: str = "root"
    jump: str = ""


@dataclass
class Run:
    """A gpunode at work. What it printed is in files, so that it never waits for a reader."""

    process: subprocess.Popen[bytes]
    out: Path
    err: Path

    def said(self) -> str:
        return self.err.read_text(errors="replace")

    def until(self, *patterns: str) -> None:
        """Until each was printed on stderr; fails where the run ends, or the limit is over, before that."""
        for pattern in patterns:
            wait_until(partial(self.has, pattern), pattern, self.said)

    def has(self, pattern: str) -> bool:
        """Whether it was printed on stderr; fails where it was not and never will be."""
        ended = self.process.poll() is not None  # before the look: what it printed last counts
        found = re.search(pattern, self.said(), re.MULTILINE) is not None
        assert found or not ended, f"exit {self.process.returncode} before {pattern!r} was said:\n{self._all()}"
        return found

    def ended(self, limit_s: float = LIMIT_S) -> Result:
        try:
            code = self.process.wait(limit_s)
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"it did not end within {limit_s:.0f} s:\n{self._all()}") from error
        return Result(self.process.args, code, self.out.read_text(errors="replace"), self.said())

    def _all(self) -> str:
        return f"{self.out.read_text(errors='replace')}\n--- stderr\n{self.said()}"


@dataclass
class Fleet:
    """Hosts of one lab, and the home directory of the person who reaches them all."""

    hosts: tuple[Host, ...]
    home: Path
    ways: dict[str, Way] = field(default_factory=dict)  # of hosts that are not reached as root, and at once
    module: str = PATIENT
    runs: list[Run] = field(default_factory=list)

    def __getitem__(self, name: str) -> Host:
        return next(host for host in self.hosts if host.name == name)

    @property
    def names(self) -> str:
        return ",".join(host.name for host in self.hosts)

    def gpunode(self, *words: str, timeout: float = LIMIT_S) -> Result:
        """All hosts in one run."""
        return self.start(*words, "--ssh", self.names).ended(timeout)

    def start(self, *words: str) -> Run:
        """The words as they are: a run of earlier hosts has no --ssh."""
        env = Controller("ssh", self.home).env(self.hosts[0])
        (self.home / ".ssh" / "config").write_text("".join(map(self._config, self.hosts)))
        number = len(list(self.home.glob("*.err")))
        out, err = self.home / f"{number}.out", self.home / f"{number}.err"
        with out.open("wb") as printed, err.open("wb") as said:
            process = subprocess.Popen(
                (sys.executable, "-m", self.module, *words),
                env=env,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=said,
            )
        self.runs.append(Run(process, out, err))
        return self.runs[-1]

    def end(self) -> None:
        """No run goes on when its test is over, whatever came of that."""
        for run in self.runs:
            run.process.kill()
            run.process.wait()

    def _config(self, host: Host) -> str:
        way = self.ways.get(host.name, Way())
        return host.ssh_config_text(way.user) + (f"    ProxyJump {way.jump}\n" if way.jump else "")


def start_side_by_side(hosts: Sequence[Host]) -> None:
    for host in hosts:
        host.start(wait=False)
    for host in hosts:
        host.wait()
    for host in hosts:  # sshd answers before docker does; a plan made in between would not fit any more
        host.nsrun("systemctl is-system-running --wait")


def hold(hosts: Iterable[Host], fault: str = "dkms_held") -> None:
    for host in hosts:
        host.fault(fault)


def lift(hosts: Iterable[Host], fault: str = "dkms_held") -> None:
    for host in hosts:
        host.fault(fault, False)


def until_in_a_transaction(hosts: Iterable[Host], run: Run) -> None:
    """Until dpkg configures the kernel module on each of them, where "dkms_held" keeps it."""
    for host in hosts:
        wait_until(partial(_at_work, host, run), f"a transaction on {host.name}", run.said)


def _at_work(host: Host, run: Run) -> bool:
    assert run.process.poll() is None, f"it ended before the transaction was seen:\n{run.ended().stderr}"
    return host.nsrun(POSTINST).returncode == 0


def assert_whole(hosts: Iterable[Host]) -> None:
    """No package is half-way, no line of a journal is torn, no step in it is open."""
    for host in hosts:
        assert host.nsrun("dpkg --audit", check=True).stdout == "", host.name
        text = host.read(JOURNAL)
        assert text.endswith("\n"), text[-200:]
        assert len(parse_journal(text)) == text.count("\n"), f"a line of {host.name} is no entry:\n{text}"
        assert open_steps(parse_journal(text)) == {}, host.name


def wait_until(seen: Callable[[], bool], what: str, said: Callable[[], str] = str, limit_s: float = LIMIT_S) -> None:
    """`said`: what is shown beside `what` where it was not seen in time."""
    deadline = time.monotonic() + limit_s
    while not seen():
        assert time.monotonic() < deadline, f"not seen within {limit_s:.0f} s: {what}\n{said()}"
        time.sleep(0.1)
