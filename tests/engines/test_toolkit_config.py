"""The toolkit's config.toml before and after, as text and through a second parser."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpunode.engines.toolkit_config import rewrite
from gpunode.errors import ConfigFileError, UsageError
from gpunode.model.files import FileFacts
from gpunode.model.spec import TOOLKIT_CONFIG, TOOLKIT_SETTINGS, ToolkitConfig, toolkit_field
from tests.engines.hosts import file_facts

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]

PAIRS = Path(__file__).parent / "toolkit_config"
ROOTLESS = ToolkitConfig(no_cgroups=True)
EVERY = ToolkitConfig(
    "cdi", True, False, True, ("crun", "runc"), "debug", "/var/log/nvidia-container-runtime.log", "/x"
)
HARD = ToolkitConfig(accept_envvar_when_unprivileged=False, accept_volume_mounts=True)
WANTED = {
    "shipped-every-setting": EVERY,
    "shipped-rootless": ROOTLESS,
    "shipped-hardened": HARD,
    "hand-set-values-and-comments": ToolkitConfig("cdi", False, False, runtimes=("crun",), cli_debug=""),
    "minimal-without-tables": EVERY,
    "crlf-and-the-comment-of-another-table": ROOTLESS,
    "inline-and-dotted": ToolkitConfig("jit-cdi", no_cgroups=True),
    "a-comment-inside-a-text-is-none": ROOTLESS,
    "empty": HARD,
    "comment-on-the-last-line-without-newline": ROOTLESS,
}


def read(name: str) -> str:
    return (PAIRS / f"{name}.toml").read_bytes().decode()


def after(text: str | None, want: ToolkitConfig) -> str:
    return rewrite(file_facts(TOOLKIT_CONFIG, text), want).main.after


@pytest.mark.parametrize("name", sorted(WANTED))
def test_file_before_and_after(name: str) -> None:
    result = after(read(f"{name}.before"), WANTED[name])
    assert result == read(f"{name}.after")
    assert after(result, WANTED[name]) == result
    plain = tomllib.loads(result.replace("\r\n", "\n"))
    for field, keys in TOOLKIT_SETTINGS.items():
        value, table = getattr(WANTED[name], field), plain if len(keys) == 1 else plain.get(keys[0], {})
        if value is not None:
            assert table.get(keys[-1], "") == (list(value) if isinstance(value, tuple) else value)


@pytest.mark.parametrize("name", sorted(set(WANTED) - {"inline-and-dotted", "hand-set-values-and-comments"}))
def test_every_line_that_is_not_the_setting_itself_keeps_its_order(name: str) -> None:
    kept = iter(after(read(f"{name}.before"), WANTED[name]).splitlines())
    ours = {keys[-1] for keys in TOOLKIT_SETTINGS.values()}
    for line in read(f"{name}.before").splitlines():
        if line.split(" = ")[0] not in ours:
            assert line in kept, line


def test_an_absent_file_is_made_with_what_was_asked_for_alone() -> None:
    edit = rewrite(FileFacts(TOOLKIT_CONFIG), ROOTLESS).main
    assert (edit.before, tomllib.loads(edit.after)) == (None, {"nvidia-container-cli": {"no-cgroups": True}})


def test_nothing_asked_for_changes_nothing() -> None:
    text = read("hand-set-values-and-comments.before")
    result = rewrite(file_facts(TOOLKIT_CONFIG, text), ToolkitConfig())
    assert (result.changed, result.main.after, result.added) == (False, text, ())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[nvidia-container-cli\n", f"{TOOLKIT_CONFIG}:1:"),
        ("nvidia-container-cli = 3\n", "wants a table"),
        ("a = 1\na = 2\n", f"{TOOLKIT_CONFIG}:2:"),
        ("a = '\udcff'\n", "UTF-8"),
    ],
    ids=["syntax", "a table that is none", "a key twice", "bytes that are no text"],
)
def test_a_file_that_cannot_be_edited_is_an_error_with_its_place_and_is_left_alone(text: str, said: str) -> None:
    with pytest.raises(ConfigFileError) as refused:
        after(text, ROOTLESS)
    assert said in refused.value.problem
    assert "containerd" not in refused.value.remedy.text


def test_what_it_did_is_reported() -> None:
    result = rewrite(
        file_facts(TOOLKIT_CONFIG, read("shipped-every-setting.before")), ToolkitConfig("cdi", no_cgroups=True)
    )
    assert result.added == ('nvidia-container-runtime.mode "auto" → "cdi"', "+ nvidia-container-cli.no-cgroups = true")
    assert any("no device rules" in note for note in result.notes)


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("mode", "mode"),
        ("nvidia-container-runtime.mode", "mode"),
        ("no-cgroups", "no_cgroups"),
        ("nvidia-container-cli.debug", "cli_debug"),
        ("nvidia-container-runtime.debug", "runtime_debug"),
    ],
)
def test_settings_are_named_as_the_toolkit_names_them(name: str, field: str) -> None:
    assert toolkit_field(name) == field


def test_a_name_that_is_two_settings_lists_both() -> None:
    with pytest.raises(UsageError, match=r"nvidia-container-runtime\.debug and nvidia-container-cli\.debug"):
        toolkit_field("debug")


LINES = st.lists(
    st.sampled_from(
        [
            "# a comment",
            "",
            "[nvidia-container-cli]",
            "[nvidia-container-runtime]",
            "[nvidia-container-runtime.modes.cdi]",
            "#no-cgroups = false",
            "  #mode = 'auto'",
            "no-cgroups = false # off",
            "mode = 'legacy'",
            'runtimes = ["runc"]',
            "load-kmods = true",
            "text = '''\n#no-cgroups = false\n'''",
            "[ours]",
        ]
    ),
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(lines=LINES, crlf=st.booleans(), want=st.sampled_from([ROOTLESS, EVERY, HARD, ToolkitConfig("csv")]))
def test_any_legal_file_reads_back_as_itself_with_the_settings_and_the_edit_is_idempotent(
    lines: list[str], crlf: bool, want: ToolkitConfig
) -> None:
    text = "\n".join(lines).replace("\n", "\r\n" if crlf else "\n")
    try:
        plain = tomllib.loads(text.replace("\r\n", "\n"))
    except tomllib.TOMLDecodeError:
        with pytest.raises(ConfigFileError):
            after(text, want)
        return
    result = after(text, want)
    for field, keys in TOOLKIT_SETTINGS.items():
        value = getattr(want, field)
        if value is not None:
            table = plain if len(keys) == 1 else plain.setdefault(keys[0], {})
            table[keys[-1]] = list(value) if isinstance(value, tuple) else value
    assert tomllib.loads(result.replace("\r\n", "\n")) == plain
    assert after(result, want) == result
