"""Key files that hold more than the pinned key: whatever a server hands out, only that primary key is trusted."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import zlib
from pathlib import Path

import pytest

from gpunode import resources
from tests.hostile.key_server import key_server
from tests.hostile.openpgp import Key, armored, packet

SCRIPT = Path(resources.PACKAGE) / "shell" / "repos" / "fetch_key.sh"
VENDOR, STRANGER, THIRD = Key("vendor"), Key("stranger"), Key("third")
FILE_LIMIT = "20000"  # blocks of 512 bytes: what a test that fails may write at most
pytestmark = pytest.mark.skipif(shutil.which("gpg") is None, reason="gpg is not installed")


def fetch(
    tmp_path: Path, served: bytes | Path, *pinned: Key | str, keyring: str = "trusted.asc", path: str = ""
) -> subprocess.CompletedProcess[str]:
    """What the script makes of a file; `path` comes first in PATH."""
    file = served if isinstance(served, Path) else tmp_path / "served"
    if isinstance(served, bytes):
        file.write_bytes(served)
    wanted = [key if isinstance(key, str) else key.fingerprint for key in pinned or (VENDOR,)]
    words = ("sh", "-c", f'ulimit -f {FILE_LIMIT}; exec sh "$@"', "sh", str(SCRIPT), f"file://{file}")
    env = {"PATH": f"{path}:{os.environ['PATH']}".lstrip(":"), "TMPDIR": str(tmp_path)}
    return subprocess.run(
        (*words, str(tmp_path / keyring), *wanted), capture_output=True, text=True, check=False, env=env, timeout=120
    )


def held(tmp_path: Path, record: str = "pub", keyring: str = "trusted.asc") -> list[str]:
    """Fingerprints in the keyring that was written: of its primary keys, or (`sub`) of its subkeys."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700, exist_ok=True)
    argv = ("gpg", "--homedir", str(home), "--batch", "--with-colons", "--show-keys", str(tmp_path / keyring))
    rows = [line.split(":") for line in subprocess.run(argv, check=True, capture_output=True, text=True).stdout.split()]
    kinds = [row[0] for row in rows if row[0] in ("pub", "sub")]
    prints = [row[9] for row in rows if row[0] == "fpr"]
    return sorted(fingerprint for kind, fingerprint in zip(kinds, prints, strict=True) if kind == record)


@pytest.mark.parametrize(
    "served",
    [
        VENDOR.block + STRANGER.block + STRANGER.subkey(VENDOR),
        armored(VENDOR.block + STRANGER.block + STRANGER.subkey(VENDOR)),
        armored(VENDOR.block) + armored(STRANGER.block),
        VENDOR.block + THIRD.block + THIRD.subkey(STRANGER) + STRANGER.block + STRANGER.subkey(VENDOR),
        THIRD.block + THIRD.subkey(STRANGER) + VENDOR.block + STRANGER.block + STRANGER.subkey(VENDOR),
    ],
    ids=[
        "a stranger's key, to which the pinned one is bound as a subkey",
        "the same in armour",
        "a second block of armour",
        "a chain of two strangers' keys",
        "the chain around the pinned key",
    ],
)
def test_the_keyring_holds_the_pinned_primary_key_and_no_other(tmp_path: Path, served: bytes) -> None:
    done = fetch(tmp_path, served)
    assert done.returncode == 0, done.stderr
    assert held(tmp_path) == [VENDOR.fingerprint]
    assert held(tmp_path, "sub") == []


def test_two_pinned_keys_are_both_taken_and_a_third_is_not(tmp_path: Path) -> None:
    served = THIRD.block + VENDOR.block + STRANGER.block + THIRD.subkey(VENDOR)
    done = fetch(tmp_path, served, VENDOR, STRANGER)
    assert done.returncode == 0, done.stderr
    assert held(tmp_path) == sorted([VENDOR.fingerprint, STRANGER.fingerprint])


