"""Which program a handler runs: one rule for every engine that has an entry of its own for it."""

from __future__ import annotations

from collections.abc import Collection

from gpunode.model.spec import RuntimeSpec


def program(want: RuntimeSpec, there: str | None, missing: Collection[str] = ()) -> str:
    """A path that was named wins; else the one that is there is unchanged, unless it is among the `missing`.

    `there`: what the entry names now, such as the GPU Operator's; None or "" where it names nothing. `missing`: paths
    that the disk does not have (RuntimeFacts.missing_binaries).
    """
    keeps = want.path is None and there and there not in missing
    return there if keeps and there else want.program
