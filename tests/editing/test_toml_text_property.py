"""Any legal TOML in any style: every key that was not to change keeps its value, and what was added comes out again."""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpunode.editing.toml_scan import comments, statements
from gpunode.engines.base import Removal
from gpunode.engines.containerd.engine import Containerd
from gpunode.engines.containerd.remove import removed
from gpunode.model.spec import RuntimeSpec
from tests.engines.test_containerd import DROP_IN, PATH, V2, V3, rewrite

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]

NAMES = st.sampled_from(["a", "b-1", "x y", "io.containerd.x.v1", "größe", "runtimes", "#", 'q"q', "]", "="])
SCALARS = st.sampled_from(
    ['"text"', "'literal # no comment'", "42", "0xff", "1_000", "-1.5e3", "inf", "true", "1979-05-27T07:32:00Z",
     "07:32:00", "1979-05-27", '"""\n[no.header]\nkey = 1\n"""', "'''a\nb'''", "[]", "[ 1, 2, # two\n 3 ]",
     '[["x"], ["y"]]', '"\\u00e9 \\" ="']
)  # fmt: skip
Node = Any  # a scalar's text, or a dictionary of nodes
TREES = st.recursive(SCALARS, lambda inner: st.dictionaries(NAMES, inner, max_size=3), max_leaves=6)
HANDLERS = st.dictionaries(
    st.sampled_from(["runc", "kata", "crun", "my-own"]),
    st.fixed_dictionaries(
        {"runtime_type": st.sampled_from(['"io.containerd.runc.v2"', "'io.containerd.kata.v2'"])},
        optional={"options": st.fixed_dictionaries({"SystemdCgroup": st.sampled_from(["true", "false"])}), "x": TREES},
    ),
    max_size=3,
)
ENGINES = st.fixed_dictionaries(
    {}, optional={"runtimes": HANDLERS, "default_runtime_name": st.sampled_from(['"runc"', "'kata'"]), "x y": TREES}
)


@dataclass
class Style:
    """Draws how each table is written: with a header, as dotted keys or inline; and the blanks and comments around."""

    draw: st.DrawFn
    lines: list[str] = field(default_factory=list)

    def table(self, path: tuple[str, ...], table: dict[str, Node]) -> None:
        later = []
        for key, value in self.shuffled(table):
            how = self.pick("header", "header", "dotted", "inline") if isinstance(value, dict) else "key"
            if how == "header":
                later.append((key, value))
            elif how == "dotted" and value:
                self.dotted((key,), value)
            else:
                self.say(f"{self.key(key)} = {self.inline(value)}")
        for key, value in later:
            # A header may be left out where every key below has one of its own.
            if not value or any(not isinstance(v, dict) for v in value.values()) or self.pick(True, False):
                self.say(f"[{self.pick('', ' ')}{'.'.join(map(self.key, (*path, key)))}]")
                self.table((*path, key), value)
            else:
                for inner, below in self.shuffled(value):
                    self.say(f"[{'.'.join(map(self.key, (*path, key, inner)))}]")
                    self.table((*path, key, inner), below)

    def dotted(self, path: tuple[str, ...], table: dict[str, Node]) -> None:
        for key, value in self.shuffled(table):
            if isinstance(value, dict) and value:
                self.dotted((*path, key), value)
            else:
                self.say(f"{self.pick('.', ' . ').join(map(self.key, (*path, key)))} = {self.inline(value)}")

    def inline(self, value: Node) -> str:
        if isinstance(value, dict):
            return "{ " + ", ".join(f"{self.key(k)} = {self.inline(v)}" for k, v in value.items()) + " }"
        return str(value)

    def key(self, name: str) -> str:
        if name.replace("-", "").replace("_", "").isalnum() and name.isascii() and self.pick(True, False):
            return name
        return f"'{name}'" if self.pick(True, False) else json.dumps(name)

    def say(self, text: str) -> None:
        for _ in range(self.pick(0, 0, 1)):
            self.lines.append(self.pick("", "# between", "\t# indented"))
        self.lines.append(self.pick("", "", "  ", "\t") + text + self.pick("", "", "  # beside"))

    def shuffled(self, table: dict[str, Node]) -> list[tuple[str, Node]]:
        return self.draw(st.permutations(list(table.items()))) if len(table) > 1 else list(table.items())

    def pick(self, *choices: Any) -> Any:
        return self.draw(st.sampled_from(choices))


