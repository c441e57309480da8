"""A function made a verb: its parameters that are option groups are spread into their flags, which typer parses."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

from gpunode.cli.options.groups import Option

if TYPE_CHECKING:
    import typer


def verb(app: typer.Typer, name: str, *, help: str, examples: tuple[str, ...]) -> Callable[[Callable[..., int]], None]:
    """Register a function as a verb."""
    from gpunode.cli.typer_classes import GroupedCommand

    def register(function: Callable[..., int]) -> None:
        epilog = "\b\nExamples:\n" + "\n".join(f"  {example}" for example in examples)
        app.command(name, cls=GroupedCommand, help=help, epilog=epilog)(spread(function))

    return register


def with_defaults(name: str) -> int:
    """Run a verb for which no option was typed: typer takes 30 ms to give each its default."""
    function: Callable[..., int] = getattr(import_module(f"gpunode.cli.verbs.{name}"), name)
    hints = get_type_hints(function)
    wanted = [p.name for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    return function(**{name: hints[name]() for name in wanted})


def spread(function: Callable[..., int]) -> Callable[..., int]:
    """`function` with each option group in its signature replaced by the group's fields."""
    hints = {name: _for_typer(hint) for name, hint in get_type_hints(function, include_extras=True).items()}
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    own = [p.replace(annotation=hints[p.name]) for p in inspect.signature(function).parameters.values()]
    parameters = [
        p.replace(kind=p.KEYWORD_ONLY) for p in own if p.name not in groups and p.kind is not p.POSITIONAL_ONLY
    ]
    for kind in groups.values():
        parameters += _flags(kind)

    @wraps(function)
    def spread_out(**values: Any) -> int:
        built = {name: kind(**{f.name: values.pop(f.name) for f in fields(kind)}) for name, kind in groups.items()}
        return function(**values, **built)

    spread_out.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what typer reads
    spread_out.__annotations__ = {p.name: p.annotation for p in parameters}
    return spread_out


def _flags(kind: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    return [
        inspect.Parameter(
            f.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if f.default is MISSING else f.default,
            annotation=_for_typer(hints[f.name]),
        )
        for f in fields(kind)
    ]


def _for_typer(hint: Any) -> Any:
    """The hint with typer's words for a flag of ours."""
    # Python 3.10 puts an Optional around what has None as its default, and typer looks no deeper (bpo-46195).
    hint = next((inner for inner in get_args(hint) if hasattr(inner, "__metadata__")), hint)
    ours = next((note for note in getattr(hint, "__metadata__", ()) if isinstance(note, Option)), None)
    return hint if ours is None else Annotated[hint.__origin__, _typed(ours)]


def _typed(flag: Option) -> Any:
    import typer

    return typer.Option(
        *flag.names,
        help=flag.help,
        metavar=flag.metavar,
        show_default=False,
        count=flag.count,
        rich_help_panel=flag.heading,
    )
