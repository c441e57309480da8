"""A bundle arrives whole or not at all, and what arrived before the connection broke is not sent again."""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

import pytest

from gpunode import resources
from gpunode.apply import bundle as sending
from gpunode.apply.bundle import send_bundle
from gpunode.errors import StepFailed, TransportError
from gpunode.model.bundle import HOME, Bundle
from gpunode.transport.base import Completed
from tests.apply.machine import Machine
from tests.bundles.test_archive import bundle as tar_of
from tests.bundles.test_archive import manifest

SHELLS = [("dash",), ("bash", "--posix"), ("busybox", "sh")]


@dataclass
class Host(Machine):
    breaks_at: int = -1  # the run that loses the connection

    def moved(self, script: str) -> str:
        return script.replace("/var/cache/gpunode", str(self.root / "cache"))

    def run(self, script: str, *, stdin: bytes = b"", timeout_s: float) -> Completed:
        if len(self.scripts) == self.breaks_at:
            self.breaks_at, self.lost = -1, 1
        return super().run(script, stdin=stdin, timeout_s=timeout_s)

    @property
    def home(self) -> Path:
        return self.root / "cache/bundle"


@pytest.fixture(params=SHELLS, ids=["dash", "bash", "busybox"])
def host(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    monkeypatch.setattr(sending, "PIECE_BYTES", 4096)
    return Host(tmp_path / "host", request.param)


@pytest.fixture
def gpu_bundle(tmp_path: Path) -> Bundle:
    path = tar_of(tmp_path)
    data = path.read_bytes()
    return Bundle(str(path), hashlib.sha256(data).hexdigest(), len(data), manifest(), None)


def unpack(host: Host, sha256: str) -> Completed:
    words = shlex.join((HOME, sha256))
    return host.run(f"set -- {words}\n{resources.script('bundle/unpack')}", timeout_s=60)


def test_it_is_sent_in_pieces_unpacked_and_not_sent_again(host: Host, gpu_bundle: Bundle) -> None:
    assert send_bundle(host, gpu_bundle) == gpu_bundle.size_bytes
    assert len(host.scripts) == 1 + -(-gpu_bundle.size_bytes // 4096)
    done = unpack(host, gpu_bundle.sha256)
    assert (done.code, done.stderr) == (0, b"")
    assert (host.home / "vendor/a/Packages").read_bytes() == b"Package: nvidia-open\n"
    assert (host.home / "vendor/a").stat().st_mode & 0o777 == 0o755
    assert sorted(path.name for path in host.home.parent.iterdir()) == ["bundle"]
    assert send_bundle(host, gpu_bundle) == 0
    assert unpack(host, gpu_bundle.sha256).stdout == b"it is here already\n"


def test_after_a_broken_connection_the_rest_is_sent(host: Host, gpu_bundle: Bundle) -> None:
    host.breaks_at = 2
    with pytest.raises(TransportError):
        send_bundle(host, gpu_bundle)
    assert send_bundle(host, gpu_bundle) == gpu_bundle.size_bytes - 4096
    assert unpack(host, gpu_bundle.sha256).code == 0


@dataclass
class Liar:
    """A host that answers what it likes."""

    answers: Iterator[str]
    target: str = "testhost"
    asked: int = 0

    def run(self, script: str, *, stdin: bytes = b"", timeout_s: float) -> Completed:
        self.asked += 1
        return Completed(0, f"{next(self.answers)}\n".encode(), b"", 0.0)

    def reconnect(self) -> None: ...

    def close(self) -> None: ...


@pytest.mark.parametrize(
    "answers",
    [
        ["has \u00b2"],
        [f"has {'9' * 5000}"],
        ["has -1"],
        ["has 0", "has 1", "has 2", "has 1"],
        ["has 0", "has 4096", "has 0", "has 4096"],
    ],
)
def test_a_host_that_answers_anything_does_not_hold_or_break_the_sender(
    answers: list[str], gpu_bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "PIECE_BYTES", 4096)
    liar = Liar(islice(cycle(answers), 1000))
    with pytest.raises(StepFailed, match="does not take the bundle"):
        send_bundle(liar, gpu_bundle)
    assert liar.asked < 20


def test_a_file_that_goes_away_before_it_is_sent_is_named(host: Host, gpu_bundle: Bundle) -> None:
    path = Path(gpu_bundle.path)
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(StepFailed, match="is not what was read before") as shorter:
        send_bundle(host, gpu_bundle)
    assert shorter.value.evidence == f"it ends at 5000 of {gpu_bundle.size_bytes} bytes"
    path.unlink()
    with pytest.raises(StepFailed, match="is not what was read before"):
        send_bundle(host, gpu_bundle)
    os.mkfifo(path)
    with pytest.raises(StepFailed, match="is not what was read before"):
        send_bundle(host, gpu_bundle)


def test_another_file_is_not_unpacked_and_does_not_stay(host: Host, gpu_bundle: Bundle) -> None:
    send_bundle(host, gpu_bundle)
    (part,) = host.home.parent.iterdir()
    assert part.stat().st_mode & 0o777 == 0o600
    part.write_bytes(part.read_bytes()[:-1] + b"!")
    done = unpack(host, gpu_bundle.sha256)
    assert done.code == 65
    assert b"arrived as another file" in done.stderr
    assert list(host.home.parent.iterdir()) == []
    assert unpack(host, gpu_bundle.sha256).code == 66


def test_the_bundle_before_it_comes_back(host: Host, gpu_bundle: Bundle) -> None:
    from gpunode.planner.install.bundle import BACK

    host.home.mkdir(parents=True)
    (host.home / "SHA256").write_text("older\n")
    send_bundle(host, gpu_bundle)
    assert unpack(host, gpu_bundle.sha256).code == 0
    assert (host.home.parent / "bundle.old/SHA256").read_text() == "older\n"
    host.run(f"set -- {HOME}\n{BACK}", timeout_s=10)
    assert (host.home / "SHA256").read_text() == "older\n"
    host.run(f"set -- {HOME}\n{BACK}", timeout_s=10)
    assert (host.home / "SHA256").read_text() == "older\n", "nothing is kept beside it: it stays"


def test_an_unpacking_that_fails_leaves_the_bundle_before_it_and_nothing_else(host: Host, gpu_bundle: Bundle) -> None:
    from gpunode.planner.install.bundle import BACK, REMOVE

    host.home.mkdir(parents=True)
    (host.home / "SHA256").write_text("older\n")
    send_bundle(host, gpu_bundle)
    (part,) = host.home.parent.glob("*.part")
    part.write_bytes(b"no tar")
    sha256 = hashlib.sha256(b"no tar").hexdigest()
    part.rename(host.home.parent / f"bundle.{sha256}.part")
    assert unpack(host, sha256).code not in (0, 65, 66)
    assert not (host.home.parent / "bundle.new").exists()
    host.run(f"set -- {HOME}\n{BACK}", timeout_s=10)
    assert [path.name for path in host.home.parent.iterdir()] == ["bundle"]
    assert (host.home / "SHA256").read_text() == "older\n"
    host.run(f"set -- {HOME}\n{REMOVE}", timeout_s=10)
    assert list(host.home.parent.iterdir()) == []


def test_killed_between_two_moves_the_bundle_before_it_is_not_lost(host: Host, gpu_bundle: Bundle) -> None:
    old = host.home.parent / "bundle.old"
    old.mkdir(parents=True)
    (old / "SHA256").write_text("older\n")
    (host.home.parent / "bundle.feed.part").write_text("given up")
    send_bundle(host, gpu_bundle)
    assert unpack(host, gpu_bundle.sha256).code == 0
    assert (old / "SHA256").read_text() == "older\n"
    assert list(host.home.parent.glob("*.part")) == []


def test_a_directory_that_others_decide_on_is_refused(host: Host, gpu_bundle: Bundle) -> None:
    host.root.mkdir()
    (host.root / "elsewhere").mkdir()
    (host.root / "cache").symlink_to(host.root / "elsewhere")
    with pytest.raises(StepFailed, match="is a link"):
        send_bundle(host, gpu_bundle)
    (host.root / "cache").unlink()
    (host.root / "cache").mkdir()
    (host.root / "cache").chmod(0o777)
    with pytest.raises(StepFailed, match="others than root may write"):
        send_bundle(host, gpu_bundle)
