"""Reading an answer takes time in proportion to its size and at most eight times its memory, whatever it holds."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from gpunode.errors import TransportError
from gpunode.facts.wire import (
    COMMANDS_LIMIT_BYTES,
    FILE_LIMIT_BYTES,
    HEADER,
    SECTION_LIMIT,
    STREAM_LIMIT_BYTES,
    Sections,
    decode,
    encode,
    file_facts,
)
from gpunode.transport.answer import ANSWER_LIMIT_BYTES, Answer, Stream
from tests.hostile.linear import assert_linear

HOST = Path(__file__).parents[2] / "examples/hosts/debian12-ready/facts.txt"
BEGIN = b"\x1egpunode-begin 0123456789abcdef0123456789abcdef\n"
END = b"\x1egpunode-end 0123456789abcdef0123456789abcdef 0\n"


def answer(body: bytes, size: int, section: str = "file:/a bytes=4193000") -> bytes:
    """`body` again and again, as what a whole answer of `size` bytes holds; blank lines where another is too much."""
    head, tail = f"{HEADER}\n@ {section}\n".encode(), b"\n@end\n"
    room = size - len(head) - len(tail)
    return head + body * (room // len(body)) + b"\n" * (room % len(body)) + tail


BODIES = {
    "empty lines of payload": b"|\n",
    "lines of one letter": b"|a\n",
    "blank lines": b"\n",
    "marks and nothing else": b"|",
    "a wide letter here and there": b"|" + b"a" * 500 + "😀\n".encode(),
    "bytes that are no text": b"|\xff\xfe\x80\n",
    "the same section again": b"\n@ os rc=0",
    "files that are not there": b"\n@ file:/a absent",
    "files without an end of their name": b"\n@ file:/a bytes=1 bytes=1 bytes=x",
    "one header without end": b"\n@ " + b"file:/a unreadable bytes=" * 100,
}


def read(stream: bytes) -> Sections | None:
    try:
        return decode(stream)
    except TransportError:
        return None


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_reading_takes_at_most_eight_times_the_size(body: bytes) -> None:
    stream = answer(body, STREAM_LIMIT_BYTES)
    tracemalloc.start()
    try:
        read(stream)
        peak = tracemalloc.get_traced_memory()[1] + len(stream)
    finally:
        tracemalloc.stop()
    assert peak <= 8 * len(stream)


def test_many_sections_take_no_more() -> None:
    heads = b"".join(b"\n@ file:/%d bytes=0 mode=644" % n for n in range(100_000))
    stream = answer(heads, STREAM_LIMIT_BYTES)
    tracemalloc.start()
    try:
        with pytest.raises(TransportError, match="larger than any host's") as caught:
            decode(stream)
        peak = tracemalloc.get_traced_memory()[1] + len(stream)
    finally:
        tracemalloc.stop()
    assert str(SECTION_LIMIT) in caught.value.evidence
    assert peak <= 8 * len(stream)


def files(text: Callable[[int], bytes], more: bytes = b"") -> bytes:
    """A whole answer of `more` sections and the largest files that are read; `text` makes so many bytes of one line."""
    room, parts = STREAM_LIMIT_BYTES - len(more) - 100, [f"{HEADER}\n".encode(), more]
    while room > 1000:
        size = min(FILE_LIMIT_BYTES, room - 100)
        parts.append(f"@ file:/{len(parts)} bytes={size}\n|".encode() + text(size) + b"\n")
        room -= len(parts[-1])
    return b"".join([*parts, b"@end\n"])


def small(count: int) -> bytes:
    return b"".join(b"@ file:/small%d bytes=1\n|\xff\n" % n for n in range(count))


WIDE = "😀".encode()  # one such letter makes a text four bytes a letter, and a byte that is none makes it two before


@pytest.mark.parametrize(
    "sections", [0, SECTION_LIMIT - 10], ids=["large files", "and as many small ones as there may be"]
)
@pytest.mark.parametrize(
    "text",
    [
        lambda size: b"a" * (size - 4) + WIDE,
        lambda size: b"\xff" + b"a" * (size - 5) + WIDE,
        lambda size: b"\xff" + WIDE + b"a" * (size - 5),
    ],
    ids=["a wide letter at the end", "after a byte that is no text", "and at once"],
)
def test_texts_of_four_bytes_a_letter_take_no_more(text: Callable[[int], bytes], sections: int) -> None:
    stream = files(text, small(sections))
    assert len(stream) <= STREAM_LIMIT_BYTES
    tracemalloc.start()
    try:
        read = decode(stream).files
        peak = tracemalloc.get_traced_memory()[1] + len(stream)
    finally:
        tracemalloc.stop()
    assert all(file.text for file in read.values()), "every one is read"
    assert peak <= 8 * len(stream)


def test_a_file_longer_than_any_that_the_probe_sends_is_not_read() -> None:
    stream = (
        f"{HEADER}\n@ file:/a bytes={FILE_LIMIT_BYTES + 1}\n|".encode() + b"a" * (FILE_LIMIT_BYTES + 1) + b"\n@end\n"
    )
    file = decode(stream).files["/a"]
    assert (file.text, file.unread) == (None, "over 1048576 bytes")


def test_commands_may_say_less_than_files_may_hold() -> None:
    assert decode(answer(b"|a\n", COMMANDS_LIMIT_BYTES, "os rc=0")).text("os")
    with pytest.raises(TransportError, match="larger than any host's"):
        decode(answer(b"|a\n", 2 * COMMANDS_LIMIT_BYTES, "os rc=0"))


FACTS = r"""
import re, sys
from pathlib import Path
from gpunode.facts.collect import assemble

