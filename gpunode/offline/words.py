"""What engines say of a host, said of files alone: no version that nobody named, and paths as they are out here."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from gpunode.errors import GpunodeError

Rule = Callable[[str], str]


@contextlib.contextmanager
def reworded(rule: Rule) -> Iterator[None]:
    """Errors of the block with `rule` applied to each of their sentences."""
    try:
        yield
    except GpunodeError as error:
        error.problem, error.evidence = rule(error.problem), rule(error.evidence)
        error.remedy = error.remedy.reworded(rule)
        raise


def without_version(name: str, assumed: str | None) -> Rule:
    """ "containerd 1.7.0" becomes "containerd 1.x" where that version was `assumed`; None: it was named."""
    if assumed is None:
        return lambda text: text
    return partial(re.compile(rf"\b{name} {re.escape(assumed)}(?![\w.])").sub, f"{name} {assumed.partition('.')[0]}.x")


def below(root: str, paths: Iterable[str]) -> Rule:
    """`paths` with `root` before them."""
    names = "|".join(map(re.escape, sorted(paths, key=len, reverse=True)))
    if not (root and names):
        return lambda text: text
    return partial(re.compile(rf"(?<![\w/.-])({names})").sub, lambda found: root + found[0])
