"""apt's lists, in both of their spellings."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpunode.facts.archives import parse_archives
from gpunode.model.packages import AptArchive

KEY = "/usr/share/keyrings/debian-archive-keyring.gpg"
MAIN = AptArchive("http://mirror.example/debian", "bookworm", ("main", "contrib"), KEY)
ODD = (("check-valid-until", "no"), ("trusted", "yes"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            f"deb [signed-by={KEY}] http://mirror.example/debian bookworm main contrib\n", (MAIN,), id="a line"
        ),
        pytest.param(
            "deb [arch=amd64] http://mirror.example/debian bookworm main # note\n",
            (AptArchive("http://mirror.example/debian", "bookworm", ("main",)),),
            id="a line without a key, and a comment",
        ),
        pytest.param(
            "Types: deb deb-src\nURIs: http://mirror.example/debian\nSuites: bookworm\n"
            f"Components: main contrib\nSigned-By: {KEY}\n",
            (MAIN,),
            id="a stanza",
        ),
        pytest.param(
            "Types: deb\nURIs: http://x/\nSuites: a b\nEnabled: no\nComponents: main\n", (), id="a disabled stanza"
        ),
        pytest.param("Types: deb-src\nURIs: http://x/\nSuites: a\nComponents: main\n", (), id="sources only"),
        pytest.param("# deb http://x/ a main\ndeb-src http://x/ a main\n", (), id="comments and sources"),
        pytest.param(
            "deb [trusted=yes arch=amd64 check-valid-until=no] http://mirror.example/debian bookworm main\n",
            (replace(MAIN, components=("main",), signed_by=None, options=ODD),),
            id="a line with options",
        ),
        pytest.param(
            "Types: deb\nURIs: http://mirror.example/debian\nSuites: bookworm\nComponents: main\n"
            "Trusted: yes\nCheck-Valid-Until: no\nSigned-By:\n",
            (replace(MAIN, components=("main",), signed_by=None, inline_key=True, options=ODD),),
            id="a stanza with options, and its key in it",
        ),
        pytest.param(
            "deb https://developer.download.nvidia.com/x/ /\n",
            (AptArchive("https://developer.download.nvidia.com/x/", "/", ()),),
            id="a flat one",
        ),
    ],
)
def test_parse_archives(text: str, expected: tuple[AptArchive, ...]) -> None:
    assert parse_archives(text) == expected


def test_lines_and_stanzas_stand_side_by_side() -> None:
    text = "deb http://a/ x main\n\nTypes: deb\nURIs: http://b/\nSuites: y z\nComponents: main\n"
    assert [(a.uri, a.suite) for a in parse_archives(text)] == [
        ("http://a/", "x"),
        ("http://b/", "y"),
        ("http://b/", "z"),
    ]
