"""Key files as the probe hands them over: only those that root alone can write are read at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpunode.facts.collect import collect
from gpunode.facts.recordings import masked
from gpunode.transport.recorded import Recorded
from tests.facts.hosts import make_root, run_probe
from tests.hostile.openpgp import Key, armored, packet

A, B = Key("vendor"), Key("stranger")
URL = "https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2404/x86_64/"
NOBODY = 65534


def write(root: Path, path: str, content: bytes, mode: int = 0o644) -> Path:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    file.chmod(mode)
    return file


@pytest.mark.skipif(os.geteuid() != 0, reason="files of root and of another user are made")
def test_a_key_file_counts_only_when_root_alone_writes_it(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    write(root, "usr/share/keyrings/nvidia-good.gpg", A.block)
    write(root, "etc/apt/keyrings/nvidia-both.asc", armored(A.block + B.block))
    write(root, "etc/apt/keyrings/corp.gpg", B.block)
    write(root, "etc/apt/keyrings/not-named.gpg", B.block)
    write(root, "etc/apt/keyrings/nvidia-web-page.gpg", b"<html>")
    write(root, "etc/apt/keyrings/nvidia-writable.gpg", A.block, 0o666)
    write(root, "etc/apt/keyrings/nvidia-group.gpg", A.block, 0o664)
    write(root, "etc/apt/keyrings/nvidia-large.gpg", A.block + packet(13, b"x" * 40_000))
    os.chown(write(root, "etc/apt/keyrings/nvidia-nobody.gpg", A.block), NOBODY, NOBODY)
    write(root, "home/me/key.gpg", A.block)
    (root / "etc/apt/keyrings/nvidia-link.gpg").symlink_to("../../../home/me/key.gpg")
    (root / "etc/apt/keyrings/nvidia-own-link.gpg").symlink_to("corp.gpg")
    os.mkfifo(root / "etc/apt/keyrings/nvidia-fifo.gpg")
    (root / "etc/apt/keyrings/nvidia-directory.gpg").mkdir()
    lists = f"deb [arch=amd64 signed-by=/etc/apt/keyrings/corp.gpg] {URL} /\ndeb [signed-by=/home/me/key.gpg] {URL} /\n"
    write(root, "etc/apt/sources.list.d/cuda.list", lists.encode())

    done = run_probe(("sh",), root)
    assert done.returncode == 0, done.stderr
    seen = collect(Recorded(done.stdout, "host")).packages.primaries
    assert seen == {
        "/usr/share/keyrings/nvidia-good.gpg": (A.fingerprint,),
        "/etc/apt/keyrings/nvidia-both.asc": tuple(sorted((A.fingerprint, B.fingerprint))),
        "/etc/apt/keyrings/corp.gpg": (B.fingerprint,),
        "/etc/apt/keyrings/nvidia-own-link.gpg": (B.fingerprint,),
        "/etc/apt/keyrings/nvidia-web-page.gpg": (),
    }
    recorded = collect(Recorded(masked(done.stdout, mask_host=True), "host")).packages.primaries
    assert recorded == seen, "a public key is no secret"
