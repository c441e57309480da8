"""A password that cannot be printed by accident."""

from __future__ import annotations


class Secret:
    """Shows as `Secret(…)` in every repr, log and format string; only `reveal()` gives the text."""

    __slots__ = ("__text",)

    def __init__(self, text: str) -> None:
        self.__text = text

    def reveal(self) -> str:
        return self.__text

    def __repr__(self) -> str:
        return "Secret(…)"

    __str__ = __repr__

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("a Secret is not written anywhere")
