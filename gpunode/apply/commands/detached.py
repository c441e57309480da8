"""Commands that outlive the connection: started on the host as their own unit, watched, and re-attached to."""

from __future__ import annotations

import time
from collections.abc import Callable

from gpunode import resources
from gpunode.advice import named
from gpunode.apply.journal.entries import Journal
from gpunode.apply.lock import HostLock
from gpunode.apply.paths import STATE
from gpunode.apply.script import SHORT_S, Host, parse_reply, script_text, shell_line
from gpunode.errors import StepFailed, TransportError
from gpunode.foreign import whole_number
from gpunode.model.action import Run
from gpunode.remedy import AGAIN, Remedy, RepairAction
from gpunode.transport.base import FINAL, Completed, Question, Transport
from gpunode.values import dataclass

PATIENCE_S = 20  # one poll; well under the lock's minute
RUNNING_LIMIT_S = 3600  # how long a transaction of an earlier run is waited for
# Pauses between tries to reach a host again: about ten minutes in all.
RECONNECT_S = (1.0, 2.0, 5.0, 10.0, 20.0, *(30.0,) * 18)

OnOutput = Callable[[str], None]
Pause = Callable[[float], None]


@dataclass(frozen=True)
class Ended:
    """How a detached command ended. code None: it vanished (killed, or a power cut) without an exit code."""

    code: int | None
    output: str
    seconds: float


def run_detached(
    host: Host,
    journal: Journal,
    run_id: str,
    run: Run,
    *,
    on_output: OnOutput,
    pause: Pause = time.sleep,
    begun: Callable[[], None] = lambda: None,
) -> Ended:
    """Start `run` under the name `run_id` (or find it started) and wait for its end, over many lost connections.

    `begun` is called once it runs. Raises TransportError when the host is unreachable for ten minutes (the command goes
    on), and StepFailed when the command could not be started or runs past its limit: it is never killed, since half a
    package transaction is worse than a late one.
    """
    stdin = stdin_of(run)
    runner = f'{resources.script("commands/detached_runner")}{shell_line(run.argv)}\nfinish "$?"'
    pending = journal.pending()

    def start() -> Completed:
        return host.run("commands/start_detached", host.token, pending, run_id, str(len(stdin)), runner, stdin=stdin)

    parse_reply(_persist(host.transport, start, pause, on_output))
    journal.delivered()
    begun()
    return attach(host, run_id, limit_s=run.timeout_s, on_output=on_output, pause=pause)


def attach(host: Host, run_id: str, *, limit_s: float, on_output: OnOutput, pause: Pause = time.sleep) -> Ended:
    """Follow a detached command to its end. Raises as run_detached does."""
    output, seconds, size = b"", 0.0, 0
    quiet_s, tell_at_s = 0.0, float(PATIENCE_S)

    def poll() -> Completed:
        return host.run(
            "commands/wait_detached", host.token, run_id, str(size), str(PATIENCE_S), timeout_s=SHORT_S + PATIENCE_S
        )

    while True:
        done = _persist(host.transport, poll, pause, on_output)
        word, rest = parse_reply(done)
        new = done.stdout.partition(b"\n")[2]
        output = (output + new)[-65536:]
        code, size = _numbers(run_id, word, rest)
        seconds += done.seconds
        if word == "ended":
            return Ended(code, output.decode("utf-8", "replace"), seconds)
        if word == "vanished":
            return Ended(None, output.decode("utf-8", "replace"), seconds)
        for line in new.decode("utf-8", "replace").splitlines()[-1:]:
            on_output(line.strip())
        quiet_s = 0.0 if new else quiet_s + done.seconds
        tell_at_s = PATIENCE_S if new else tell_at_s
        if quiet_s >= tell_at_s:
            tell_at_s *= 2  # a module's build is quiet for minutes
            on_output(f"no output for {quiet_s:.0f} s; {_last_line(output)}it still runs")
        if seconds > limit_s:
            raise StepFailed(
                f"{run_id} still runs after {seconds:.0f} s, over its limit of {limit_s:.0f} s; it was left running",
                evidence=f"{_last_line(output)}its output so far is in {STATE}/runs/{run_id}/out",
                remedy=Remedy(RepairAction.WAIT, "run ", AGAIN, " again: it waits for the running command first"),
            )


