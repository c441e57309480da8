"""What a rollout will do, in a line or two, before the question."""

from __future__ import annotations

from collections.abc import Sequence

from gpunode.fleet.rollout.policy import Limits
from gpunode.fleet.rollout.window import Window
from gpunode.render.wording import count


def rollout_words(limits: Limits, window: Window, schedulers: Sequence[str], *, reboots: bool) -> str:
    """ "1 canary, then 3 batches of 4; ..."; "" for one host with no window and no drain.

    `reboots`: the spec lets hosts reboot.
    """
    hosts, parts = sum(limits.waves), []
    if hosts > 1:
        parts = [f"{_waves(limits)}; {_stops(limits)}"]
        parts += [f"at most {count(limits.max_reboots, 'host')} {_verb(limits)} at once"] if reboots else []
    parts += [window.text] if window.text else []
    parts += [f"drained by {' and '.join(schedulers)} before what disturbs its work"] if schedulers else []
    return " · ".join(parts)


def _waves(limits: Limits) -> str:
    canary, others = (limits.waves[:1], limits.waves[1:]) if limits.canary else ((), limits.waves)
    then = ""
    if len(others) > 1:
        then = f"{len(others)} batches of {others[0]}"
    elif others:
        then = f"{count(others[0], 'host')} {'after it' if canary else 'side by side'}"
    return ", then ".join(filter(None, (_canary(canary[0]) if canary else "", then)))


def _canary(hosts: int) -> str:
    return count(hosts, "canary", "canaries")


def _stops(limits: Limits) -> str:
    stops = ["a canary that fails"] if limits.canary else []
    most = limits.max_failures
    if most is not None:
        stops.append(f"more than {count(most, 'failed host')}" if most else "the first failed host")
    return f"{' or '.join(stops)} stops it" if stops else "failures do not stop it"


def _verb(limits: Limits) -> str:
    return "reboots" if limits.max_reboots == 1 else "reboot"
