"""Keyring files read without gpg: primary keys are distinguished from subkeys; what cannot be checked is refused."""

from __future__ import annotations

import base64
import random
from contextlib import suppress

import pytest

from gpunode.facts.packages import parse_key_files
from gpunode.packages.openpgp import LIMIT_BYTES, inline_key, primary_fingerprints
from tests.hostile.linear import assert_linear
from tests.hostile.openpgp import Key, armored, packet

A, B = Key("vendor"), Key("stranger")
KEYRING = "/usr/share/keyrings/nvidia.gpg"


def old(tag: int, body: bytes) -> bytes:
    """A packet with the older header, as gpg --export writes it."""
    return bytes([0x80 | tag << 2 | 1]) + len(body).to_bytes(2, "big") + body


@pytest.mark.parametrize(
    ("keyring", "held"),
    [
        pytest.param(A.block, {A}, id="binary"),
        pytest.param(armored(A.block), {A}, id="armour"),
        pytest.param(
            b"Comment\n" + armored(A.block).replace(b"\n", b"\r\n") + armored(B.block), {A, B}, id="two blocks"
        ),
        pytest.param(A.block + B.subkey(A) + A.subkey(B), {A}, id="subkeys do not count"),
        pytest.param(B.block + B.subkey(A), {B}, id="a pinned key as a subkey does not count"),
        pytest.param(old(6, A.public) + old(13, b"x"), {A}, id="old headers"),
        pytest.param(bytes([0xC6, len(A.public)]) + A.public, {A}, id="a short length"),
        pytest.param(A.block + packet(12, b"\0") + packet(13, b"x" * 300), {A}, id="trust packets"),
    ],
)
def test_primary_keys_are_named_by_their_full_fingerprint(keyring: bytes, held: set[Key]) -> None:
    assert primary_fingerprints(keyring) == {key.fingerprint for key in held}


@pytest.mark.parametrize(
    "keyring",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"<html>404</html>", id="a web page"),
        pytest.param(A.block[:-1], id="truncated"),
        pytest.param(A.block[:3], id="truncated in a length"),
        pytest.param(packet(13, b"x"), id="no key"),
        pytest.param(packet(5, A.public), id="a secret key"),
        pytest.param(packet(6, b"\x06" + A.public[1:]), id="another version"),
        pytest.param(A.block + packet(8, b"\x01x"), id="compressed"),
        pytest.param(A.block + b"\xc6\xe1" + A.public, id="a partial length"),
        pytest.param(A.block + b"\x9b" + A.public, id="no length"),
        pytest.param(armored(A.block)[:-20], id="armour without an end"),
        pytest.param(armored(A.block).replace(b"\n\n", b"\n\n!!"), id="damaged armour"),
        pytest.param(A.block + b"\0" * LIMIT_BYTES, id="too large"),
    ],
)
def test_what_cannot_be_checked_is_refused(keyring: bytes) -> None:
    with pytest.raises(ValueError, match=r"^it"):
        primary_fingerprints(keyring)


def test_a_key_in_a_stanza_is_read_with_its_dots() -> None:
    text = "\n".join(line or "." for line in armored(A.block).decode().splitlines())
    assert primary_fingerprints(inline_key(text)) == {A.fingerprint}


def test_the_probes_lines_become_fingerprints_and_damage_becomes_none() -> None:
    line = f"{KEYRING} {base64.b64encode(A.block + B.subkey(A)).decode()}\n/etc/apt/keyrings/a b.gpg !\n/x \n"
    assert parse_key_files(line) == {KEYRING: (A.fingerprint,), "/etc/apt/keyrings/a b.gpg": (), "/x": ()}


def test_reading_is_linear() -> None:
    assert_linear(primary_fingerprints, lambda size: A.block + packet(13, b"x") * (size // 3), short=45_000)


@pytest.mark.parametrize("seed", range(4))
def test_a_garbled_keyring_is_read_or_refused(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(1500):
        keyring = bytearray(rng.choice((A.block + B.subkey(A), armored(A.block), old(6, A.public))))
        for _ in range(rng.randint(1, 5)):
            keyring[rng.randrange(len(keyring))] = rng.randrange(256)
        with suppress(ValueError):
            assert primary_fingerprints(bytes(keyring[: rng.randint(1, 2 * len(keyring))]))
