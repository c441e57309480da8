"""What is cut down to one line can still be used: words, commands and secrets are whole or not there."""

from __future__ import annotations

import pytest

from gpunode.render.short_text import in_line, shortened, whole_clauses


@pytest.mark.parametrize(
    ("text", "width", "line"),
    [
        ("the driver is not loaded", 24, "the driver is not loaded"),
        ("the driver is not loaded", 23, "the driver is not …"),
        ("the driver is not loaded: nouveau holds it", 33, "the driver is not loaded …"),
        ("no driver: nouveau holds the GPU", 29, "no driver: nouveau holds …"),
        ("the driver (nvidia) is loaded", 14, "the driver …"),
        ("libnvidia-container-tools", 12, "libnvidia- …"),
        ("does not start with alpha.kubernetes.io/nvidia-gpu-name", 42, "does not start with alpha.kubernetes.io/ …"),
    ],
    ids=[
        "what fits",
        "whole words",
        "a clause",
        "more than half of the line",
        "no bracket left open at the end",
        "one word that is longer",
        "a long last word",
    ],
)
def test_a_sentence_is_cut_between_words(text: str, width: int, line: str) -> None:
    assert shortened(text, width) == line
    assert len(line) <= width


@pytest.mark.parametrize(
    ("text", "width", "line"),
    [
        ("drain the node; reboot it", 25, "drain the node; reboot it"),
        ("drain the node; reboot it", 24, "drain the node …"),
        ("drain it, then reset the GPU; reboot", 20, "drain it …"),
        ("set a, b, c and d; reboot", 12, "set a, b, c and d …"),
        ("drain the node, and then all; reboot it", 8, "drain the node …"),
        ("nvidia-smi --gpu-reset -i 0", 10, "nvidia-smi --gpu-reset -i 0"),
        ("run `a, b; c` twice, then look", 25, "run `a, b; c` twice …"),
        ("run `a, b; c d e f g` twice", 12, "run `a, b; c d e f g` twice"),
        ("echo 'one, two' > file; reboot the host", 28, "echo 'one, two' > file …"),
        ("set it (one, or two) and restart; now", 34, "set it (one, or two) and restart …"),
        ("Stop it. Then look at dmesg", 20, "Stop it …"),
        ("mount /a.b on /c.d and look", 15, "mount /a.b on /c.d and look"),
    ],
    ids=[
        "what fits", "whole clauses", "the longest that fits", "a list is one thing",
        "one where none fits", "a command is never cut",
        "not within backquotes",
        "backquotes too long to fit", "not within quotes", "not within brackets", "between sentences",
        "not at a dot in a name",
    ],
)  # fmt: skip
def test_advice_is_cut_between_clauses(text: str, width: int, line: str) -> None:
    assert whole_clauses(text, width) == line


def test_lines_become_one_without_secrets_and_controls() -> None:
    line = in_line("HTTPS_PROXY=http://me:hunter2@proxy:3128\n\x1b[31mred\ttext")
    assert "hunter2" not in line
    assert "\x1b" not in line
    assert "\n" not in line
    assert line.endswith("red text")
