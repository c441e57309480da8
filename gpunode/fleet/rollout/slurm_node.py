"""A node of Slurm, set to DRAIN until its jobs have ended, and resumed."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from gpunode.fleet.rollout.drain import Closed, NodeIdentity, Note, busy, last_words, run_tool
from gpunode.regex import regex
from gpunode.values import dataclass

_NAME = regex(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,62})", re.ASCII)  # of NodeName in slurm.conf, without ranges
_STATE = regex(r"\bState=(\S+)")  # "IDLE+DRAIN", "MIXED", "DOWN*+DRAIN"
# Each of these keeps new jobs away, and RESUME takes it back (slurmctld's update_node). POWERED_DOWN is none of them: a
# node that sleeps is woken for the next job.
_CLOSED = regex(r"DRAIN|\b(DOWN|FAIL(ING)?)\b", re.ASCII)
_HOSTNAME = regex(r"\bNodeHostName=(\S+)")
_BETWEEN_S = 5.0
# Without --states squeue leaves out suspended jobs, which hold their GPUs' memory.
_ON_A_NODE = "CONFIGURING,RUNNING,SUSPENDED,COMPLETING"
REASON = "gpunode sets it up"


@dataclass(frozen=True)
class Slurm:
    """The cluster of this machine's slurm.conf."""

    scontrol: str  # its path
    squeue: str
    timeout_s: int
    pause: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    name: str = "Slurm"

    def close(self, node: NodeIdentity, note: Note) -> Closed:
        """See Scheduler.close."""
        name = node.hostname.partition(".")[0]  # as slurmd names itself (gethostname_short)
        reopen = (self.scontrol, "update", f"NodeName={name}", "State=RESUME")
        if self._closed(node, name):
            return Closed(name, reopen, before=True)
        note(reopen)
        done = run_tool((self.scontrol, "update", f"NodeName={name}", "State=DRAIN", f"Reason={REASON}"))
        if done.code != 0:  # slurmctld may have been told, and its answer lost
            why = busy(node, f"Slurm does not drain {name}", f"scontrol update: {last_words(done)}")
            return Closed(name, reopen, failed=why)
        return Closed(name, reopen)

    def clear(self, node: NodeIdentity, closed: Closed, stop: Callable[[], bool]) -> None:
        """See Scheduler.clear: jobs come to their end."""
        if why := self._wait(closed.name, stop):
            raise busy(node, f"jobs of Slurm's are at work on {closed.name}", why)

    def reopen(self, command: tuple[str, ...]) -> str:
        """See Scheduler.reopen."""
        done = run_tool(command)
        return "" if done.code == 0 else f"scontrol update: {last_words(done)}"

    def _closed(self, node: NodeIdentity, name: str) -> bool:
        """Whether it takes no new jobs already: it is drained, down or failed. Raises HostBusy where Slurm has no such
        node.
        """
        if _NAME.fullmatch(name) is None:
            raise busy(node, "its name is no name of a node of Slurm's", f"it calls itself {name[:80]!r}")
        done = run_tool((self.scontrol, "show", "node", name, "--oneliner"))
        text = done.out.decode("utf-8", "replace")
        state, hostname = _STATE.search(text), _HOSTNAME.search(text)
        if done.code != 0 or state is None:
            raise busy(node, f"Slurm does not show a node {name}", f"scontrol show node: {last_words(done)}")
        if hostname is not None and hostname[1].partition(".")[0] != name:
            raise busy(node, f"Slurm's node {name} is another host", f"its NodeHostName is {hostname[1][:80]!r}")
        return _CLOSED.search(state[1].upper()) is not None

    def _wait(self, name: str, stop: Callable[[], bool]) -> str:
        """Until no job is on it; why there still is one, or "" ."""
        end = self.clock() + self.timeout_s
        while True:
            done = run_tool((self.squeue, "--noheader", f"--nodelist={name}", f"--states={_ON_A_NODE}", "--format=%A"))
            if done.code != 0:
                return f"squeue: {last_words(done)}"
            jobs = done.out.decode("utf-8", "replace").split()
            if not jobs:
                return ""
            if stop():
                return "the run was stopped while it waited for them"
            if self.clock() >= end:
                return f"after {self.timeout_s} s still there: job {', '.join(jobs[:4])[:80]}"
            self.pause(_BETWEEN_S)
