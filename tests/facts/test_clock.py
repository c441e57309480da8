"""How far a host's clock is from this machine's, from what the probe read without a process."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from gpunode.facts.clock import parse_skew
from gpunode.facts.collect import assemble
from gpunode.transport.base import Way
from tests.facts.hosts import make_root, run_probe

SENT, ANSWERED = 1000.0, 1004.0


def section(epoch: object = 1000, begun: object = "50.25", ended: object = "54.00") -> str:
    return f"epoch={epoch}\nbegun={begun}\nended={ended}\n"


@pytest.mark.parametrize(
    ("text", "ahead_s", "error_s"),
    [
        (
            section(),
            0.375,
            0.625,
        ),  # 3.75 of the 4 s were the probe's own: 0.25 s are not known, and a second of the clock
        (section(epoch=1090), 90.375, 0.625),
        (section(epoch=910), -89.625, 0.625),
        (section(begun="50.00"), 0.5, 0.5),
        (section(begun="54.00"), -1.5, 2.5),
    ],
)
def test_the_clock_is_read_as_well_as_the_way_allows(text: str, ahead_s: float, error_s: float) -> None:
    skew = parse_skew(text, SENT, ANSWERED)
    assert skew is not None
    assert (skew.ahead_s, skew.error_s) == (ahead_s, error_s)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "epoch=1000\n",
        section(epoch="soon"),
        section(epoch="9" * 40),
        section(begun="-1"),
        section(begun="nan"),
        section(begun="1e3"),
        section(begun="9" * 400),
        section(begun="60.00"),
        section(ended="99.00"),
        section(epoch="\udcff"),
    ],
)
def test_what_no_host_can_say_is_not_known(text: str) -> None:
    assert parse_skew(text, SENT, ANSWERED) is None


def test_a_clock_of_another_age_is_a_number() -> None:
    skew = parse_skew(section(epoch="9" * 18), SENT, ANSWERED)
    assert skew is not None
    assert skew.ahead_s > 1e17


@pytest.mark.parametrize("shell", ["dash", "bash", "busybox ash"])
def test_the_probe_reads_this_machines_own_clock(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell.split()[0]) is None:
        pytest.skip(f"{shell} is not installed here")
    root = make_root(tmp_path)
    sent = time.time()
    done = run_probe(shell.split(), root)
    answered = time.time()
    connection = assemble(done.stdout, "here", Way("ann", "key", "file:1", True, False, sent, answered)).connection
    assert connection is not None
    assert (connection.user, connection.host_key, connection.known_in) == ("ann", "key", "file:1")
    assert connection.skew is not None
    assert abs(connection.skew.ahead_s) <= connection.skew.error_s
    assert assemble(done.stdout, "a recording").connection is None
