"""`gpunode self check` names every file that is not as it was released, whoever made it so, and however."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from gpunode.foreign import NotRead
from gpunode.release.installed import content_of, differences
from gpunode.release.manifest import NAME, Release, read_release, release_text

COMMIT = "0123456789abcdef0123456789abcdef01234567"
FILES = {"gpunode/a.py": "a = 1\n", "gpunode/cli/b.py": "b = 2\n", "click/c.py": "c = 3\n"}
Place = tuple[Release, Path]


def installed(directory: Path, *, whole: bool = True) -> Place:
    for name, text in FILES.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
    files = {name: content_of(directory / name) for name in FILES if whole or name.startswith("gpunode/")}
    release = Release("1.2.3", COMMIT, 1764000000, "deb", whole, files)
    (directory / "gpunode" / NAME).write_text(release_text(release))
    return release, directory


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return installed(tmp_path)


def test_what_was_written_is_read_again(place: Place) -> None:
    release, _ = place
    assert read_release(release_text(release)) == release


def test_an_untouched_release_has_no_difference(place: Place) -> None:
    (place[1] / "gpunode/__pycache__").mkdir()
    (place[1] / "gpunode/__pycache__/a.cpython-311.pyc").write_bytes(b"\0")
    assert differences(*place) == ()


def _link(path: Path) -> None:
    copy = path.with_name("elsewhere")
    path.rename(copy)
    path.symlink_to(copy)


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


CHANGES: dict[str, tuple[Callable[[Path], object], list[tuple[str, str]]]] = {
    "one letter": (lambda p: (p / "gpunode/a.py").write_text("a = 2\n"), [("gpunode/a.py", "changed")]),
    "one more line": (lambda p: (p / "gpunode/a.py").write_text("a = 1\n\n"), [("gpunode/a.py", "changed")]),
    "a file is gone": (lambda p: (p / "gpunode/cli/b.py").unlink(), [("gpunode/cli/b.py", "missing")]),
    "a file is added": (lambda p: (p / "gpunode/x.so").touch(), [("gpunode/x.so", "not of the release")]),
    "a library is added": (lambda p: (p / "six.py").touch(), [("six.py", "not of the release")]),
    "a library is changed": (lambda p: (p / "click/c.py").write_text("c = 4\n"), [("click/c.py", "changed")]),
    "a link to the same bytes": (
        lambda p: _link(p / "gpunode/a.py"),
        [("gpunode/a.py", "a symbolic link"), ("gpunode/elsewhere", "not of the release")],
    ),
    "a directory is a link": (
        lambda p: _link(p / "click"),
        [("click", "a symbolic link"), ("click/c.py", "missing"), ("elsewhere/c.py", "not of the release")],
    ),
    "a pipe that nobody writes to": (
        lambda p: _pipe(p / "gpunode/a.py"),
        [("gpunode/a.py", "no plain file")],
    ),
    "anybody may write it": (
        lambda p: (p / "gpunode/a.py").chmod(0o666),
        [("gpunode/a.py", "every user may write it")],
    ),
    "a name that moves the cursor": (
        lambda p: (p / "gpunode/\x1b[2J.py").touch(),
        [("gpunode/\x1b[2J.py", "not of the release")],
    ),
    "the package is gone": (
        lambda p: (p / "gpunode").rename(p / "away"),
        [
            *((f"away/{name}", "not of the release") for name in (NAME, "a.py", "cli/b.py")),
            *((f"gpunode/{name}", "missing") for name in ("a.py", "cli/b.py")),
        ],
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_named(change: str, place: Place) -> None:
    changed, named = CHANGES[change]
    changed(place[1])
    assert [tuple(one) for one in differences(*place)] == named


def test_what_lies_beside_a_wheels_package_is_not_its_own(tmp_path: Path) -> None:
    release, place = installed(tmp_path, whole=False)
    (place / "six.py").touch()
    (place / "click/c.py").write_text("another version")
    assert differences(release, place) == ()
    (place / "gpunode/six.py").touch()
    assert [one.path for one in differences(release, place)] == ["gpunode/six.py"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become a user who may not read it")
def test_what_cannot_be_read_is_named(place: Place) -> None:
    """As a user of the host who has no right to: root reads everything."""
    root = place[1]
    (root / "gpunode/a.py").chmod(0o600)
    (root / "gpunode/cli").chmod(0o700)
    for path in (root, *root.parents):
        if path.stat().st_uid == 0 and str(path).startswith(("/tmp/", str(root))):
            path.chmod(path.stat().st_mode | 0o055)
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); from pathlib import Path\n"
        "from gpunode.release.installed import differences; from gpunode.release.manifest import read_release\n"
        "import os; text = Path(sys.argv[2], 'gpunode/RELEASE.json').read_text(); os.setuid(65534)\n"
        "print(*(' '.join(one) for one in differences(read_release(text), Path(sys.argv[2]))), sep='\\n')"
    )
    told = subprocess.run(
        (sys.executable, "-c", program, str(Path(__file__).parents[2]), str(root)),
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.splitlines() == [
        "gpunode/a.py cannot be read: Permission denied",
        "gpunode/cli cannot be read: Permission denied",
        "gpunode/cli/b.py missing",
    ]


def zipped(release: Release, path: Path, **changes: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in {**FILES, **changes, f"gpunode/{NAME}": release_text(release)}.items():
            archive.writestr(name, text)
    return path


def test_a_zipapp_is_compared_as_it_is(place: Place, tmp_path: Path) -> None:
    release, _ = place
    assert differences(release, zipped(release, tmp_path / "same.pyz")) == ()
    other = zipped(release, tmp_path / "other.pyz", **{"gpunode/a.py": "a = 2\n", "six.py": ""})
    assert [tuple(one) for one in differences(release, other)] == [
        ("gpunode/a.py", "changed"),
        ("six.py", "not of the release"),
    ]
    with zipfile.ZipFile(other, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("click/c.py", FILES["click/c.py"])
    assert ("click/c.py", "twice in the archive") in differences(release, other)


def test_a_broken_archive_is_one_difference(place: Place, tmp_path: Path) -> None:
    (tmp_path / "broken.pyz").write_bytes(b"PK\x05\x06")
    (one,) = differences(place[0], tmp_path / "broken.pyz")
    assert one.what.startswith("cannot be read: ")


def _with(**changes: object) -> str:
    text = release_text(Release("1.2.3", COMMIT, 1764000000, "deb", True, {"gpunode/a.py": content_of(Path(__file__))}))
    return json.dumps({**json.loads(text), **changes})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "[" * 100_000,
        _with(schema="gpunode.release/2"),
        _with(version=""),
        _with(version="1\x1b[2J"),
        _with(commit="HEAD"),
        _with(committed_at_s=-1),
        _with(committed_at_s=True),
        _with(committed_at_s=1e300),
        _with(whole=1),
        _with(files={}),
        _with(files=[]),
        *(_with(files={path: [1, "0" * 64]}) for path in ("/etc/shadow", "../a", "a/../b", "a//b", "", ".", "a\0")),
        *(_with(files={"a": content}) for content in ([], [1], [-1, "0" * 64], [1, "0"], [1 << 60, "0" * 64], "x")),
    ],
    ids=lambda text: text[:20] if len(text) < 200 else None,
)
def test_a_manifest_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(NotRead):
        read_release(text)
