"""The step that sets the toolkit's own config.toml."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpunode.cli.options.spec import ctk_texts
from gpunode.model.action import PutFile
from gpunode.model.facts import HostFacts
from gpunode.model.plan import Kept, Step
from gpunode.model.spec import TOOLKIT_CONFIG, Spec, ToolkitConfig
from gpunode.planner.install.toolkit import config_outcome
from gpunode.specfile import parse_spec, put_all, spec_text
from tests.engines.hosts import file_facts
from tests.planner.builders import H100, host

ROOTLESS = Spec(toolkit_config=ToolkitConfig(no_cgroups=True, cli_debug=""))


def node(text: str | None) -> HostFacts:
    return replace(host(H100), files={TOOLKIT_CONFIG: file_facts(TOOLKIT_CONFIG, text)})


def test_the_file_is_changed_with_its_hash_known_and_its_diff_shown() -> None:
    facts = node("[nvidia-container-cli]\n#no-cgroups = false\ndebug = '/x'\n")
    step = config_outcome(facts, ROOTLESS, installing=False)
    assert isinstance(step, Step)
    (put,) = step.actions
    assert isinstance(put, PutFile)
    assert (put.path, put.expect_sha256) == (TOOLKIT_CONFIG, facts.file(TOOLKIT_CONFIG).sha256)
    assert put.text == "[nvidia-container-cli]\n#no-cgroups = false\nno-cgroups = true\n"
    assert "+no-cgroups = true" in step.diff
    assert "and so no GPU" in step.why


@pytest.mark.parametrize(
    ("text", "installing", "said"),
    [
        (None, True, "is shipped with the toolkit and is edited after that"),
        ("[nvidia-container-cli]\nno-cgroups = true\n", False, "matches the spec"),
        ("[nvidia-container-cli]\nno-cgroups = true\n", True, "matches the spec"),
    ],
    ids=["the packages bring the file", "right", "right, and the toolkit changes"],
)
def test_what_is_right_or_not_there_yet_is_kept_with_the_reason(text: str | None, installing: bool, said: str) -> None:
    kept = config_outcome(node(text), ROOTLESS, installing=installing)
    assert isinstance(kept, Kept)
    assert said in kept.text


def test_a_toolkit_without_the_file_gets_one_with_these_settings() -> None:
    step = config_outcome(node(None), ROOTLESS, installing=False)
    assert isinstance(step, Step)
    (put,) = step.actions
    assert isinstance(put, PutFile)
    assert put.expect_sha256 is None


def test_nothing_asked_for_is_no_step_and_no_word() -> None:
    assert config_outcome(node("[nvidia-container-cli\n"), Spec(), installing=False) is None


def test_flags_and_file_say_the_same() -> None:
    words = (
        "mode=cdi",
        "nvidia-container-cli.no-cgroups=true",
        "accept-nvidia-visible-devices-envvar-when-unprivileged=no",
        "runtimes=crun,/opt/runc",
        "nvidia-container-runtime.debug=/var/log/x.log",
        "nvidia-container-cli.debug=off",
    )
    by_flags = put_all(Spec(), ctk_texts(words))
    assert by_flags.toolkit_config == ToolkitConfig(
        "cdi", True, False, None, ("crun", "/opt/runc"), None, "/var/log/x.log", ""
    )
    text = """
toolkit_config:
  mode: cdi
  no_cgroups: true
  accept_envvar_when_unprivileged: no
  runtimes: [crun, /opt/runc]
  runtime_debug: /var/log/x.log
  cli_debug: off
"""
    assert parse_spec(text) == by_flags
    assert parse_spec(spec_text(by_flags)) == by_flags