def peak():
    return int(re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())[1])

assemble(Path(sys.argv[1]).read_bytes(), "before")
stream = Path(sys.argv[2]).read_bytes()
before = peak()
assemble(stream, "host")
print(peak() - before + len(stream) // 1024)
"""


def short_words(size: int) -> bytes:
    """Lines of one word each, all different, about `size` bytes."""
    return b"".join(f"|{n:06x}\n".encode() for n in range(size // 8))


@pytest.mark.parametrize("section", ["modules", "processes", "tools", "nvidia_ko"])
def test_the_facts_of_one_host_cost_at_most_64_mb(section: str, tmp_path: Path) -> None:
    """All that commands may say in one section, and the rest of the answer as a file in wide letters."""
    wide = b"|" + b"a" * 60 + WIDE + b"\n"
    text = wide * ((STREAM_LIMIT_BYTES - COMMANDS_LIMIT_BYTES - 100_000) // 2 // len(wide))
    head = f"bytes={len(text) - text.count(10)}\n".encode()
    (tmp_path / "stream").write_bytes(
        HOST.read_bytes().replace(b"@end\n", b"")
        + f"@ {section} rc=0\n".encode()
        + short_words(COMMANDS_LIMIT_BYTES - 100_000)
        + b"".join(
            b"@ file:" + path + b" " + head + text for path in (b"/etc/docker/daemon.json", b"/etc/crio/crio.conf")
        )
        + b"@end\n"
    )
    command = (sys.executable, "-c", FACTS, str(HOST), str(tmp_path / "stream"))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) <= 64 * 1024


def test_an_answer_over_the_limit_is_refused_unread() -> None:
    with pytest.raises(TransportError, match="larger than any host's"):
        decode(answer(b"|a\n", STREAM_LIMIT_BYTES + 1))


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_reading_is_linear(body: bytes) -> None:
    assert_linear(decode, lambda size: answer(body, size), short=STREAM_LIMIT_BYTES // 8)


def test_writing_is_linear() -> None:
    def sections(size: int) -> Sections:
        return Sections(files={"/f": file_facts("/f", "|@ \n" * (size // 4))})

    assert_linear(encode, sections, short=64_000)


def listen(stream: bytes, piece_bytes: int) -> Stream:
    heard = Answer()
    for place in range(0, len(stream), piece_bytes):
        heard.out(stream[place : place + piece_bytes])
    return heard.stdout


@pytest.mark.parametrize(
    "body",
    [b"\x1e", b"\x1egpunode-end ", END[:-5], END[:-2] + b"x", b"\x1egpunode-begin "],
    ids=["record marks", "ends without a token", "ends without a code", "ends with a false code", "begins"],
)
@pytest.mark.parametrize("before", [True, False], ids=["in the answer", "before it begins"])
def test_listening_is_linear_in_small_pieces(body: bytes, before: bool) -> None:
    def stream(size: int) -> bytes:
        return (BEGIN if before else b"") + (body * (size // len(body) + 1))[:size]

    assert_linear(lambda given: listen(given, 100), stream, short=64 << 10)


@pytest.mark.parametrize("piece_bytes", [1, 2, 7, 61, 4096])
@pytest.mark.parametrize("inside", [b"", b"\x1e", END[:-3], END[:-2] + b"x" + END[:20], b"end\n" * 30])
def test_an_answer_is_the_same_in_pieces_of_any_size(inside: bytes, piece_bytes: int) -> None:
    heard = listen(b"banner\x1e" + BEGIN + inside + END[:-2] + b"17\n" + b"left behind" + END, piece_bytes)
    assert (bytes(heard.noise), bytes(heard.body), heard.code) == (b"banner\x1e", inside, 17)


def test_the_limits_of_wire_and_transport_agree() -> None:
    assert STREAM_LIMIT_BYTES == ANSWER_LIMIT_BYTES
