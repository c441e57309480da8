"""Whether what some work costs grows as its input does, in time of the processor.

Eight times the input may cost 24 times as much: 8 is linear, 64 is quadratic, and noise lies in between. GPUNODE_LONG=1
doubles each input instead, from 8 KiB up to 4 MiB, and each doubling may cost 2.6 times as much; -s prints a line for
every row. A row ends before 4 MiB where one run takes longer than GPUNODE_LONG_S seconds (20), which the line tells.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from gpunode.errors import GpunodeError

LONG = os.environ.get("GPUNODE_LONG") == "1"
LONG_S = float(os.environ.get("GPUNODE_LONG_S", "20"))
SHORT = 8 << 10
TIMES, MOST = 8, 24.0
SMALLEST, LARGEST, MOST_DOUBLED = 8 << 10, 4 << 20, 2.6
LEAST_S = 0.001  # what is shorter counts as this long
TRIES, TRIES_S = 3, 0.1  # in one look at a cost; what takes long is not tried again
LOOKS, LONG_LOOKS = 3, 10  # before it is said to be too much

T = TypeVar("T")


class Cost(Generic[T]):
    """The least that one input costs in any look at it: whatever else the machine does only adds."""

    def __init__(self, work: Callable[[T], object], given: T) -> None:
        self._work, self._given = work, given
        self.least_s = float("inf")
        self.refusal = ""
        self.look()

    def look(self) -> None:
        """Without the garbage collector, whose work depends on all else that there is."""
        gc.disable()
        try:
            begun = time.process_time()
            for _ in range(TRIES):
                self.least_s = min(self.least_s, self._once())
                if time.process_time() - begun > TRIES_S:
                    break
        finally:
            gc.enable()

    def _once(self) -> float:
        begun = time.process_time()
        try:
            self._work(self._given)
        except (GpunodeError, ValueError) as refused:  # that has to be found as fast
            self.refusal = " ".join(str(refused).split())[:60] or type(refused).__name__
        return time.process_time() - begun


def assert_linear(work: Callable[[T], object], made: Callable[[int], T], short: int = SHORT) -> None:
    """`made` gives an input of about so many characters; `short` is the smaller of the two, unless GPUNODE_LONG=1."""
    if LONG:
        _assert_each_doubling(work, made)
        return
    small, large = Cost(work, made(short)), Cost(work, made(short * TIMES))
    ratio = _ratio(small, large, MOST, LOOKS)
    assert ratio <= MOST, f"{short}: {small.least_s:.4f} s, {short * TIMES}: {large.least_s:.4f} s"


def _ratio(small: Cost[T], large: Cost[T], most: float, looks: int) -> float:
    """What the larger costs, in times the smaller; looked at again as long as that is too much."""
    for _ in range(looks - 1):
        if large.least_s <= most * max(small.least_s, LEAST_S):
            break
        small.look()
        large.look()
    return large.least_s / max(small.least_s, LEAST_S)


def _assert_each_doubling(work: Callable[[T], object], made: Callable[[int], T]) -> None:
    """What outgrows a cache costs more once, and as much as before from then on: one such edge may lie anywhere.

    What is worse than linear misses at every size from some one on.
    """
    size, worst, missed, remarks = SMALLEST, (0.0, SMALLEST), "", []
    half = Cost(work, made(size))
    while half.least_s <= LONG_S and (size < LARGEST or missed):
        size *= 2
        whole = Cost(work, made(size))
        ratio = _ratio(half, whole, MOST_DOUBLED, LONG_LOOKS)
        words = f"{size // 2}: {half.least_s:.4f} s, {size}: {whole.least_s:.4f} s"
        if ratio > MOST_DOUBLED:
            assert not missed, f"{missed}, {words}"
            remarks.append(f"an edge: {words}")
            missed = words
        else:
            assert not (missed and whole.refusal), f"{missed}, then {whole.refusal}"
            missed, worst = "", max(worst, (ratio, size))
        if whole.refusal and not half.refusal:
            remarks.append(f"refused from {size} on: {whole.refusal}")
        half = whole
    assert not missed, missed
    if size < LARGEST:
        remarks.append(f"ended at {size}, which takes {half.least_s:.1f} s")
    row = os.environ.get("PYTEST_CURRENT_TEST", "").partition("::")[2].removesuffix(" (call)")
    print(f"\n{row}: {worst[0]:.2f} at {worst[1]}; {size}: {half.least_s:.4f} s; {'; '.join(remarks)}")
