"""What `scripts/release --test` does with a release: makes it again, has it judged, installs and removes it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from gpunode_release import tools
from gpunode_release.controller import NAME as CONTROLLER
from gpunode_release.faults import ReleaseError
from gpunode_release.source import Source, clone, export
from gpunode_release.zipapp import FILE as ZIPAPP

Say = Callable[[str], None]

NEEDS = ("lintian", "rpmlint", "unshare")
_HERE = Path(__file__).resolve().parents[2]  # the files of the commit
_ROOTS = Path(os.environ.get("GPUNODE_LAB", "/var/cache/gpunode-lab")) / "base"
# What each package is installed in: layers of the lab's images, the topmost first.
_INSTALLS = (
    ("deb", ("bookworm",)),
    ("deb", ("trixie",)),
    ("deb", ("sid",)),
    ("rpm", ("sid-managers", "sid-docker", "sid")),
)
# Another umask, time zone, language and order of sets, in another directory; the clock goes on by itself.
_ELSEWHERE = {
    "TZ": "Pacific/Kiritimati",
    "LC_ALL": "C",
    "LANG": "tr_TR.UTF-8",
    "HOME": "/nonexistent",
    "PYTHONHASHSEED": "1",
}
_AGAIN = """
import os, pathlib, sys
os.umask(0o077)
from gpunode_release.build import Build
from gpunode_release.source import source_of
root, cache, work, into = map(pathlib.Path, sys.argv[2:])
Build(source_of(root, sys.argv[1]), cache, work, into, lambda text: None).release()
"""


def try_out(source: Source, cache: Path, made: Path, work: Path, say: Say) -> None:
    """Raises ReleaseError with the first thing that is not right."""
    if lacking := tools.missing(*NEEDS):
        raise ReleaseError(
            f"--test needs what is not installed: {', '.join(lacking)} (apt-get install lintian rpmlint)"
        )
    if os.geteuid() != 0:
        raise ReleaseError("--test needs root: it installs the packages in roots of their own")
    _same_again(source, cache, made, work, say)
    _valid_sbom(next(made.glob("*.cdx.json")), say)
    _no_errors("lintian", "--allow-root", "--tag-display-limit", "0", str(_one(made, "*.deb")), work=work, say=say)
    rules = _HERE / "packaging/rpm/gpunode.rpmlintrc"
    _no_errors("rpmlint", "--rpmlintrc", str(rules), str(_one(made, "*.rpm")), work=work, say=say)
    for file in (ZIPAPP, CONTROLLER):
        said = tools.run(source, sys.executable, "-I", str(made / file), "self", "check", cwd=work)
        say(f"{file}: {said.strip()}")
    for kind, layers in _INSTALLS:
        _installed(kind, made, layers, say)


def _same_again(source: Source, cache: Path, made: Path, work: Path, say: Say) -> None:
    """Of a clone that has no work tree, so that nothing can come from one."""
    again = work / "another-name"
    (again / "work").mkdir(parents=True)
    (again / "dist").mkdir()
    root = clone(source, again / "a clone")
    at = export(source, again / "other tools")
    places = (root, cache, again / "work", again / "dist")
    told = subprocess.run(
        (sys.executable, "-c", _AGAIN, source.commit, *map(str, places)),
        cwd="/",
        env={"PATH": os.environ["PATH"], "PYTHONPATH": tools.python_of(at)["PYTHONPATH"], **_ELSEWHERE},
        capture_output=True,
        text=True,
        check=False,
    )
    if told.returncode:
        raise ReleaseError(f"the second build failed: {told.stderr.strip().splitlines()[-1:]}")
    names = sorted({path.name for place in (made, again / "dist") for path in place.iterdir()})
    differing = [name for name in names if not _same(made / name, again / "dist" / name)]
    if differing:
        raise ReleaseError(f"two builds differ: {'; '.join(_how(made, again / 'dist', name) for name in differing)}")
    say(f"built twice: {len(names)} files, the same bytes")


def _same(one: Path, other: Path) -> bool:
    return one.is_file() and other.is_file() and one.read_bytes() == other.read_bytes()


def _how(one: Path, other: Path, name: str) -> str:
    """In what, by diffoscope's first lines where that is installed."""
    if not shutil.which("diffoscope"):
        return name
    told = subprocess.run(("diffoscope", one / name, other / name), capture_output=True, text=True, check=False)
    return "\n".join((name, *told.stdout.splitlines()[:40]))


def _valid_sbom(sbom: Path, say: Say) -> None:
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    fault = JsonStrictValidator(SchemaVersion.V1_6).validate_str(sbom.read_text(encoding="utf-8"))
    if fault is not None:
        raise ReleaseError(f"{sbom.name} is no CycloneDX 1.6: {str(fault)[:500]}")
    say(f"{sbom.name}: valid CycloneDX 1.6")


def _no_errors(*argv: str, work: Path, say: Say) -> None:
    """lintian's and rpmlint's findings are printed; an error ends the trial, a warning does not."""
    told = subprocess.run(argv, cwd=work, capture_output=True, text=True, check=False)
    errors = list(_findings(told.stdout, "E"))
    warnings = list(_findings(told.stdout, "W"))
    if errors or (told.returncode and not warnings):
        raise ReleaseError(f"{argv[0]}: {'; '.join(errors) or told.stderr.strip()}")
    say(f"{argv[0]}: no error, {len(warnings)} warnings")
    for warning in warnings:
        say(f"    {warning}")


def _findings(text: str, letter: str) -> Iterator[str]:
    """lintian writes "E: gpunode: ...", rpmlint "gpunode.noarch: E: ..."."""
    return (line for line in text.splitlines() if re.match(rf"(?:\S+: )?{letter}: ", line))


def _installed(kind: str, made: Path, layers: tuple[str, ...], say: Say) -> None:
    lower = [_ROOTS / layer for layer in layers]
    if lacking := [str(layer) for layer in lower if not layer.is_dir()]:
        raise ReleaseError(f"there is no {lacking[0]}: tests/lab/images/build.sh makes it")
    script = _HERE / "packaging/trial.sh"
    told = subprocess.run(
        (
            *("unshare", "--mount", "--pid", "--net", "--fork", "--kill-child", "sh", str(script), kind),
            *(str(_one(made, f"*.{kind}")), str(_HERE / "examples/hosts"), *map(str, lower)),
        ),
        capture_output=True,
        text=True,
        check=False,
    )
    if told.returncode:
        last = " / ".join((told.stdout + told.stderr).strip().splitlines()[-12:])
        raise ReleaseError(f"{kind} in {layers[0]}: {last}")
    for line in told.stdout.strip().splitlines():
        say(f"{layers[0]}: {line}")


def _one(directory: Path, pattern: str) -> Path:
    (found,) = directory.glob(pattern)
    return found
