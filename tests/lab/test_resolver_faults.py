"""Repositories, disks and locks that fail under real package managers: nothing stays half-way; the next run ends."""

from __future__ import annotations

import re
import shlex
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpunode.packages.base import Repository
from gpunode.packages.registry import BACKENDS

from . import repositories
from .authority import Signer
from .foreign_repositories import EXTRA, TOOLKIT
from .host import Host
from .lab import Lab
from .product_runs import Controller, expect
from .resolver_cases import PACMAN, ZYPPER, Case, apt, dnf, packages, remove
from .shell import sh
from .stubs import pacman, rpm
from .wide import cases

APT_TOOLKIT = f"{repositories.TOOLKIT}/stable/deb/amd64"
DIRECTORIES = {"apt": APT_TOOLKIT, "pacman": EXTRA}  # of the repository that fails; rpm's otherwise
NOT_BELIEVED = r"(?i)sign|key|pgp|gpg"


@dataclass(frozen=True)
class Ground:
    """What a fault is made of."""

    lab: Lab
    host: Host
    case: Case
    me: Controller
    home: Path

    @property
    def directory(self) -> Path:
        return self.lab.web.root / DIRECTORIES.get(self.case.manager, TOOLKIT)

    def sign(self, signer: Signer) -> None:
        if self.case.manager == "apt":
            repositories.sign(self.directory, signer)
        elif self.case.manager == "pacman":
            pacman.sign(self.directory / "extra.db", signer)
        else:
            rpm.sign_index(self.directory, signer)

    def setup(self, *extra: str) -> tuple[str, ...]:
        return ("setup", "--yes", "--only", "toolkit", "--trust-key", self.lab.repo_fingerprint, *extra)

    def heal(self) -> None:
        self.lab.web.faults.clear()
        self.sign(self.lab.trust.debian if self.case.manager == "pacman" else self.lab.trust.vendor)


def another_key(on: Ground) -> None:
    on.sign(on.lab.trust.stranger)


def no_signature(on: Ground) -> None:
    for name in ("InRelease", "Release.gpg", "repodata/repomd.xml.asc", "extra.db.sig"):
        (on.directory / name).unlink(missing_ok=True)


def nothing_there(on: Ground) -> None:
    on.lab.web.faults[DIRECTORIES.get(on.case.manager, TOOLKIT)] = 404


def no_space(on: Ground) -> None:
    on.host.fill("/var/fill")


FAULTS: tuple[tuple[Callable[[Ground], None], str], ...] = (
    (another_key, NOT_BELIEVED),
    (no_signature, NOT_BELIEVED),
    (nothing_there, "404|not found|failed"),
    (no_space, "(?i)space"),
)


@pytest.mark.parametrize(
    "case",
    cases((apt("debian12"), dnf("el9"), dnf("fedora42"), ZYPPER, PACMAN), (dnf("fedora42"),)),
    ids=lambda c: c.manager,
)
def test_a_repository_that_fails(lab: Lab, tmp_path: Path, case: Case) -> None:
    host = lab.host(case.distribution, gpu="h100", tmpfs_root="300M")
    on = Ground(lab, host, case, Controller("ssh", tmp_path / "home"), tmp_path)
    host.nsrun("mkdir -p /etc/pki")
    before = packages(host, case)
    for break_it, words in FAULTS:
        break_it(on)
        failed = expect(on.me.gpunode(host, *on.setup()), 1)
        said = failed.stdout + failed.stderr
        assert re.search(words, said), f"{break_it.__name__}:\n{said}"
        assert packages(host, case) == before, break_it.__name__
        host.nsrun("rm -f /var/fill")
        assert not host.nsrun("ls /etc/apt/sources.list.d/gpunode* /etc/*/repos.d/gpunode* 2>/dev/null").stdout
        on.heal()
    the_mirror_catches_up(on)
    expect(on.me.gpunode(host, *on.setup()), 0)
    remove(host, case)
    the_lock_is_waited_for(on)
    if case.manager != "apt":  # which gives up by itself: tests/packages/test_silent_mirror.py
        the_mirror_is_silent(on)


def the_mirror_catches_up(on: Ground) -> None:
    """The index names packages that the mirror does not have yet."""
    on.lab.web.faults["nvidia-container-toolkit-1." if on.case.manager != "apt" else "nvidia-container-toolkit_1."] = (
        404
    )
    on.lab.web.log.clear()
    threading.Thread(target=publish_late, args=(on.lab,), daemon=True).start()
    expect(on.me.gpunode(on.host, *on.setup()), 0)
    assert any(request.fault == 404 for request in on.lab.web.log)


def publish_late(lab: Lab) -> None:
    """Two seconds after the first client asked in vain; at the latest after a minute."""
    for _ in range(600):
        if any(request.fault == 404 for request in lab.web.log):
            break
        time.sleep(0.1)
    time.sleep(2)
    lab.web.faults.clear()


