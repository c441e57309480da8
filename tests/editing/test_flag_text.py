"""Flags in environment files, units and lists of arguments: found, and taken out with their blanks and quotes."""

from __future__ import annotations

import pytest

from gpunode.editing.flag_text import flags, with_value, without_flag
from gpunode.errors import ConfigFileError

G = "--feature-gates=A=true"


@pytest.mark.parametrize(
    ("text", "after"),
    [
        (f"KUBELET_EXTRA_ARGS={G} --node-ip=1.2.3.4\n", "KUBELET_EXTRA_ARGS=--node-ip=1.2.3.4\n"),
        (f'ARGS="--x=y {G}"\n', 'ARGS="--x=y"\n'),
        (f"# {G}\nK={G}\n", f"# {G}\nK=\n"),
        (f'[Service]\nEnvironment="K={G}"\n', '[Service]\nEnvironment="K="\n'),
        (f'ExecStart=/usr/bin/kubelet $K "{G}" --v 2\n', "ExecStart=/usr/bin/kubelet $K --v 2\n"),
        ("ExecStart=/usr/bin/kubelet \\\n  --feature-gates A=true \\\n  --v 2\n",
         "ExecStart=/usr/bin/kubelet \\\n  \\\n  --v 2\n"),
        (f"ExecStart=/usr/bin/kubelet \\\n  {G}\n[Install]\n", "ExecStart=/usr/bin/kubelet \\\n\n[Install]\n"),
        (f"{G}\r\n--x=y\r\n", "--x=y\r\n"),
        (f"--x\n{G}", "--x\n"),
    ],
    ids=["the first", "the last in quotes", "not a comment's", "a unit's variable", "quotes of its own", "two words",
         "the last line of several", "a line of its own, CRLF", "no newline at the end"],
)  # fmt: skip
def test_a_flag_goes_and_all_else_stays(text: str, after: str) -> None:
    (flag,) = (one for one in flags(text) if one.name == "feature-gates")
    assert without_flag("/etc/default/kubelet", text, flag) == after
    assert not [one for one in flags(after) if one.name == "feature-gates"]


def test_a_value_is_replaced_where_it_stands() -> None:
    text = f'ARGS="--x=y {G} --z"\n'
    flag = flags(text)[1]
    assert with_value("/etc/f", text, flag, "B=false") == 'ARGS="--x=y --feature-gates=B=false --z"\n'


@pytest.mark.parametrize("text", ['K=--feature-gates="A=true"\n', 'K="--feature-gates=A=true,\\\n B=true"\n'])
def test_a_value_that_goes_on_elsewhere_is_said_to_be_open(text: str) -> None:
    assert flags(text)[0].open


def test_what_would_change_another_flag_is_refused() -> None:
    text = "K=--a=1 --b=2\n"
    with pytest.raises(ConfigFileError, match="without changing something else"):
        with_value("/etc/f", text, flags(text)[0], "1 --c=3")


def test_a_huge_line_is_read_in_linear_time() -> None:
    assert flags("-" * 200_000 + " --a=" + "x" * 200_000 + '"' * 1000)[0].name == "a"
