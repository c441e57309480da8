"""gpunode.values against the standard library's decorator: the same class by both, asked the same things."""

from __future__ import annotations

import ast
import dataclasses
import sys
import threading
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gpunode import values

ROOT = Path(__file__).parents[1]


def made(dataclass: Any) -> dict[str, Any]:
    """A few classes by one of the two decorators."""

    @dataclass(frozen=True)
    class Base:
        a: int
        b: tuple[str, ...] = ()
        c: list[int] = field(default_factory=list)
        d: str = field(default="d", compare=False, repr=False)

    @dataclass(frozen=True)
    class Derived(Base):
        """It has a docstring."""

        e: int = 5

        def __post_init__(self) -> None:
            object.__setattr__(self, "e", self.e + 1)

    @dataclass(frozen=True)
    class Own:
        a: int

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 7

        def __repr__(self) -> str:
            return "own"

    @dataclass(frozen=True, kw_only=True)
    class Words:
        a: int
        b: int = 2

    @dataclass(frozen=True)
    class Empty:
        pass

    class Plain(Derived):
        pass

    return {cls.__name__: cls for cls in (Base, Derived, Own, Words, Empty, Plain)}


ASKED = {
    "fields": lambda c: [(f.name, f.type, f.init, f.compare) for f in dataclasses.fields(c["Plain"])],
    "instances": lambda c: [repr(c["Base"](1)), repr(c["Plain"](1, ("x",))), repr(c["Own"](1)), repr(c["Empty"]())],
    "defaults": lambda c: (c["Base"](1).c, c["Base"].b, c["Base"].d, hasattr(c["Base"], "c"), c["Words"](a=1).b),
    "equal": lambda c: (
        c["Base"](1, d="x") == c["Base"](1, d="y"),
        c["Base"](1) == c["Derived"](1),
        c["Derived"](1) == c["Plain"](1),
        c["Own"](1) == c["Own"](2),
    ),
    "hash": lambda c: (hash(c["Derived"](1, c=())), hash(c["Own"](1)), hash(c["Empty"]())),
    "replace": lambda c: repr(dataclasses.replace(c["Plain"](1), a=2)),
    "as a dictionary": lambda c: dataclasses.asdict(c["Derived"](1)),
    "is one": lambda c: (dataclasses.is_dataclass(c["Base"]), c["Base"].__dataclass_params__.frozen),
    "matched by place": lambda c: (c["Derived"].__match_args__, c["Words"].__match_args__),
    "positional words": lambda c: c["Words"](1),
    "a field too few": lambda c: c["Base"](),
    "a field too many": lambda c: c["Empty"](1),
    "assigned": lambda c: setattr(c["Base"](1), "a", 2),
    "deleted": lambda c: delattr(c["Plain"](1), "a"),
    "docstring": lambda c: c["Derived"].__doc__,
}


def answer(ask: Any, dataclass: Any) -> object:
    try:
        return ask(made(dataclass))
    except (TypeError, AttributeError) as error:  # FrozenInstanceError is an AttributeError
        return type(error), str(error).rpartition(".")[2]


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
def test_it_answers_as_the_standard_one_does(ask: Any) -> None:
    assert answer(ask, values.dataclass) == answer(ask, dataclasses.dataclass)


def test_a_class_is_made_by_whoever_uses_it_first_and_not_before() -> None:
    base, derived = (made(values.dataclass)[name] for name in ("Base", "Derived"))
    assert not callable(base.__dict__["__init__"])
    derived(1)
    assert callable(derived.__dict__["__init__"])


def test_threads_that_use_it_at_once_meet_a_whole_class(request: pytest.FixtureRequest) -> None:
    request.addfinalizer(partial(sys.setswitchinterval, sys.getswitchinterval()))
    sys.setswitchinterval(1e-6)
    for _ in range(50):
        plain = made(values.dataclass)["Plain"]
        gate, found = threading.Barrier(8), list[object]()

        def use(plain: Any = plain, gate: threading.Barrier = gate, found: list[object] = found) -> None:
            gate.wait()
            one = plain(1, b=("x",))
            found.append((one == plain(1, ("x",)), hash(dataclasses.replace(one, c=())), repr(one)))

        threads = [threading.Thread(target=use) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 8
        assert len(set(found)) == 1


def test_an_init_of_its_own_is_refused() -> None:
    with pytest.raises(TypeError, match="__init__ of its own"):

        @values.dataclass(frozen=True)
        class Wrong:
            def __init__(self) -> None:
                pass


def test_gpunode_makes_its_classes_this_way() -> None:
    wrong = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "gpunode").rglob("*.py")
        if path.name != "values.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
        and node.module == "dataclasses"
        and any(alias.name == "dataclass" for alias in node.names)
    ]
    assert wrong == []