@st.composite
def documents(draw: st.DrawFn) -> tuple[str, str]:
    """(containerd's version, a configuration it might read)."""
    version, plugin, schema = draw(st.sampled_from([("1.7.24", V2, "2"), ("2.1.9", V3, "3"), ("2.1.9", V2, "2")]))
    others = draw(st.dictionaries(NAMES, TREES, max_size=2))
    plugins = draw(st.dictionaries(NAMES, st.dictionaries(NAMES, TREES, max_size=2), max_size=2))
    cri = {
        "containerd": draw(ENGINES),
        **draw(st.dictionaries(st.sampled_from(["cni", "registry"]), TREES, max_size=1)),
    }
    style = Style(draw)
    style.table((), {"version": schema, **others, "plugins": {**plugins, plugin: cri}})
    end = style.pick("\n", "\n", "\r\n")
    return version, style.pick("", "", "\ufeff") + end.join(style.lines).replace("\r\n", "\n").replace("\n", end) + end


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example])
@given(documents())
def test_any_style_is_edited_right_and_undone_again(document: tuple[str, str]) -> None:
    version, text = document
    before = tomllib.loads(text.removeprefix("\ufeff"))
    assert "".join(statement.text for statement in statements(text)) == text
    want = RuntimeSpec(drop_in="none")
    after = rewrite(text, version, want).main.after
    assert without(tomllib.loads(after)) == without(before)
    engine = tomllib.loads(after)["plugins"][V2 if before["version"] == 2 else V3]["containerd"]
    assert engine["default_runtime_name"] == "nvidia"
    assert Counter(comments(text)) <= Counter(comments(after))
    assert not rewrite(after, version, want).changed
    left = removed(after, "nvidia", default(before), before=text)
    assert filled(tomllib.loads(left)) == filled(before)


def without(config: dict[str, Any]) -> dict[str, Any]:
    """Everything that gpunode leaves alone."""
    kept = {k: v for k, v in config.items() if k != "plugins"}
    plugins = json.loads(json.dumps(config.get("plugins", {}), default=repr))
    for engine in (plugins.get(key, {}).get("containerd", {}) for key in (V2, V3)):
        engine.pop("default_runtime_name", None)
        engine.get("runtimes", {}).pop("nvidia", None)
        if engine.get("runtimes", {}).get("runc") == {"runtime_type": "io.containerd.runc.v2"}:
            del engine["runtimes"]["runc"]  # what 1.x would forget
    return filled({**kept, "plugins": plugins})


def default(config: dict[str, Any]) -> str | None:
    found = [config["plugins"].get(key, {}).get("containerd", {}).get("default_runtime_name") for key in (V2, V3)]
    return next((name for name in found if name), None)


def filled(value: dict[str, Any]) -> dict[str, Any]:
    """Without tables that hold nothing: containerd reads them as absent."""
    inner = {k: filled(v) if isinstance(v, dict) else repr(v) for k, v in value.items()}
    return {k: v for k, v in inner.items() if v != {}}


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example])
@given(documents())
def test_beside_a_drop_in_the_root_only_gains_an_import_and_loses_it_again(document: tuple[str, str]) -> None:
    _, text = document
    before = tomllib.loads(text.removeprefix("\ufeff"))
    found = {edit.path: edit.after for edit in rewrite(text, "2.1.9").edits}
    root = tomllib.loads(found[PATH])
    assert root.pop("imports") == ["/etc/containerd/conf.d/*.toml"]
    assert filled(root) == filled(before)
    assert not rewrite(found[PATH], "2.1.9", files=found).changed
    left = Containerd().without(PATH, found[PATH], Removal("nvidia", None, text, (DROP_IN,)))
    assert filled(tomllib.loads(left)) == filled(before)
    assert Containerd().without(DROP_IN, found[DROP_IN], Removal("nvidia", None, "")) == ""
