"""What a person reads of a failed tool's output: its own reason, in one line."""

from __future__ import annotations

import pytest

from gpunode.apply.reasons import error_summary, tail
from gpunode.apply.script import advice_on

WAITED = "Waiting for cache lock: Could not get lock /var/lib/dpkg/lock. It is held by process 1313 (python3)..."
LOCKED = "E: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), is another process using it?"
MISSING = "E: Unable to locate package nvidia-open"

ZYPPER = """Resolving package dependencies...

Problem: 1: nothing provides 'dkms' needed by the to be installed nvidia-open-595.91.07-1.x86_64
 Solution 1: do not install nvidia-open-595.91.07-1.x86_64

Choose from above solutions by number or cancel [1/2/c/d/?] (c): c
"""
ZYPPER_LOCK = """System management is locked by the application with pid 243 (zypper).
Close this application before trying again.
"""
DNF5 = """Updating and loading repositories:
Repositories loaded.
Failed to resolve the transaction:
Problem: conflicting requests
  - nothing provides dkms needed by kmod-nvidia-open-dkms-3:595.91.07-1.x86_64
You can try to add to command line:
  --skip-broken to skip uninstallable packages
"""
PACMAN = """:: Synchronizing package databases...
error: extra: signature from "gpunode lab stranger" is unknown trust
error: failed to synchronize all databases (invalid or corrupted database (PGP signature))
"""

# dpkg 1.21 on a file system that is read-only, as apt 2.6 shows it.
DPKG = """Get:1 /foo.deb foo all 1 [732 B]
(Reading database ... 16622 files and directories currently installed.)
Preparing to unpack /foo.deb ...
Unpacking foo (1) ...
dpkg: error processing archive /foo.deb (--unpack):
 unable to clean up mess surrounding './etc/foo.conf' before installing another version: Read-only file system
Errors were encountered while processing:
 /foo.deb
E: Sub-process /usr/bin/dpkg returned an error code (1)
"""
# dpkg 1.22 cleans up as well.
DPKG_TWICE = """Unpacking foo (1) ...
dpkg: error processing archive /foo.deb (--install):
 unable to create '/usr/share/foo/x.dpkg-new' (while processing './usr/share/foo/x'): Read-only file system
dpkg: error while cleaning up:
 unable to remove newly-extracted version of '/usr/share/foo/x': Read-only file system
Errors were encountered while processing:
 /foo.deb
"""
POSTINST = """Unpacking foo (1) ...
Setting up foo (1) ...
foo: no room for the cache
dpkg: error processing package foo (--configure):
 installed foo package post-installation script subprocess returned error exit status 1
Errors were encountered while processing:
 foo
E: Sub-process /usr/bin/dpkg returned an error code (1)
"""
# apt 3.0 with sqv, of a key whose own signature is by SHA-1.
SQV = """Err:1 http://deb.example InRelease
  Sub-process /usr/bin/sqv returned an error code (1), error message is: Signing key on 819AC4D3928E7F70 is not bound: \
           No binding signature at time 2026-11-23T01:20:56Z   because: SHA1 is not considered secure since 2026-02-01
Reading package lists...
W: OpenPGP signature verification failed: http://deb.example InRelease: Sub-process /usr/bin/sqv returned \
an error code (1), error message is: Signing key on 819AC4D3928E7F70 is not bound:            No binding signature \
at time 2026-11-23T01:20:56Z   because: SHA1 is not considered secure since 2026-02-01T00:00:00Z
E: The repository 'http://deb.example InRelease' is not signed.
"""
GPGV = """W: GPG error: http://deb.example InRelease: The following signatures couldn't be verified because the public \
key is not available: NO_PUBKEY A4B469963BF863CC
E: The repository 'http://deb.example InRelease' is not signed.
"""


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (f"{WAITED}\n{LOCKED}\n", f"{WAITED} · {LOCKED}"),
        (f"{WAITED}\nReading package lists...\n{MISSING}\n", MISSING),
        ("one\ntwo\n\n", "two"),
        ("", ""),
    ],
    ids=["the lock's holder is named", "a lock that was got is forgotten", "the last line", "silence"],
)
def test_last_words(output: str, words: str) -> None:
    assert error_summary(output) == words


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (ZYPPER, "nothing provides 'dkms'"),
        (ZYPPER_LOCK, "pid 243 (zypper)"),
        (DNF5, "Problem: conflicting requests - nothing provides dkms needed"),
        (
            DPKG,
            "(--unpack): unable to clean up mess surrounding './etc/foo.conf' before installing another version: Read",
        ),
        (DPKG_TWICE, "unable to create '/usr/share/foo/x.dpkg-new'"),
        (
            POSTINST,
            "foo: no room for the cache; dpkg: error processing package foo (--configure): installed foo package",
        ),
        (SQV, "because: SHA1 is not considered secure since 2026-02-01T00:00:00Z · E: The repository"),
        (SQV, "is not bound: No binding signature"),
        (GPGV, "NO_PUBKEY A4B469963BF863CC · E: The repository"),
        (PACMAN, "unknown trust"),
    ],
    ids=[
        "zypper's problem, not its question",
        "zypper's lock and its holder",
        "dnf5's problem, not its advice",
        "why dpkg cannot unpack",
        "why dpkg cannot unpack, and clean up",
        "what a package's own script said",
        "why sqv refuses a signature",
        "sqv's words without gaps",
        "why gpgv refuses a signature",
        "pacman",
    ],
)
def test_the_tools_own_reason_is_found(output: str, said: str) -> None:
    assert said in error_summary(output)
    assert "(c): c" not in error_summary(output)
    assert "dpkg returned an error code" not in error_summary(output)


def test_why_dpkg_failed_is_kept_however_many_packages_did() -> None:
    """It closes with a list of them all, longer than what is kept of an output."""
    archives = [f"/var/cache/apt/archives/lib{number}.deb" for number in range(30)]
    each = "".join(
        f"dpkg: error processing archive {path} (--unpack):\n unable to create: No space left\n" for path in archives
    )
    listed = "".join(f" {path}\n" for path in archives)
    kept = tail(f"{each}Errors were encountered while processing:\n{listed}{DPKG.splitlines()[-1]}\n")
    assert len(kept.splitlines()) == 20
    assert "lib29.deb (--unpack): unable to create: No space left" in error_summary(kept)


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        (error_summary(DPKG), "mount the file system of /etc/foo.conf read-write (findmnt -T /etc/foo.conf"),
        (error_summary(DPKG_TWICE), "mount the file system of /usr/share/foo/x read-write"),
        ("cannot write /etc/docker/daemon.json: Read-only file system", "the file system of /etc/docker/daemon.json"),
        ("touch: cannot touch '/srv/$(id)': Read-only file system", "findmnt -T '/srv/$(id)'"),
        ("Read-only file system", "mount it read-write"),
        ("write error: No space left on device", "free some space"),
        ("E: Unable to locate package nvidia-open", ""),
    ],
    ids=["dpkg", "dpkg, twice", "gpunode's own", "a name is quoted", "no name", "full", "something else"],
)
def test_advice_names_the_file_system(text: str, advice: str) -> None:
    assert advice in advice_on(text)
    assert bool(advice) == bool(advice_on(text))