def _last_line(output: bytes) -> str:
    """ "its last line: ...; ", which names what it waits for; "" where there is none."""
    lines = output.decode("utf-8", "replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f"its last line is {last[:200]!r}; " if last else ""


def _numbers(run_id: str, word: str, rest: str) -> tuple[int | None, int]:
    """(exit code, bytes of output so far); the script replies `running SIZE`, `ended CODE SIZE` or `vanished SIZE`."""
    numbers = [whole_number(text) for text in rest.split()]
    if len(numbers) != (2 if word == "ended" else 1) or any(number is None or number < 0 for number in numbers):
        raise StepFailed(
            f"the host's answer about {run_id} makes no sense",
            evidence=f"it replied {f'{word} {rest}'[:120]!r}",
            remedy=Remedy(
                RepairAction.CONFIGURE,
                f"see {named(f'{STATE}/runs/{run_id}')} on the host (a full disk?), then run ",
                AGAIN,
                " again",
            ),
        )
    return numbers[0], numbers[-1] or 0


def wait_for_running(
    transport: Transport, *, on_output: OnOutput, pause: Pause = time.sleep, lock: HostLock | None = None
) -> tuple[str, ...]:
    """Wait for detached commands that a killed gpunode left running here; their names. Writes nothing.

    Facts taken in the middle of a package transaction would be wrong a minute later. `lock`, for a run that does not
    hold it yet: raises HostLocked where the gpunode that started them lives, so nobody waits behind a whole run.
    """
    host = Host(transport)
    names = tuple(host.run("commands/list_detached").stdout.decode("utf-8", "replace").split())
    if names and lock:
        lock.peek()
    for name in names:
        on_output(f"waiting for {name}, which an earlier gpunode started")
        attach(host, name, limit_s=RUNNING_LIMIT_S, on_output=on_output, pause=pause)
    return names


def nothing_runs(*, unlocked: bool = False, token: str = "", lines: str = "") -> str:
    """A script that prints nothing, and ends with 0, where `wait_for_running` would find nothing to wait for.

    `unlocked`: and nobody holds the host's lock. `lines`: which the holder of the lock with this token still has for
    the journal; they are written and flushed by then. A Question without them.
    """
    held = '[ ! -e "$lock" ] || echo locked\n' if unlocked else ""
    script = script_text("commands/list_detached", token, lines) + held
    return script if lines else Question(script)


def stdin_of(run: Run) -> bytes:
    """What run.sh and detached_runner.sh read: NAME=value lines, an empty line, the command's own input.

    The environment can hold a proxy's password, so it travels here and in no argument list.
    """
    env = "".join(f"{name}={value}\n" for name, value in run.env)
    return f"{env}\n{run.stdin}".encode("utf-8", "surrogateescape")


def _persist(
    transport: Transport, ask: Callable[[], Completed], pause: Pause, on_output: Callable[[str], None]
) -> Completed:
    """Ask until the host answers, and say when it does not. Each script here may be sent twice.

    Raises TransportError, with the command to resume, when the host is not reached for ten minutes; at once
    where it refuses a password, or its key is refused.
    """
    for number, wait_s in enumerate((*RECONNECT_S, None)):
        try:
            done = ask()
        except FINAL:
            raise
        except TransportError as error:
            if wait_s is None:
                raise TransportError(error.problem, evidence=error.evidence, remedy=_UNREACHED) from error
            if number == 0:
                on_output(f"{error.problem}; what was begun goes on there; connecting again, for ten minutes")
            pause(wait_s)
            transport.reconnect()
        else:
            if number:
                on_output("connected again")
            return done
    raise AssertionError("the last round returns or raises")


_UNREACHED = Remedy(
    RepairAction.WAIT,
    "what was begun goes on there; once the host is reachable, run ",
    AGAIN,
    " again: it waits for that first",
)
