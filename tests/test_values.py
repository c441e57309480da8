"""gpunode.values against the standard library's decorator: the same class by both, asked the same things."""

from __future__ import annotations

import ast
import copy
import dataclasses
import inspect
import sys
import threading
from dataclasses import InitVar, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

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
    class Odd:
        """All that a field can be besides."""

        of_all: ClassVar[int] = 3
        a: int = field(hash=False, metadata={"unit": "s"})
        asked: InitVar[int] = 4

        def __post_init__(self, asked: int) -> None:
            object.__setattr__(self, "a", self.a + asked)

    @dataclass(frozen=True)
    class Kinds:
        shared: ClassVar[int] = 3
        a: int

    @dataclass(frozen=True)
    class Fields:
        a: int
        n: int = field(default=1, init=False)
        k: int = field(kw_only=True)
        l: list[int] = field(default_factory=list, init=False)  # noqa: E741
        m: int | None = None
        o: dict[str, int] = field(default_factory=dict, kw_only=True)

    @dataclass(frozen=True)
    class Compares:
        a: int

        def __eq__(self, other: object) -> bool:
            return True

    @dataclass(frozen=True)
    class Shows:
        a: int

        def __repr__(self) -> str:
            return "shown"

    @dataclass(frozen=True)
    class Hashes:
        a: int

        def __hash__(self) -> int:
            return 5

    @dataclass(frozen=True)
    class Empty:
        pass

    @dataclass(frozen=True)
    class Again(Base):
        b: tuple[str, ...]
        d: str = "again"

    class Plain(Derived):
        pass

    return {
        cls.__name__: cls
        for cls in (Odd, Kinds, Fields, Compares, Shows, Hashes, Base, Derived, Own, Words, Empty, Again, Plain)
    }


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
    "odd fields": lambda c: (repr(c["Odd"](1)), c["Odd"].of_all, c["Odd"](1, 5) == c["Odd"](2, 4), hash(c["Odd"](1))),
    "a variable of the class": lambda c: (repr(c["Kinds"](1)), c["Kinds"].shared, c["Kinds"](1) == c["Kinds"](1)),
    "fields by name": lambda c: (repr(c["Fields"](1, 2, k=3)), repr(c["Fields"](a=1, k=3, o={"x": 1})), c["Fields"].n),
    "none is shared": lambda c: c["Fields"](1, k=3).l is c["Fields"](1, k=3).l,
    "a field that has no place": lambda c: c["Fields"](1, 2, 3),
    "a field that is not given": lambda c: c["Fields"](1, n=2, k=3),
    "parameters of it": lambda c: [
        (p.name, p.kind, p.annotation)
        for name in ("Base", "Words", "Fields", "Odd", "Empty")
        for p in inspect.signature(c[name]).parameters.values()
    ],
    "an __eq__ of its own": lambda c: (c["Compares"](1) == 5, hash(c["Compares"](1)), repr(c["Compares"](1))),
    "a __repr__ of its own": lambda c: (repr(c["Shows"](1)), c["Shows"](1) == c["Shows"](1), hash(c["Shows"](1))),
    "a __hash__ of its own": lambda c: (hash(c["Hashes"](1)), c["Hashes"](1) == c["Hashes"](1), repr(c["Hashes"](1))),
    "of whom a method is": lambda c: [getattr(c["Base"], name).__name__ for name in ("__init__", "__eq__", "__hash__")],
    "copied": lambda c: (copy.copy(c["Fields"](1, k=3)) == c["Fields"](1, k=3), repr(copy.deepcopy(c["Base"](1)))),
    "of a set": lambda c: len({c["Kinds"](1), c["Kinds"](1), c["Kinds"](2)}),
    "no equal of another": lambda c: (c["Kinds"](1) == 1, c["Kinds"](1) != c["Shows"](1)),
    "parameters": lambda c: [str(c[name].__dataclass_params__) for name in ("Base", "Derived", "Kinds", "Own")],
    "a field said again": lambda c: (repr(c["Again"](1)), [f.name for f in dataclasses.fields(c["Again"])]),
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
    assert not callable(base.__dict__["__eq__"]), "nobody has compared one"
    assert base(1) == base(1)
    assert callable(base.__dict__["__eq__"])


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