def test_a_subkey_stays_only_with_a_signature_of_the_pinned_key(tmp_path: Path) -> None:
    own = VENDOR.subkey(THIRD)
    done = fetch(tmp_path, VENDOR.block + own + VENDOR.subkey(STRANGER, forged=True))
    assert done.returncode == 0, done.stderr
    assert held(tmp_path, "sub") == [THIRD.fingerprint]


@pytest.mark.parametrize(
    "served",
    [
        STRANGER.block + STRANGER.subkey(VENDOR),
        packet(6, VENDOR.public) + STRANGER.block,
        VENDOR.public,
        b"",
    ],
    ids=[
        "the pinned key is a stranger's subkey alone",
        "the pinned key's bare packet before a stranger's",
        "no packets",
        "nothing",
    ],
)
def test_a_file_that_hides_the_pinned_key_is_refused_and_the_old_keyring_stays(tmp_path: Path, served: bytes) -> None:
    before = armored(VENDOR.block)
    (tmp_path / "trusted.asc").write_bytes(before)
    done = fetch(tmp_path, served)
    assert done.returncode == 65, done.stdout
    assert f"expected {VENDOR.fingerprint}" in done.stderr
    assert (tmp_path / "trusted.asc").read_bytes() == before
    assert not list(tmp_path.glob("*.gpunode-new"))
    assert not list(tmp_path.glob("tmp.*"))


def pinned_whole(file: bytes) -> str:
    """As NVIDIA's image pins it: sed '/^Version/d' KEY | sha256sum."""
    kept = [line for line in file.splitlines(keepends=True) if not line.startswith(b"Version")]
    return f"sha256:{hashlib.sha256(b''.join(kept)).hexdigest()}"


def with_version(block: bytes) -> bytes:
    head, line, rest = armored(block).partition(b"\n")
    return head + line + b"Version: GnuPG v2.0.22 (GNU/Linux)\n" + rest


@pytest.mark.parametrize("served", [armored(VENDOR.block), with_version(VENDOR.block)], ids=["plain", "with a version"])
def test_a_file_that_is_pinned_whole_is_taken_without_its_version(tmp_path: Path, served: bytes) -> None:
    done = fetch(tmp_path, served, pinned_whole(served))
    assert done.returncode == 0, done.stderr
    assert f"trusted {VENDOR.fingerprint} from" in done.stdout
    assert (tmp_path / "trusted.asc").read_bytes() == armored(VENDOR.block)
    assert held(tmp_path) == [VENDOR.fingerprint]


@pytest.mark.parametrize(
    "served",
    [armored(VENDOR.block) + armored(STRANGER.block), armored(STRANGER.block), with_version(VENDOR.block)[:-1], b""],
    ids=["a key more", "another key", "a byte less", "nothing"],
)
def test_a_file_that_is_pinned_whole_and_differs_is_refused(tmp_path: Path, served: bytes) -> None:
    expected = pinned_whole(armored(VENDOR.block))
    done = fetch(tmp_path, served, expected)
    assert done.returncode == 65, done.stdout
    assert pinned_whole(served) in done.stderr
    assert f"expected {expected}" in done.stderr
    assert not (tmp_path / "trusted.asc").exists()


def test_next_to_a_file_that_is_pinned_whole_a_fingerprint_counts_as_ever(tmp_path: Path) -> None:
    done = fetch(tmp_path, STRANGER.block + VENDOR.block, pinned_whole(armored(VENDOR.block)), VENDOR)
    assert done.returncode == 0, done.stderr
    assert held(tmp_path) == [VENDOR.fingerprint]


def test_behind_the_strangers_key_the_pinned_one_is_taken_alone_or_not_at_all(tmp_path: Path) -> None:
    """gpg 2.2 takes its packet for the stranger's subkey and imports no second one; gpg 2.4 imports both."""
    done = fetch(tmp_path, STRANGER.block + STRANGER.subkey(VENDOR) + VENDOR.block)
    assert done.returncode in (0, 65), done.stderr
    assert (held(tmp_path) if done.returncode == 0 else [VENDOR.fingerprint]) == [VENDOR.fingerprint]
    assert (tmp_path / "trusted.asc").exists() is (done.returncode == 0)


