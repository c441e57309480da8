"""Thousands of daemon.json files, legal and almost: what the edit makes of each. GPUNODE_DOCKER_FILES says how many.

tests/lab asks real daemons about the same files.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from gpunode.cli.app import main
from gpunode.engines.base import Rewrite
from gpunode.errors import ConfigFileError, GpunodeError
from tests.engines import json_spans
from tests.engines.docker_cases import rewritten
from tests.engines.docker_texts import Generated, generated, how_many, one, shown
from tests.engines.json_spans import Value

CASES = generated(how_many(300))
VERSIONS = ("20.10.24", "26.1.5", "28.5.2", None)
Path_ = tuple[str, ...]


def made_of(case: Generated, version: str | None) -> Rewrite | GpunodeError:
    try:
        return rewritten(case.text, version, case.want)
    except GpunodeError as refused:
        return refused


@pytest.mark.parametrize("version", VERSIONS)
def test_what_was_asked_for_is_there_and_every_other_byte_is_as_it_was(version: str | None) -> None:
    outcomes: Counter[str] = Counter()
    for case in CASES:
        made = made_of(case, version)
        outcomes["refused" if isinstance(made, GpunodeError) else "edited" if made.changed else "unchanged"] += 1
        if isinstance(made, Rewrite):
            after = made.main.after
            asked_for(case, after, version)
            unchanged_but_for_ours(case, after)
            assert not rewritten(after, version, case.want).changed, shown(case)
    print(version, dict(outcomes))
    assert outcomes["edited"] > len(CASES) // 3
    assert outcomes["refused"] > len(CASES) // 10


def asked_for(case: Generated, after: str, version: str | None) -> None:
    config = json.loads(after, object_pairs_hook=unique)
    before = json.loads(case.text.removeprefix("\ufeff").strip() or "null") or {}
    entry = {key.lower(): value for key, value in config["runtimes"][case.want.handler].items()}
    path = entry.get("path") or entry["options"]["BinaryName"]
    assert path == case.want.path or (case.want.path is None and path), shown(case)
    old = before.get("default-runtime")
    assert config.get("default-runtime") == (case.want.handler if case.want.default else old), shown(case)
    if case.want.cdi:
        assert (config.get("features") or {}).get("cdi", version == "28.5.2") is True, shown(case)


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len({key for key, _ in pairs}) == len(pairs), pairs
    return dict(pairs)


def unchanged_but_for_ours(case: Generated, after: str) -> None:
    before = case.text
    old, new = json_spans.whole(before), json_spans.whole(after)
    assert new is not None
    if old is None or old.of(before) == "null":
        assert case.text.removeprefix("\ufeff").strip() in ("", "null")
        return
    assert after[: new.start] == before[: old.start].removeprefix("\ufeff" if after != before else ""), shown(case)
    assert after[new.end :] == before[old.end :], shown(case)
    same(case, (), (before, old), (after, new))


def is_ours(case: Generated, at: Path_) -> bool:
    """Whether the value there may be another one afterwards."""
    low = tuple(key.lower() for key in at[2:])
    return at in (("default-runtime",), ("features", "cdi")) or (
        at[:2] == ("runtimes", case.want.handler) and low in (("path",), ("options", "binaryname"))
    )


def same(case: Generated, at: Path_, before: tuple[str, Value], after: tuple[str, Value]) -> None:
    (text, old), (other, new) = before, after
    if old.of(text) == new.of(other) or is_ours(case, at):
        return
    handler = ("runtimes", case.want.handler)
    if old.of(text) == "null":
        assert at in (("runtimes",), ("features",), handler, (*handler, "options")), shown(case)
        return
    assert at in ((), ("runtimes",), ("features",), handler, (*handler, "options")), shown(case)
    assert old.members is not None
    assert new.members is not None
    end, other_end = old.start + 1, new.start + 1
    for (key, _, value), (other_key, _, other_value) in zip(old.members, new.members, strict=False):
        # From the value before (or the brace) to this value: comma, blanks, the key as it is spelled, colon.
        assert text[end : value.start] == other[other_end : other_value.start], shown(case)
        assert key == other_key
        same(case, (*at, key), (text, value), (other, other_value))
        end, other_end = value.end, other_value.end
    assert len(new.members) >= len(old.members), shown(case)
    rest, other_rest = text[end : old.end], other[other_end : new.end]
    if len(new.members) == len(old.members):
        assert other_rest == rest, shown(case)
    elif old.members:
        assert other_rest.endswith(rest), shown(case)


def test_the_comparison_of_bytes_finds_one_that_changed() -> None:
    case = Generated(0, b'{"a" : 1.0, "runtimes": {"x": {}}}', one(0).want)
    for wrong in (
        '{"a": 1.0, "runtimes": {"x": {}}}',
        '{"a" : 1, "runtimes": {"x": {}}}',
        '{"a" : 1.0,"runtimes": {"x": {}}}',
        '{"runtimes": {"x": {}}, "a" : 1.0}',
        '{"a" : 1.0, "runtimes": {}}',
        '{"a" : 1.0, "runtimes": {"x": {}} }',
        '{"a" : 1.0, "runtimes": {"x": {}}}\n',
    ):
        with pytest.raises(AssertionError):
            unchanged_but_for_ours(case, wrong)
    unchanged_but_for_ours(case, '{"a" : 1.0, "runtimes": {"x": {}, "nvidia": {}}, "default-runtime": "x"}')


def test_a_refused_file_is_untouched_and_the_place_of_its_fault_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = [case for case in CASES if isinstance(made_of(case, None), ConfigFileError)][:60]
    assert len(refused) >= 40
    path = tmp_path / "daemon.json"
    for case in refused:
        path.write_bytes(case.data)
        want = case.want
        words = [
            "--name",
            want.handler,
            *(["--path", want.path] if want.path else []),
            *(["--cdi"] if want.cdi else []),
        ]
        words += [] if want.default else ["--no-set-as-default"]
        at = path.stat().st_mtime_ns
        assert main(["runtime", "configure", "docker", "--config", str(path), *words]) == 1, shown(case)
        said = "".join(capsys.readouterr().err.split())
        assert f"{path}:" in said, shown(case)
        assert (path.read_bytes(), path.stat().st_mtime_ns) == (case.data, at), shown(case)
        assert list(tmp_path.iterdir()) == [path]
