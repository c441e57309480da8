"""The probe's stream: any text is kept, any truncation is noticed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpunode.errors import TransportError
from gpunode.facts.wire import HEADER, Section, Sections, decode, encode, file_facts
from gpunode.model.files import FileFacts

LINES = st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]))).map(
    lambda lines: "".join(f"{line}\n" for line in lines)
)
ANY_BYTES = st.binary().map(lambda raw: raw.decode("utf-8", "surrogateescape"))


@given(LINES, ANY_BYTES, st.integers(0, 255))
def test_any_payload_comes_back_whole(output: str, text: str, code: int) -> None:
    sections = Sections(
        {"os": Section(output, code), "smi": Section(rc=None, unread="not loaded")},
        {"/a b.toml": file_facts("/a b.toml", text), "/none": FileFacts("/none"), "/x": FileFacts("/x", unread="why")},
    )
    assert decode(encode(sections)) == sections


@given(LINES, st.data())
def test_any_truncation_is_an_error(output: str, data: st.DataObject) -> None:
    stream = encode(Sections({"os": Section(output)}, {"/f": file_facts("/f", output)}))
    # Only the last newline may be missing: nothing is lost with it.
    cut = data.draw(st.integers(0, len(stream) - 2))
    with pytest.raises(TransportError):
        decode(stream[:cut])


def test_a_banner_before_and_a_farewell_after_are_skipped() -> None:
    stream = b"Welcome!\n@ os rc=0\n" + encode(Sections({"os": Section("ID=debian\n")})) + b"logout\n"
    assert decode(stream).text("os") == "ID=debian\n"


@pytest.mark.parametrize(
    ("stream", "words"),
    [
        (b"", "sent nothing"),
        (b"This account is not available.\n", "This account is not available."),
        (b"@gpunode-facts 9\n@end\n", "@gpunode-facts 9"),
        (f"{HEADER}\r\n@end\r\n".encode(), "begins with"),
        (f"{HEADER}\n@ os rc=0\n|ID=x\n".encode(), "@ os rc=0"),
        (f"{HEADER}\n@ os rc=0\nsudo: a password is required\n@end\n".encode(), "sudo: a password"),
    ],
    ids=["silence", "no shell", "another version", "a terminal in between", "truncated", "a foreign line"],
)
def test_what_is_not_a_whole_answer_is_refused_and_shown(stream: bytes, words: str) -> None:
    with pytest.raises(TransportError) as fault:
        decode(stream)
    assert words in fault.value.evidence


def test_a_file_that_changed_under_the_probe_counts_as_unread() -> None:
    file = decode(f"{HEADER}\n@ file:/f bytes=90\n|short\n@end\n".encode()).files["/f"]
    assert file.text is None
    assert "changed while it was read" in (file.unread or "")
