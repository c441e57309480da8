"""Which key DKMS signs with, as its framework.conf names it: read as data, and unknown where it is not understood."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpunode.facts.collect import assemble
from gpunode.model.facts import SecurityFacts
from tests.facts.hosts import make_root, run_probe

EFI = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
MOKUTIL = """#!/bin/sh
case $2 in */own/k.der) echo "$2 is already enrolled" ;; *) echo "$2 is not enrolled" ;; esac
"""
BOTH = "mok_signing_key=/own/k.key\nmok_certificate=/own/k.der\n"
OWN = ("/own/k.key", "/own/k.der", True)
UNKNOWN = ("?", "/own/k.der", None)


def seen(tmp_path: Path, *files: str, shell: str = "sh", mode: int = 0o644) -> SecurityFacts:
    """The facts of a host with Secure Boot, whose framework.conf and framework.conf.d/N.conf are `files`."""
    root = make_root(tmp_path, {"mokutil": MOKUTIL})
    for path in (EFI, "own/k.key", "own/k.der", "var/lib/dkms/mok.pub", "var/lib/shim-signed/mok/MOK.der"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(b"\x06\0\0\0\1")
    (root / "etc/dkms/framework.conf.d").mkdir(parents=True)
    for n, text in enumerate(files):
        file = root / "etc/dkms" / (f"framework.conf.d/{n}.conf" if n else "framework.conf")
        file.write_text(text)
        file.chmod(mode)
    return assemble(run_probe((shell,), root).stdout, "gpu07").security


@pytest.mark.parametrize(
    ("files", "want"),
    [
        ((), (None, None, False)),
        (("# mok_signing_key=/var/lib/dkms/mok.key\nverbose=1\n",), (None, None, False)),
        ((BOTH,), OWN),
        ((BOTH.replace("=/own/k.der", "='/own/k.der'\r").replace("=/own/k.key", '="/own/k.key"'),), OWN),
        (("mok_signing_key=/own/x.key\n" + BOTH,), OWN),
        (("mok_signing_key=/own/$x.key\n", BOTH.rstrip()), OWN),
        ((BOTH, "mok_signing_key=\nmok_certificate=\n"), (None, None, False)),
        ((BOTH, "mok_signing_key=/own/$kernelver.key\n"), UNKNOWN),
        ((BOTH, "[ -e /x ] && mok_signing_key=/own/x.key\n"), UNKNOWN),
        ((BOTH, "mok_signing_key=pkcs11:object=x\n"), UNKNOWN),
        ((BOTH, "mok_signing_key=$(touch /own/run)\n"), UNKNOWN),
        ((BOTH, "mok_signing_key=/nowhere/k.key\n"), UNKNOWN),
    ],
    ids=["none", "a comment", "both", "in quotes", "the last line wins", "the last file wins", "taken back",
         "a variable", "a condition", "a token", "a command", "no directory"],
)  # fmt: skip
def test_the_key_that_dkms_signs_with_is_the_one_that_is_asked_about(
    files: tuple[str, ...], want: tuple[str | None, str | None, bool | None], tmp_path: Path
) -> None:
    found = seen(tmp_path, *files)
    assert (found.mok_key, found.mok_certificate, found.mok_enrolled) == want
    assert not (tmp_path / "own/run").exists()


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_every_shell_reads_it_alike(shell: str, tmp_path: Path) -> None:
    found = seen(tmp_path, BOTH, shell=shell)
    assert (found.mok_key, found.mok_certificate, found.mok_enrolled) == OWN


def test_a_file_that_others_may_write_makes_the_key_unknown(tmp_path: Path) -> None:
    found = seen(tmp_path, BOTH, mode=0o666)
    assert (found.mok_key, found.mok_certificate, found.mok_enrolled) == ("?", "?", None)