def the_mirror_is_silent(on: Ground) -> None:
    """It takes connections and sends nothing: a manager that would wait on is ended, and the server named."""
    on.lab.web.faults[DIRECTORIES.get(on.case.manager, TOOLKIT)] = "stall"
    run = BACKENDS[on.case.manager].refresh([Repository("gpunode-container-toolkit", "", "", "")])
    argv = ["" if word == "5 15 30" else word for word in run.argv]  # once
    script = run.stdin.replace("silence_s=45 look_s=5", "silence_s=5 look_s=1")
    done = on.host.run(shlex.join(("env", *map("=".join, run.env), *argv)), input=script)
    assert done.returncode == 75, done.stdout + done.stderr
    assert re.search(r"^E: no data came for \d+ s from \S+.* \(10\.77\.0\.1:(80|443)\)", done.stdout, re.M), done.stdout


LOCKS = {
    "apt": "import fcntl,time; f=open('/var/lib/dpkg/lock-frontend','w'); fcntl.lockf(f,fcntl.LOCK_EX); time.sleep(9)",
    "dnf": "import os,time; open('/var/cache/dnf/metadata_lock.pid','w').write(str(os.getpid())); time.sleep(9);"
    "os.unlink('/var/cache/dnf/metadata_lock.pid')",
    "dnf5": "import fcntl,time; f=open('/var/lib/rpm/.rpm.lock','w'); fcntl.lockf(f,fcntl.LOCK_EX); time.sleep(9)",
    "zypper": "import os,time; f=open('/run/zypp.pid','w'); f.write(str(os.getpid())); f.flush(); time.sleep(9)",
    "pacman": "import os,time; p='/var/lib/pacman/db.lck'; f=open(p,'w'); time.sleep(9); os.unlink(p)",
}


def the_lock_is_waited_for(on: Ground) -> None:
    on.host.nsrun(f'python3 -c "{LOCKS[on.case.manager]}" >/dev/null 2>&1 &')
    expect(on.me.gpunode(on.host, *on.setup()), 0)
    assert on.host.nsrun("pgrep -f 'time.sle[e]p.9'").returncode != 0, "the holder was let come to its end"


def test_a_key_that_has_expired(lab: Lab, tmp_path: Path) -> None:
    """Its fingerprint is the one that was asked for, its time is over: the package manager refuses it."""
    old = expired_signer(tmp_path)
    for case in (apt("debian12"), dnf("el9")):
        host = lab.host(case.distribution)
        on = Ground(lab, host, case, Controller("ssh", tmp_path / case.manager), tmp_path)
        on.sign(old)
        key = lab.web.root / repositories.TOOLKIT / "gpgkey"
        key.unlink()
        key.write_text(old.armored())
        failed = expect(on.me.gpunode(host, *on.setup("--trust-key", old.fingerprint)), 1)
        assert re.search(NOT_BELIEVED, failed.stdout)
        assert packages(host, case) == {}


def expired_signer(home: Path) -> Signer:
    """A key that was good for a month, years ago; what it signed then is what it signs here."""
    directory = home / "expired"
    directory.mkdir(mode=0o700)
    then = "20200101T000000"
    (directory / "gpg.conf").write_text(f"faked-system-time {then}\n")
    uid = "gpunode lab expired <lab@example.invalid>"
    sh("gpg", "--homedir", directory, "--batch", "--passphrase", "", "--quick-gen-key", uid, "rsa3072", "sign", "30d")
    return Signer(directory)


@pytest.mark.parametrize("case", [dnf("el9"), PACMAN], ids=lambda c: c.manager)
def test_a_package_manager_that_is_killed_at_work(lab: Lab, tmp_path: Path, case: Case) -> None:
    """In the middle of a package's script: its lock and half of the set stay behind, and the next setup goes on."""
    host = lab.host(case.distribution, gpu="h100")
    me = Controller("ssh", tmp_path / "home")
    words = ("setup", "--yes", "--only", "driver", "--trust-key", lab.repo_fingerprint)
    host.fault("dkms_slow", "20")
    threading.Thread(target=kill_at_work, args=(host,), daemon=True).start()
    killed = me.gpunode(host, *words)
    assert killed.returncode in (1, 5), killed.stdout + killed.stderr
    host.fault("dkms_slow", False)
    expect(me.gpunode(host, *words), 0)
    assert host.nsrun("nvidia-smi -L").returncode == 0
    assert len({version.split("-")[0] for version in packages(host, case).values()}) == 1
    assert "no changes" in expect(me.gpunode(host, *words), 0).stdout


def kill_at_work(host: Host) -> None:
    for _ in range(1200):
        if host.nsrun("pgrep -f '[d]kms build-and-install'").returncode == 0:
            host.nsrun("systemctl kill -s KILL 'gpunode-*.service'")
            return
        time.sleep(0.1)
