"""The values of a kubeconfig, which may be anybody's: each by its place, in the form that it has to have.

A fault names the place and never the value, which may be a secret.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Sequence
from pathlib import Path

from gpunode.errors import UsageError
from gpunode.foreign import read_file
from gpunode.kubernetes.yaml_nodes import Node
from gpunode.regex import regex
from gpunode.site_checks.trust import why_mistrusted
from gpunode.values import dataclass

FLAG = "--kubeconfig"
MOST_BYTES = 1 << 20
MOST_WORDS = 64  # of a program's arguments and variables
LONGEST = 2048  # of an address
VISIBLE = regex(r"[!-~]+", re.ASCII)
EMPTY = Node(0, "mapping", "map")
_FORMS = {"list": "a list", "mapping": "a mapping", "scalar": "text"}


def trusted_text(path: Path) -> str:
    """Raises UsageError for what cannot be read, and as root for what somebody else could have written."""
    try:
        if os.geteuid() == 0 and (why := why_mistrusted(path)):
            raise UsageError(
                f"{FLAG} {path} is not read as root: {why}",
                evidence="it decides which cluster is changed, and may name a program that would run as root",
                remedy="run this as the user it belongs to, or name a file that only root can write",
            )
        data = read_file(path, MOST_BYTES)
    except (OSError, RuntimeError) as error:  # pathlib's word for links in a circle
        raise _unread(path, getattr(error, "strerror", None) or "it cannot be opened") from error
    if len(data) > MOST_BYTES:
        raise _unread(path, f"it is over {MOST_BYTES} bytes")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise _unread(path, "it is not UTF-8") from None


def _unread(path: Path, why: str) -> UsageError:
    return UsageError(f"{FLAG} {path} cannot be read", evidence=why, remedy="name a kubeconfig of this machine")


@dataclass(frozen=True)
class Fields:
    """Of the kubeconfig at `path`. Every method raises UsageError for what is not as it should be."""

    path: Path

    def fault(self, what: str, *, evidence: str = "", remedy: str = "correct it, or name another") -> UsageError:
        return UsageError(f"{FLAG} {self.path}: {what}", evidence=evidence, remedy=remedy)

    def named(self, root: Node, key: str, inner: str, name: str) -> Node | None:
        """The `inner` of the entry called so. Raises UsageError for two of them."""
        entries = [one for one in self.entries(root, key) if self.text(one, "name") == name]
        if len(entries) > 1:
            raise self.fault(f"{name[:80]!r} stands twice in {key}")
        return self.mapping(self.of(entries[0], inner) or EMPTY, f"{key}: {inner}") if entries else None

    def names(self, root: Node, key: str) -> list[str]:
        return [self.text(one, "name")[:80] for one in self.entries(root, key)]

    def entries(self, root: Node, key: str) -> list[Node]:
        return [self.mapping(one, key) for one in self.sequence(root, key)]

    def items(self, node: Node, key: str) -> Sequence[Node]:
        found = self.sequence(node, key)
        if len(found) > MOST_WORDS:
            raise self.fault(f"its {key} has over {MOST_WORDS} entries")
        return found

    def sequence(self, node: Node, key: str) -> Sequence[Node]:
        found = self.of(node, key)
        if found is not None and found.shape != "list":
            raise self._form(found, key, "list")
        return found.items if found else ()

    def of(self, node: Node, key: str) -> Node | None:
        """Its value; None where it is not there, or null. Raises UsageError for a key that stands twice."""
        found = [value for name, value in node.pairs if name == key]
        if len(found) > 1:
            raise self.fault(f"{key} stands twice in one place", evidence=f"line {found[1].line}")
        return found[0] if found and found[0].tag != "null" else None

    def mapping(self, node: Node, what: str) -> Node:
        if node.shape != "mapping":
            raise self._form(node, what, "mapping")
        return node

    def scalar(self, node: Node, what: str) -> str:
        if node.shape != "scalar" or "\0" in node.text:
            raise self._form(node, what, "scalar")
        return node.text

    def text(self, node: Node, key: str) -> str:
        found = self.of(node, key)
        return self.scalar(found, key) if found else ""

    def visible(self, node: Node, key: str) -> str | None:
        text = self.text(node, key)
        if text and (len(text) > LONGEST or not VISIBLE.fullmatch(text)):
            raise self.fault(f"its {key} has blanks or other characters that do not belong there, or too many")
        return text or None

    def switch(self, node: Node, key: str) -> bool:
        text = self.text(node, key)
        if text not in ("", "true", "false"):
            raise self.fault(f"its {key} is neither true nor false")
        return text == "true"

    def _form(self, node: Node, what: str, wanted: str) -> UsageError:
        return self.fault(f"{what} is not {_FORMS[wanted]}", evidence=f"line {node.line}")

    def pem(self, node: Node, key: str) -> str | None:
        """`KEY-data`, base64 of it, takes precedence over the file `KEY`. It may be wrapped, as base64(1) does; a
        bundle's comments may be in any letters.
        """
        if packed := self.text(node, f"{key}-data"):
            try:
                return base64.b64decode(re.sub(r"[\r\n]", "", packed), validate=True).decode("utf-8", "replace")
            except (binascii.Error, ValueError):
                raise self.fault(f"its {key}-data is no base64 of PEM") from None
        path = self.text(node, key)
        return self.file(path, key) if path else None

    def file(self, name: str, key: str) -> str:
        try:
            return trusted_text(self.path.absolute().parent / name)
        except UsageError as error:
            evidence = f"{error.problem.removeprefix(f'{FLAG} ')}: {error.evidence}"
            raise self.fault(f"its {key} cannot be used", evidence=evidence) from error
