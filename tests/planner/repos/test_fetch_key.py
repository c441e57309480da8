"""fetch_key.sh with the real gpg: only a key whose full fingerprint is named ever reaches the keyring."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpunode import resources

SCRIPT = Path(resources.PACKAGE) / "shell" / "repos" / "fetch_key.sh"
# Stands for curl: the "download" is the file $SERVED.
CURL = """#!/bin/sh
while [ "$1" != --output ]; do shift; done
cp "$SERVED" "$2"
"""
pytestmark = pytest.mark.skipif(shutil.which("gpg") is None, reason="gpg is not installed")


@dataclass(frozen=True)
class Signers:
    """A file that holds two public keys, the vendor's and a stranger's."""

    file: Path
    vendor: str
    stranger: str


def gpg(home: Path, *words: str) -> str:
    argv = ("gpg", "--homedir", str(home), "--batch", "--passphrase", "", *words)
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def fingerprints(home: Path, *words: str) -> list[str]:
    rows = [line.split(":") for line in gpg(home, "--with-colons", *words).splitlines()]
    return [row[9] for row in rows if row[0] == "fpr"]


@pytest.fixture(scope="module")
def signers() -> Iterator[Signers]:
    with tempfile.TemporaryDirectory(prefix="gpg") as directory:  # short: gpg-agent's socket lies in it
        home = Path(directory)
        for name in ("vendor", "stranger"):
            gpg(home, "--quick-gen-key", f"{name} <{name}@example.invalid>", "ed25519", "sign", "1d")
        vendor, stranger = fingerprints(home, "--list-keys")
        (home / "keys.asc").write_text(gpg(home, "--armor", "--export"))
        yield Signers(home / "keys.asc", vendor, stranger)
        subprocess.run(("gpgconf", "--homedir", directory, "--kill", "all"), check=True)


def fetch(
    tmp_path: Path, signers: Signers, *expected: str, url: str = "https://vendor.example/key.asc"
) -> subprocess.CompletedProcess[str]:
    bin_directory = tmp_path / "bin"
    bin_directory.mkdir()
    (bin_directory / "curl").write_text(CURL)
    (bin_directory / "curl").chmod(0o755)
    env = {"PATH": f"{bin_directory}:{os.environ['PATH']}", "SERVED": str(signers.file)}
    words = ("sh", str(SCRIPT), url, str(tmp_path / "trusted.asc"), *expected)
    return subprocess.run(words, capture_output=True, text=True, check=False, env=env)


def test_of_two_keys_in_the_file_only_the_expected_one_is_trusted(tmp_path: Path, signers: Signers) -> None:
    done = fetch(tmp_path, signers, signers.vendor)
    assert done.returncode == 0, done.stderr
    assert fingerprints(signers.file.parent, "--show-keys", str(tmp_path / "trusted.asc")) == [signers.vendor]


@pytest.mark.parametrize("length", [40, 8], ids=["another full fingerprint", "a short key id is no fingerprint"])
def test_an_unexpected_key_is_refused_and_both_are_named(tmp_path: Path, signers: Signers, length: int) -> None:
    expected = ("0123456789ABCDEF" * 3)[:40] if length == 40 else signers.vendor[-8:]
    done = fetch(tmp_path, signers, expected)
    assert done.returncode == 65
    assert signers.stranger in done.stderr
    assert expected in done.stderr
    assert not (tmp_path / "trusted.asc").exists()


def test_a_key_beside_a_local_repository_is_looked_at_just_the_same(tmp_path: Path, signers: Signers) -> None:
    url = f"file://{signers.file}"
    nothing = Signers(Path("/nonexistent"), signers.vendor, signers.stranger)  # what the downloader would serve
    done = fetch(tmp_path, nothing, signers.vendor, url=url)
    assert done.returncode == 0, done.stderr
    assert fingerprints(signers.file.parent, "--show-keys", str(tmp_path / "trusted.asc")) == [signers.vendor]


def test_a_directory_without_a_key_is_named(tmp_path: Path, signers: Signers) -> None:
    done = fetch(tmp_path, signers, signers.vendor, url="file:///nonexistent/key.asc")
    assert done.returncode == 66
    assert "file:///nonexistent/key.asc could not be fetched" in done.stderr
