"""No code outside gpunode/packages knows a package manager by name: what differs is asked of its backend.

Comments and docstrings may quote whom they like; code may not, but for what is listed here with its reason.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from gpunode.packages.registry import BACKENDS

PRODUCT = Path(__file__).parents[2] / "gpunode"
TOOLS = ("apt-get", "apt-mark", "dpkg", "dpkg-query", "rpm")
# rpm-ostree is another program, which installs where an image replaces /usr.
NAME = re.compile(rf"(?<![\w])({'|'.join((*BACKENDS, *TOOLS))})(?![\w]|-ostree)")
ROOMS = ("packages/", "catalog/", "shell/packages/", "shell/probe/")
EXCEPTIONS = {
    "bundles/apt_root.py": "apt itself resolves a bundle, in a root of its own: these are its words about it",
    "bundles/contents.py": "the format of a vendor's repository, deb or rpm, which differ in their addresses",
    "bundles/resolve.py": "the same formats: which of the two roots it is",
    "bundles/rpm_root.py": "dnf and zypper do so for theirs",
    "planner/install/bundle.py": "the same formats, of a bundle's repositories",
    "shell/bundle/apt_download.sh": "what runs apt for a bundle",
    "shell/bundle/dnf_download.sh": "what runs dnf for one",
    "shell/bundle/rpm_index.sh": "which kind of repository was not found",
    "shell/bundle/rpm_signatures.sh": "what verifies packages with rpm itself",
    "shell/bundle/zypper_download.sh": "what runs zypper for a bundle",
    "shell/export/bring.sh": "an example of what to type where a host's Python is too old to ask anything of the host",
    "release/zipapp.py": "the same example",
    "transport/ssh_library.py": "the form of gpunode's own package that has paramiko",
    "apply/reasons.py": "how an error's line begins in the output of any command, and dpkg's words for why",
    "planner/repos/claims.py": "the kind of a repository's entry, a format of packages/entries.py: deb or rpm",
    "planner/repos/cleanup.py": "the same kinds, paths on NVIDIA's servers, and apt's own message about its own format",
    "planner/site.py": "examples in a remedy that is given before any host is known",
    "shell/repos/fetch_key.sh": "apt's download helper, one of four programs that can fetch a key",
    "specfile/values.py": "the same examples",
}


def code(path: Path) -> Iterator[str]:
    """Every string and import of a Python file, without docstrings; of sh every line, without comments."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".sh":
        yield from (re.sub(r"(^|\s)#.*", "", line) for line in text.splitlines())
        return
    tree = ast.parse(text)
    prose = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.value
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield " ".join((node.module, *(alias.name for alias in node.names)))


def named() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for path in sorted([*PRODUCT.rglob("*.py"), *PRODUCT.rglob("*.sh")]):
        here = path.relative_to(PRODUCT).as_posix()
        names = {match[1] for piece in code(path) for match in NAME.finditer(piece)}
        if names and not here.startswith(ROOMS):
            found[here] = names
    return found


def shared_scripts() -> Iterator[Path]:
    """Those of shell/packages that no manager's name begins: what differs is handed to them."""
    for path in sorted((PRODUCT / "shell" / "packages").glob("*.sh")):
        if not NAME.fullmatch(path.stem.split("_")[0]):
            yield path


def test_a_script_that_managers_share_names_none() -> None:
    found = {path.name: {match[1] for line in code(path) for match in NAME.finditer(line)} for path in shared_scripts()}
    # Only rpm's managers have packages that are led by a module's version.
    assert {name: names for name, names in found.items() if names} == {"at_lead_version.sh": {"rpm"}}


def test_no_code_outside_their_room_names_a_package_manager_and_each_exception_is_still_one() -> None:
    found = named()
    assert {path: names for path, names in found.items() if path not in EXCEPTIONS} == {}
    assert sorted(EXCEPTIONS.keys() - found.keys()) == []
