"""Taking the handler out again: what is left reads as before, and every other byte stays."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from gpunode.editing.toml_scan import comments, statements
from gpunode.engines.containerd.remove import removed, unimported
from gpunode.errors import ConfigFileError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]

PAIRS = Path(__file__).parent / "containerd"
NAMES = sorted(p.name.removesuffix(".after.toml") for p in PAIRS.glob("*.after.toml"))
V2 = "io.containerd.grpc.v1.cri"
TABLE = f'[plugins."{V2}".containerd'


@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_the_handler_is_left_and_the_rest_reads_as_it_did(name: str) -> None:
    after = (PAIRS / f"{name}.after.toml").read_text(encoding="utf-8")
    left = removed(after, "nvidia", "runc")
    assert 'default_runtime_name = "nvidia"' not in left
    assert "runtimes.nvidia]" not in left
    assert others(tomllib.loads(left)) == others(tomllib.loads(after))
    assert lines_of_comment(left) == lines_of_comment(after)
    assert removed(left, "nvidia", "runc") == left


@pytest.mark.parametrize(
    ("name", "previous"),
    [
        ("17-default-crun", "crun"),
        ("17-kubeadm-systemd-cgroup", "runc"),
        ("21-only-version", None),
        ("21-v2-file", None),
    ],
)
def test_a_file_that_only_gained_the_handler_has_its_old_bytes_again(name: str, previous: str | None) -> None:
    after = (PAIRS / f"{name}.after.toml").read_text(encoding="utf-8")
    assert removed(after, "nvidia", previous) == (PAIRS / f"{name}.before.toml").read_text(encoding="utf-8")


def lines_of_comment(text: str) -> list[str]:
    return [statement.text for statement in statements(text) if statement.kind == "comment"]


def others(config: dict[str, Any]) -> dict[str, Any]:
    """Without the handler and the default, and without tables that this leaves empty."""
    for plugin in config.get("plugins", {}).values():
        engine = plugin.get("containerd", {}) if isinstance(plugin, dict) else {}
        engine.get("runtimes", {}).pop("nvidia", None)
        engine.pop("default_runtime_name", None)
    return filled(config)


def filled(value: dict[str, Any]) -> dict[str, Any]:
    inner = {k: filled(v) if isinstance(v, dict) else v for k, v in value.items()}
    return {k: v for k, v in inner.items() if v != {}}


def test_what_others_wrote_since_is_unchanged() -> None:
    text = (
        f"version = 2 # ours\r\n\r\n{TABLE}]\r\ndefault_runtime_name = 'nvidia'  # for the GPUs\r\n"
        f'# added on Tuesday\r\n{TABLE}.runtimes."nvidia"]\r\nruntime_type = "x"\r\n# a word about it\r\n'
        f'{TABLE}.runtimes.nvidia.options] # these\r\nBinaryName = """\r\n[x]\r\n"""\r\n'
        f'\r\n# kata\r\n{TABLE}.runtimes.kata]\r\nruntime_type = "io.containerd.kata.v2"\r\n'
    )
    assert removed(text, "nvidia", "crun") == (
        f"version = 2 # ours\r\n\r\n{TABLE}]\r\ndefault_runtime_name = 'crun'  # for the GPUs\r\n"
        "# added on Tuesday\r\n# a word about it\r\n"
        f'\r\n# kata\r\n{TABLE}.runtimes.kata]\r\nruntime_type = "io.containerd.kata.v2"\r\n'
    )


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f'version = 2\n{TABLE}]\ndefault_runtime_name = "crun"\n', None),
        ("version = 2\n# nvidia was here\n", None),
        ("", None),
        (
            f'plugins."{V2}".containerd.default_runtime_name = "nvidia"\n'
            f'plugins."{V2}".containerd.runtimes.nvidia.runtime_type = "x"\nroot = "/a"\n',
            'root = "/a"\n',
        ),
        (
            f'[plugins."{V2}".containerd]\nruntimes = {{ nvidia = {{ runtime_type = "x" }} }}\nsnapshotter = "zfs"\n',
            f'[plugins."{V2}".containerd]\nsnapshotter = "zfs"\n',
        ),
        (f'[plugins."{V2}".containerd.runtimes.nvidia]\nruntime_type = "x"\n', ""),
    ],
    ids=[
        "a default that someone else set", "no handler", "empty", "dotted keys", "an inline table of it alone",
        "a file of nothing else",
    ],
)  # fmt: skip
def test_other_spellings(text: str, left: str | None) -> None:
    assert removed(text, "nvidia", None) == (text if left is None else left)


def test_an_inline_table_with_others_in_it_is_rebuilt_without_the_handler() -> None:
    text = f'[plugins."{V2}".containerd]\nruntimes = {{ runc = {{ a = 1 }}, nvidia = {{ a = 2 }} }}\nb = 1 # stays\n'
    left = removed(text, "nvidia", None)
    assert tomllib.loads(left) == {"plugins": {V2: {"containerd": {"runtimes": {"runc": {"a": 1}}, "b": 1}}}}
    assert "# stays" in left


def test_text_that_is_not_toml_is_refused_by_name() -> None:
    with pytest.raises(ConfigFileError, match=r"/etc/x\.toml:1:"):
        removed("version = \n", "nvidia", None, path="/etc/x.toml")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('imports = ["/etc/a.toml", "/etc/conf.d/*.toml"]\nversion = 2\n', 'imports = ["/etc/a.toml"]\nversion = 2\n'),
        ('version = 3\nimports = ["/etc/conf.d/*.toml"]\n# end\n', "version = 3\n# end\n"),
        ('imports = ["/etc/a.toml"]\n', 'imports = ["/etc/a.toml"]\n'),
        ("version = 3\n", "version = 3\n"),
    ],
    ids=["among others", "the only one", "not among them", "no imports"],
)
def test_an_import_is_taken_out(text: str, left: str) -> None:
    assert unimported(text, "/etc/conf.d/*.toml") == left


@pytest.mark.parametrize("name", NAMES)
def test_the_statements_of_a_file_are_the_file(name: str) -> None:
    text = (PAIRS / f"{name}.before.toml").read_text(encoding="utf-8")
    assert "".join(statement.text for statement in statements(text)) == text


def test_each_statement_knows_its_line_and_its_path() -> None:
    text = "\ufeffa.'b c' = [ # one\n 1, # two\n]\n\n[x.\"y.z\"] # three\nk = '''\n[no]\n''''' # four\n[[list]]\nl=1"
    assert [(s.kind, s.line, s.path) for s in statements(text)] == [
        ("key", 1, ("a", "b c")),
        ("blank", 4, ()),
        ("table", 5, ("x", "y.z")),
        ("key", 6, ("x", "y.z", "k")),
        ("array", 9, ("list",)),
        ("key", 10, ("list", "l")),
    ]
    assert comments(text) == ("# one", "# two", "# three", "# four")
    assert [s.text[slice(*s.value)] for s in statements(text) if s.kind == "key"][1:] == ["'''\n[no]\n'''''", "1"]