def test_a_file_that_unpacks_to_thousands_of_names_is_refused(tmp_path: Path) -> None:
    squeeze = zlib.compressobj(9, wbits=-15)
    names = packet(13, b"x" * 2000) * 1000
    bomb = squeeze.compress(VENDOR.block) + b"".join(squeeze.compress(names) for _ in range(15)) + squeeze.flush()
    done = fetch(tmp_path, packet(8, b"\x01" + bomb))
    assert done.returncode == 65
    assert not (tmp_path / "trusted.asc").exists()


@pytest.mark.parametrize(
    "served",
    [armored(VENDOR.block) + b"\n" * 1_048_576, VENDOR.block + packet(13, b"x") * 200_000],
    ids=["the key, then blank lines", "the key, then user ids"],
)
def test_a_key_file_above_one_mebibyte_is_refused(tmp_path: Path, served: bytes) -> None:
    done = fetch(tmp_path, served)
    assert done.returncode == 65
    assert "is larger than 1048576 bytes: that is no signing key" in done.stderr
    assert not (tmp_path / "trusted.asc").exists()


def test_an_endless_file_is_cut_off_and_named(tmp_path: Path) -> None:
    done = fetch(tmp_path, Path("/dev/zero"))
    assert done.returncode == 65
    assert "is larger than 1048576 bytes" in done.stderr


def test_a_server_that_never_ends_its_answer_is_given_up_on_by_name(tmp_path: Path) -> None:
    """A FIFO nobody writes to; the script's own limit is shortened by a `timeout` before the system's."""
    stall = tmp_path / "stall"
    os.mkfifo(stall)
    before = tmp_path / "bin"
    before.mkdir()
    shorten(before, 1)
    done = fetch(tmp_path, stall, path=str(before))
    assert done.returncode == 66
    assert "could not be fetched: its server did not finish within" in done.stderr


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize(
    ("name", "code", "says"),
    [
        ("mixed", 0, f"trusted {VENDOR.fingerprint}"),
        ("endless", 65, "is larger than 1048576 bytes"),
        ("claims", 65, "is larger than 1048576 bytes"),
        ("drips", 66, "its server did not finish within"),
        ("http", 66, "could not be fetched"),
    ],
)
def test_a_hostile_server_gets_nothing_in(tmp_path: Path, name: str, code: int, says: str) -> None:
    """Real curl; the script's own time limit is shortened for the server that falls silent."""
    tools = tmp_path / "bin"
    tools.mkdir()
    shorten(tools, 2 if name == "drips" else 75)
    mixed = VENDOR.block + STRANGER.block + STRANGER.subkey(VENDOR)
    with key_server(tmp_path, {"mixed": armored(mixed)}) as (url, certificate):
        env = {"PATH": f"{tools}:{os.environ['PATH']}", "TMPDIR": str(tmp_path), "CURL_CA_BUNDLE": str(certificate)}
        words = ("sh", str(SCRIPT), f"{url}/{name}", str(tmp_path / "trusted.asc"), VENDOR.fingerprint)
        done = subprocess.run(words, capture_output=True, text=True, check=False, env=env, timeout=120)
    assert done.returncode == code, done.stderr
    assert says in done.stdout + done.stderr
    assert (tmp_path / "trusted.asc").exists() is (code == 0)
    assert code or held(tmp_path) == [VENDOR.fingerprint]


def shorten(directory: Path, limit_s: int) -> None:
    """A `timeout` that comes before the system's in PATH, and knows better how long to wait."""
    (directory / "timeout").write_text(f'#!/bin/sh\nshift\nexec {shutil.which("timeout")} {limit_s} "$@"\n')
    (directory / "timeout").chmod(0o755)


def test_a_host_without_gpg_is_told_so(tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("sh", "mktemp", "mkdir", "rm", "cp"):
        (tools / name).symlink_to(str(shutil.which(name)))
    env = {"PATH": str(tools), "TMPDIR": str(tmp_path)}
    words = (str(tools / "sh"), str(SCRIPT), "file:///nonexistent", str(tmp_path / "k"), VENDOR.fingerprint)
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 69
    assert "gpg is not installed" in done.stderr
