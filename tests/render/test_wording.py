"""A host's name before a text: neither may hide the other's meaning, nor show its secrets."""

from __future__ import annotations

import pytest

from gpunode.masking import MASK, masked
from gpunode.render.wording import with_name, without_name

NAMES = ["gpu01", "gpu-token", "gpu01-pass", "db.secret", "passwd", "root@gpu-token:22", "gpu-token:22"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("lead", ["", "gpunode: "])
def test_no_name_takes_its_text_for_a_secret(name: str, lead: str) -> None:
    said = "the host refuses to run a command"
    assert said in masked(lead + with_name(name, said), "lines")
    assert without_name(name, with_name(name, said)) == said


def test_a_name_that_is_no_secrets_stands_as_ever() -> None:
    assert with_name("gpu01", "no route to host") == "gpu01: no route to host"
    assert with_name("gpu-token", "no route to host") == "[gpu-token] no route to host"


@pytest.mark.parametrize("name", NAMES)
def test_it_is_there_once(name: str) -> None:
    once = with_name(name, "no route to host")
    assert with_name(name, once) == with_name(name, f"{name}: no route to host") == once


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("text", ["token: hunter2 hunter3", "curl -u ann:hunter2 x", "x --password hunter2"])
def test_a_secret_in_the_text_is_masked_behind_any_name(name: str, text: str) -> None:
    shown = with_name(name, text)
    assert "hunter" not in shown
    assert MASK in shown
