from __future__ import annotations

import gzip
import subprocess
from pathlib import Path

import pytest

from gpunode.errors import TransportError
from gpunode.facts.collect import collect
from gpunode.facts.packed import unpacked
from gpunode.facts.probe_script import probe_script
from gpunode.facts.recordings import load_recording
from gpunode.facts.wire import STREAM_LIMIT_BYTES
from gpunode.transport.base import Completed, Question
from gpunode.transport.recorded import Recorded

EXAMPLES = Path(__file__).parents[2] / "examples" / "hosts"

STREAM = b"@gpunode-facts 1\n@ os rc=0\n|ID=debian\n@end\n"


def test_a_stream_comes_out_as_it_went_in() -> None:
    assert unpacked(gzip.compress(STREAM)) == STREAM
    assert unpacked(STREAM) == STREAM
    assert unpacked(b"") == b""


@pytest.mark.parametrize("cut", [3, 20, -1, -8], ids=["in the header", "in the middle", "a byte", "the checksum"])
def test_a_cut_stream_is_an_error(cut: int) -> None:
    with pytest.raises(TransportError, match="truncated"):
        unpacked(gzip.compress(STREAM)[:cut])


def test_a_wrong_checksum_is_an_error() -> None:
    packed = bytearray(gzip.compress(STREAM))
    packed[-5] ^= 1
    with pytest.raises(TransportError, match="truncated"):
        unpacked(bytes(packed))


def test_a_small_answer_does_not_become_a_large_one_here() -> None:
    bomb = gzip.compress(bytes(64 * STREAM_LIMIT_BYTES))
    assert len(bomb) < STREAM_LIMIT_BYTES
    with pytest.raises(TransportError, match="larger than any host's"):
        unpacked(bomb)


@pytest.mark.parametrize(("given", "packed"), [("", False), ("/bin/gzip", True)], ids=["plain", "packed"])
def test_the_probe_answers_as_it_was_sent(given: str, packed: bool) -> None:
    call = probe_script().rstrip("\n").rpartition("\n")[2]
    script = f"GPUNODE_GZIP={given}\ngpunode_probe() {{ cat; echo '@end'; }}\n{call}\n"
    for shell in ("dash", "bash"):
        done = subprocess.run((shell, "-s"), input=script.encode(), capture_output=True, check=True)
        assert done.stdout.startswith(b"\x1f\x8b") is packed
        assert unpacked(done.stdout) == b"@end\n"


def test_hosts_that_are_asked_at_the_same_moment_share_one_probe() -> None:
    class Asked(Recorded):
        def run(self, script: str, *, stdin: bytes = b"", timeout_s: float) -> Completed:
            scripts.append(script)
            return super().run(script, stdin=stdin, timeout_s=timeout_s)

    scripts: list[str] = []
    stream = load_recording(EXAMPLES / "debian12-ready")
    for name in ("h1", "h2"):
        collect(Asked(stream, name))
    first, second = scripts
    assert first is second
    assert isinstance(first, Question)
