"""The arguments of a line of ssh_config(5), taken apart and put together as argv_split of OpenSSH's misc.c does."""

from __future__ import annotations


def words(text: str) -> list[str]:
    """The arguments of a line, as argv_split of OpenSSH: quotes of either kind, a backslash before one or a space.

    Raises ValueError for a quote that does not end.
    """
    found: list[str] = []
    rest = text.lstrip()
    while rest and not rest.startswith("#"):
        word, rest = _first_word(rest)
        found.append(word)
        rest = rest.lstrip()
    return found


def escaped(word: str) -> str:
    """One argument of several, for `words`."""
    return "".join("\\" + letter if letter in " '\"\\" else letter for letter in word)


def _first_word(text: str) -> tuple[str, str]:
    word, quote, at = "", "", 0
    while at < len(text):
        letter, following = text[at], text[at + 1 : at + 2]
        if letter == "\\" and following and (following in "'\"\\" or (following == " " and not quote)):
            word, at = word + following, at + 1
        elif letter in (" ", "\t") and not quote:
            break
        elif letter == quote:
            quote = ""
        elif letter in "'\"" and not quote:
            quote = letter
        else:
            word += letter
        at += 1
    if quote:
        raise ValueError(f"a {quote} that does not end")
    return word, text[at:]
