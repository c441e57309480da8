"""Who may import whom (CONTRIBUTING.md draws the picture). Read from the syntax tree, so lazy imports count too."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

PRODUCT = Path(__file__).parent.parent / "gpunode"

ALLOWED = {
    "advice": set[str](),
    "remedy": set[str](),
    "errors": set[str](),
    "foreign": set[str](),
    "masking": set[str](),
    "model": {"errors"},
    "resources": set[str](),
    "specfile": {"model", "errors", "resources", "engines.registry"},
    "catalog": {"model", "errors", "resources"},
    "packages": {"model", "errors", "catalog", "resources"},
    "editing": {"model", "errors"},
    "engines": {"model", "errors", "catalog", "editing", "facts.readers", "resources"},
    "facts": {"model", "errors", "packages", "catalog.runtimes", "catalog.vgpu", "resources"},
    "kubernetes": {"model", "errors", "catalog", "resources"},
    # A script of a plan says what apply says to a host, and asks apply for it.
    "export": {"errors", "resources", "model", "apply", "packages", "transport.base"}
    | {"kubernetes.documents", "kubernetes.readiness"},
    "planner": {"model", "errors", "catalog", "packages", "editing", "engines", "resources"},
    # What setup would edit is read by the engines' own readers: check and setup cannot disagree on a spelling.
    "checks": {"model", "errors", "catalog", "packages", "editing", "engines"},
    "transport": {"errors"},
    "apply": {"model", "errors", "packages", "transport.base", "resources"},
    "converge": {"facts", "planner", "apply", "model", "errors", "catalog", "transport.base"},
    "site_checks": {"model", "errors"},
    # A kubeconfig may name a program: who may write the two is judged, and it is run, as a site's own program is.
    "cluster": {"model", "errors", "kubernetes", "transport.secret", "site_checks.program", "site_checks.trust"},
    # The resolver that fetches a bundle's packages runs here, as a script does on a host.
    "bundles": {"model", "errors", "catalog", "packages", "resources", "transport.base"},
    "offline": {"model", "errors", "catalog", "editing", "engines", "render.clean"},
    "fleet": {"converge", "facts", "planner", "apply", "offline", "transport", "specfile", "model", "errors", "catalog"}
    | {"resources"}  # whether gpunode runs from a zipapp, and how it is started again then
    | {"render.clean", "render.wording"}
    | {"site_checks.program"},  # kubectl and scontrol are started as a site's own programs are: bounded, with no shell
    "release": {"errors", "catalog", "resources"},
    "render": {"model", "errors", "catalog", "resources"},
}
# The door for what others wrote, what hides their secrets, and how a person is told what to type and to do.
EVERYBODY = {"foreign", "masking", "advice", "remedy", "values", "regex"}
# cli may import everything; nobody imports cli.

ONLY_IN = {
    "paramiko": ("transport/ssh_library.py",),
    "typer": ("cli/",),
    "rich": ("render/", "cli/"),
    "jinja2": ("resources.py",),
    "subprocess": ("transport/", "site_checks/program.py"),  # what starts a program
    "yaml": (
        *("foreign.py", "specfile/", "catalog/", "site_checks/written.py", "kubernetes/documents.py"),
        "fleet/inventory/yaml_nodes.py",  # each value has its line, and a key that stands twice is a fault
        "fleet/runs/as_inventory.py",
    ),
    "kubernetes": ("cluster/library.py",),
    "urllib3": ("cluster/",),
    "cryptography": ("cluster/identity.py", "transport/certificates.py"),
    "tomllib": ("foreign.py",),
    "tomli": ("foreign.py",),
}
RUNS_TRANSPORTS = ("facts/collect.py", "facts/active.py", "apply/", "converge.py", "bundles/")


PATHS = tuple(path.relative_to(PRODUCT).as_posix() for path in sorted(PRODUCT.rglob("*.py")))


@cache  # every test looks at all or at one of them, and to parse all costs seconds
def parsed(path: str) -> ast.Module:
    return ast.parse((PRODUCT / path).read_text(encoding="utf-8"))


def sources() -> Iterator[tuple[str, ast.Module]]:
    return ((path, parsed(path)) for path in PATHS)


def imported(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"line {node.lineno}: relative import"
            yield node.module, node.lineno
            if node.module == "gpunode":
                yield from ((f"gpunode.{alias.name}", node.lineno) for alias in node.names)


def room(path: str) -> str:
    return path.split("/")[0].removesuffix(".py")


@pytest.mark.parametrize("path", PATHS)
def test_every_file_imports_only_from_the_rooms_it_may(path: str) -> None:
    here = room(path)
    wrong = []
    for name, line in imported(parsed(path)):
        if not name.startswith("gpunode.") or here in ("cli", "__main__", "__init__"):
            continue
        other = name.removeprefix("gpunode.")
        allowed = {here, *EVERYBODY, *ALLOWED[here]}
        if name.startswith("gpunode.cli") or not any(other == a or other.startswith(a + ".") for a in allowed):
            if other == "transport.base" and path in ("facts/collect.py", "facts/active.py"):
                continue
            if other.startswith("__"):
                continue
            wrong.append(f"gpunode/{path}:{line} imports {name}")
    assert not wrong


@pytest.mark.parametrize("path", PATHS)
def test_each_library_stays_where_it_belongs(path: str) -> None:
    wrong = []
    for name, line in imported(parsed(path)):
        places = ONLY_IN.get(name.split(".")[0])
        if places and not any(path.startswith(place) for place in places):
            wrong.append(f"gpunode/{path}:{line} imports {name}, which belongs in {', '.join(places)}")
    assert not wrong


PARSERS = ("json.load", "json.loads", "yaml.load", "yaml.safe_load", "yaml.compose", "tomllib.load", "tomllib.loads")
OUR_OWN = {"catalog/documents.py": ("yaml.load", "json.loads")}  # the catalog's tables, which are part of gpunode


def test_what_others_wrote_is_parsed_at_one_door() -> None:
    wrong = [
        f"gpunode/{path}:{node.lineno} calls {ast.unparse(node.func)}, which foreign.py wraps"
        for path, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in PARSERS
        if path != "foreign.py" and ast.unparse(node.func) not in OUR_OWN.get(path, ())
    ]
    assert not wrong


def test_only_facts_collect_and_apply_run_something_on_a_host() -> None:
    wrong = [
        f"gpunode/{path}:{node.lineno}"
        for path, tree in sources()
        if not path.startswith((*RUNS_TRANSPORTS, "transport/"))
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "run"
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id in ("transport", "subprocess")
    ]
    assert not wrong


MOST_NAMES = 14  # at a room's top level: what a reader takes in at one look
ROOMS_OF_ROOMS = ("planner", "engines", "apply", "cli")


@pytest.mark.parametrize("name", ROOMS_OF_ROOMS)
def test_a_room_is_taken_in_at_one_look(name: str) -> None:
    names = [path.name for path in (PRODUCT / name).iterdir() if path.name != "__pycache__"]
    assert len(names) <= MOST_NAMES, sorted(names)


@pytest.mark.parametrize("name", ROOMS_OF_ROOMS)
def test_no_room_inside_a_room_imports_in_a_circle(name: str) -> None:
    arrows = inner_arrows(name)
    while leaves := {here for here in arrows if not arrows[here] & set(arrows)}:
        arrows = {here: there for here, there in arrows.items() if here not in leaves}
    assert not arrows, f"gpunode/{name}: a circle among {', '.join(sorted(arrows))}"


def inner_arrows(name: str) -> dict[str, set[str]]:
    """What each file or directory right inside a room imports of the others there."""
    arrows: dict[str, set[str]] = {}
    for path, tree in sources():
        if not path.startswith(f"{name}/") or path == f"{name}/__init__.py":
            continue
        here = path.split("/")[1].removesuffix(".py")
        prefix = f"gpunode.{name}."
        there = {other.removeprefix(prefix).split(".")[0] for other, _ in imported(tree) if other.startswith(prefix)}
        arrows.setdefault(here, set()).update(there - {here})
    return arrows


def floors() -> list[list[str]]:
    """The drawing of docs/explanation/architecture.md, from the top; a room's name stands before the first wide gap."""
    page = (PRODUCT.parent / "docs/explanation/architecture.md").read_text(encoding="utf-8")
    rooms = {room(path) for path in PATHS}
    lines = page.split("```")[1].strip().splitlines()
    return [[word for word in line[:53].split() if word in rooms] for line in lines]


def test_the_drawing_of_the_house_is_the_house() -> None:
    drawn = [name for floor in floors() for name in floor]
    assert sorted(drawn) == sorted({room(path) for path in PATHS} - {"__init__", "__main__"})
    depth = {name: number for number, floor in enumerate(floors()) for name in floor}
    up = [
        f"gpunode/{path} imports {name}"
        for path, tree in sources()
        for name, _ in imported(tree)
        if (here := room(path)) in depth and name.startswith("gpunode.")
        if (there := name.split(".")[1]) in depth and there != here and depth[there] <= depth[here]
    ]
    assert not up


@pytest.mark.parametrize("path", [path for path in PATHS if path != "__main__.py"])
def test_each_module_can_be_imported(path: str) -> None:
    """What stands under TYPE_CHECKING alone and is needed at import is no error to mypy."""
    importlib.import_module(".".join(("gpunode", *Path(path).with_suffix("").parts)).removesuffix(".__init__"))
