"""Runs of gpunode that are cut at random: which run, how it is cut, who finishes it; and what must hold afterwards.

A walk goes from a bare host through setup, another branch, undo and undo --packages back to the bare host. Every run
of it is cut once, and the next runs have to bring the host where the cut one was going. The seed decides all but the
microseconds, so the same seed meets much the same moments again.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from gpunode.apply.journal.entries import open_steps, parse_journal

from .host import Host
from .product_runs import Controller
from .test_undo import difference, tree

JOURNAL = "/var/lib/gpunode/journal.jsonl"
SESSIONS = "/sys/fs/cgroup/user.slice/user-0.slice/session-*.scope/cgroup.procs"
FURTHER_RUNS = 2
RUN_LIMIT_S = 600.0
# Everything that gpunode, dpkg or a tool writes next to a file before it takes its place.
LEFTOVERS = (
    "find /etc /usr/share/keyrings /var/lib/gpunode /run/gpunode -path /var/lib/gpunode/runs -prune -o"
    r" \( -name '.*.gpunode' -o -name '*.gpunode-new' -o -name '*.part' -o -name '*.dpkg-new' -o -name '*.dpkg-tmp' \)"
    " -print"
    " 2>/dev/null"
)
WRITTEN_TO = "/etc /usr/share/keyrings /var/lib/gpunode/backup /usr/lib/x86_64-linux-gnu /usr/src"
EMPTY = f"find {WRITTEN_TO} -type f -empty 2>/dev/null | sort"
BOOKS = r"dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' | grep -vE '^(ii|hi|rc|un) '"
PACKAGES = r"dpkg-query -W -f '${Package} ${Version} ${db:Status-Abbrev}\n'; apt-mark showauto"


@dataclass(frozen=True)
class Deed:
    """One run of gpunode: its words, the state it leads to, and how much of the journal it writes."""

    name: str
    words: tuple[str, ...]
    leads_to: str
    lines: int  # of the journal, about: the moment of a cut is a number of lines and a little time


SETUP = Deed("setup", ("setup", "--yes", "--driver", "580"), "580", 65)
CHANGE = Deed("change", ("setup", "--yes", "--driver", "595"), "595", 28)
UNDO = Deed("undo", ("undo", "--yes"), "undone", 12)
UNDO_PACKAGES = Deed("undo --packages", ("undo", "--yes", "--packages"), "bare", 16)
WAYS = {
    "bare": (SETUP,),
    "580": (CHANGE, CHANGE, UNDO, UNDO_PACKAGES),
    "595": (UNDO, UNDO_PACKAGES, UNDO_PACKAGES),
    "undone": (SETUP, UNDO_PACKAGES, UNDO_PACKAGES),
}
# Who finishes what was cut: mostly the same command, sometimes the opposite one.
OTHERS = {"setup": UNDO_PACKAGES, "change": UNDO_PACKAGES, "undo": SETUP, "undo --packages": SETUP}
CUTS = ("controller", "connection", "session", "power", "power")  # power twice: it is what loses most


@dataclass(frozen=True)
class Cut:
    """`after_lines` of the journal and then `wait_s`, the run is cut; `rescue` finishes it."""

    deed: Deed
    kind: str
    after_lines: int
    wait_s: float
    rescue: Deed

    def __str__(self) -> str:
        moment = f"{self.after_lines} lines + {self.wait_s:.2f} s"
        return f"{self.deed.name} cut by {self.kind} after {moment}, finished by {self.rescue.name}"


def walk(seed: str) -> Iterator[Cut]:
    """From the bare host back to it."""
    chance, state = random.Random(seed), "bare"
    while True:
        deed = chance.choice(WAYS[state])
        rescue = OTHERS[deed.name] if chance.random() < 0.2 else deed
        wait_s = chance.choice((0.0, 0.05, 0.3, 1.0, 2.0)) * chance.random()
        yield Cut(deed, chance.choice(CUTS), chance.randrange(deed.lines), wait_s, rescue)
        state = rescue.leads_to
        if state == "bare":
            return


@dataclass
class Bare:
    """The host before gpunode, which every walk comes back to."""

    etc: dict[str, str]
    packages: str
    empty: str

    @classmethod
    def of(cls, host: Host) -> Bare:
        return cls(tree(host), host.nsrun(PACKAGES, check=True).stdout, host.nsrun(EMPTY).stdout)


@dataclass
class Walker:
    """`trust`: fingerprint of the repositories' key."""

    host: Host
    me: Controller
    bare: Bare
    trust: str
    said: str = ""
    wrote: int = 0  # lines of the journal, by the last run that was struck

    def go(self, cut: Cut) -> str:
        """Cut the run and have it finished; "cut", or "missed" for a run that was over first. Raises AssertionError."""
        met = self._strike(cut)
        self._finish(cut)
        self._inspect(cut.rescue.leads_to)
        return "cut" if met else f"missed, its lines are {self.wrote}"

    def _words(self, deed: Deed) -> tuple[str, ...]:
        return (
            (*deed.words, "--trust-key", self.trust, "--reboot", "if-needed") if "setup" in deed.words else deed.words
        )

    def _lines(self) -> int:
        return self.host.read(JOURNAL).count("\n") if self.host.exists(JOURNAL) else 0

    def _strike(self, cut: Cut) -> bool:
        begin, boots = self._lines(), self.host.boots
        env = self.me.env(self.host)
        with (self.me.home / "said").open("wb") as said:
            running = subprocess.Popen(
                (sys.executable, "-m", "gpunode", *self._words(cut.deed), "--ssh", self.host.name),
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
            )
        until(
            lambda: running.poll() is not None or self.host.boots != boots or self._lines() >= begin + cut.after_lines
        )
        if running.poll() is None:
            time.sleep(cut.wait_s)
        met = running.poll() is None
        self.wrote = self._lines() - begin
        BLOWS[cut.kind](running, self.host)
        running.wait()
        self.said = (self.me.home / "said").read_text(errors="replace")
        self.host.wait()
        return met

    def _finish(self, cut: Cut) -> None:
        self.host.nsrun("systemctl is-system-running --wait")
        for _ in range(FURTHER_RUNS):
            done = self.me.gpunode(self.host, *self._words(cut.rescue), timeout=RUN_LIMIT_S)
            self.said += f"\n--- {cut.rescue.name}: exit {done.returncode}\n{done.stdout}{done.stderr}"
            if done.returncode == 0:
                return
        raise AssertionError(f"not done after {FURTHER_RUNS} further runs")

    def _inspect(self, state: str) -> None:
        """What holds wherever a walk has come to."""
        host, wrong = self.host, []
        for what, command in (("audit", "dpkg --audit"), ("books", BOOKS), ("leftovers", LEFTOVERS)):
            if out := host.nsrun(command).stdout:
                wrong.append(f"{what}: {out}")
        if fresh := set(host.nsrun(EMPTY).stdout.split()) - set(self.bare.empty.split()):
            wrong.append(f"empty: {sorted(fresh)}")
        entries = parse_journal(host.read(JOURNAL))
        if left := open_steps(entries) if state != "bare" and state != "undone" else {}:
            wrong.append(f"open steps: {sorted(left)}")
        if state == "bare":
            wrong += difference(self.bare.etc, tree(host))
            packages = host.nsrun(PACKAGES, check=True).stdout
            wrong += sorted(set(packages.splitlines()) ^ set(self.bare.packages.splitlines()))
        assert not wrong, "\n".join(wrong)


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + RUN_LIMIT_S
    while not holds():
        assert time.monotonic() < end, "it did not come to that within its limit"
        time.sleep(0.01)


def cut_controller(running: subprocess.Popen[bytes], host: Host) -> None:
    running.kill()


def cut_connection(running: subprocess.Popen[bytes], host: Host) -> None:
    """The sshd that serves the controller dies; the controller may come back and finish by itself."""
    host.nsrun("pkill -KILL -f '^sshd(-session)?: root'")


def cut_session(running: subprocess.Popen[bytes], host: Host) -> None:
    """sshd, the script it runs and all its children, and the controller."""
    host.nsrun(f"kill -KILL $(cat {SESSIONS})")
    running.kill()


def cut_power(running: subprocess.Popen[bytes], host: Host) -> None:
    host.power_cut()
    running.kill()
    host.start()


BLOWS = {"controller": cut_controller, "connection": cut_connection, "session": cut_session, "power": cut_power}


def fresh_host(host: Host) -> None:
    """The disk as it was when `bare` was kept."""
    host.kill()
    host.restore("bare")
    host.start()
    host.nsrun("systemctl is-system-running --wait")


def log_line(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(f"{text}\n")
    print(text, flush=True)
