"""The text of the one probe: what a host is asked in one round trip. Loaded before almost all else: it loads little."""

from __future__ import annotations

from functools import lru_cache

# Only the last one does anything; the others define what it calls.
SCRIPTS = (
    "daemon/query",
    "trust",
    *(f"probe/{topic}" for topic in ("wire", "host", "pci", "driver", "gpu_users", "kernel", "initramfs", "packages")),
    *(f"probe/{topic}" for topic in ("daemons", "engines", "kubernetes", "pods", "system", "topology", "run")),
)
# Where the host has just unpacked this with gzip it packs the answer too (transport/packed.py).
_CALL = 'if [ -n "${GPUNODE_GZIP:-}" ]; then gpunode_probe | "$GPUNODE_GZIP" -1; else gpunode_probe; fi </dev/null\n'


NOT_PROBED = b"@gpunode-not-probed\n"


def probe_script(first: str = "") -> str:
    """The text for Transport.run: one shell function called on the last line, so a truncated upload runs nothing.

    `first`: a script of ours that runs before, in a shell of its own. Where it prints something, or dies, the answer is
    NOT_PROBED. (In a function: the shells of old do not find the end of a `case` in `$(...)`.) It comes last in the
    text: what all hosts are sent is compressed once (transport/packed.py).
    """
    from gpunode import resources
    from gpunode.packages.probe import probe_part

    return _joined((probe_part(), *map(resources.script, SCRIPTS)), first)


@lru_cache(maxsize=2)  # 120 KB, held once for all hosts of a fleet that are asked at the same moment
def _joined(parts: tuple[str, ...], first: str) -> str:
    if not first:
        return "\n".join((*parts, _CALL))
    ask = f"gpunode_first() (\n{first}\n)"
    silent = 'gpunode_said=$(gpunode_first </dev/null) && [ -z "$gpunode_said" ]'
    said = NOT_PROBED.decode().rstrip("\n")
    return "\n".join((*parts, ask, f"if {silent}; then {_CALL.rstrip()}; else echo {said}; fi\n"))


def usual_probe_script() -> str:
    """The same, where no package manager is registered that is not gpunode's own. Raises OSError."""
    from gpunode import resources

    return "\n".join((*map(resources.script, ("probe/managers", *SCRIPTS)), _CALL))
