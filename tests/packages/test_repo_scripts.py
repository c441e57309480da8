"""The scripts of gpunode/shell/packages under a real sh, with package managers that answer as the real ones did."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from gpunode.model.action import Run
from gpunode.packages import scripts
from gpunode.packages.base import Wanted
from gpunode.packages.registry import BACKENDS

WRITTEN = "# Written by gpunode: one set of one version, upgraded together (gpunode setup)\n"
DRIVER = ("*nvidia*", "libcuda*", "cuda-drivers*")
DNF5 = """Package                  Arch   Version       Repository        Size
Removing dependent packages:
 kmod-nvidia-open-dkms   x86_64 3:595.91.07-1 gpunode-cuda  80.0   B
 nvidia-open             x86_64 3:595.91.07-1 gpunode-cuda   0.0   B
Installing:
 cuda-drivers            x86_64 3:595.91.07-1 gpunode-cuda   0.0   B
Downgrading:
 libnvidia-ml            x86_64 3:595.58.03-1 gpunode-cuda 433.0   B
   replacing libnvidia-ml x86_64 3:595.91.07-1 gpunode-cuda 433.0   B

Transaction Summary:
 Installing:         1 packages
"""
DNF4 = """Dependencies resolved.
================================================================================
 Package                        Arch    Version             Repository     Size
================================================================================
Installing:
 nvidia-container-toolkit       x86_64  1.20.0-1            gpunode-ctk   1.2 k
Installing dependencies:
 nvidia-container-toolkit-base-with-a-long-name
                                x86_64  1.20.0-1            gpunode-ctk   9.0 k
Removing:
 docker-ce                      x86_64  3:28.5.2-1.el9      @docker       100 M

Transaction Summary
================================================================================
Install  2 Packages
Operation aborted.
"""
ZYPPER = """<?xml version='1.0'?>
<stream>
<install-summary download-size="56772" space-usage-diff="1">
<to-upgrade>
<solvable type="package" name="nvidia-compute-G06" edition="580.178.04-1" arch="x86_64" edition-old="580.95.05-1"/>
</to-upgrade>
<to-install>
<solvable type="package" name="nvidia-persistenced" edition="580.178.04-1" arch="x86_64"/>
</to-install>
</install-summary>
</stream>
"""
# What apt-get 2.6 printed for `-q --print-uris install -y nginx` (bookworm), and a file of a local repository.
APT_URIS = """Need to get 648 kB of archives.
'http://deb.debian.org/debian-security/pool/updates/main/n/nginx/nginx-common_1.22.1-9%2bdeb12u11_all.deb' \
nginx-common_1.22.1-9+deb12u11_all.deb 115544
'http://deb.debian.org/debian-security/pool/updates/main/n/nginx/nginx_1.22.1-9%2bdeb12u11_amd64.deb' \
nginx_1.22.1-9+deb12u11_amd64.deb 532468 SHA256:0
'file:/srv/nvidia/nvidia-open.deb' nvidia-open.deb 99 SHA256:0
"""
APT = """Inst nvidia-open [580.178.04-1] (595.91.07-1 NVIDIA:1.0 [amd64])
Inst nvidia-driver-cuda (595.91.07-1 NVIDIA:1.0 [amd64])
Remv nvidia-kernel-dkms [580.178.04-1]
Conf nvidia-open (595.91.07-1 NVIDIA:1.0 [amd64])
"""
PACMAN = "warning: something\ninstall nvidia-utils 595.91.07-1 4000000000\ninstall nvidia-open-dkms 595.91.07-1 5\n"


def tool(directory: Path, name: str, body: str) -> None:
    (directory / name).write_text(f"#!/bin/sh\n{body}")
    (directory / name).chmod(0o755)


def perform(run: Run, tools: Path) -> subprocess.CompletedProcess[str]:
    env = {"PATH": f"{tools}:{os.environ['PATH']}", **dict(run.env)}
    return subprocess.run(run.argv, input=run.stdin, text=True, capture_output=True, check=False, env=env, timeout=300)


@pytest.mark.parametrize(
    ("name", "binary", "says", "code", "answer"),
    [
        (
            "dnf5",
            "dnf",
            DNF5,
            1,
            "remove kmod-nvidia-open-dkms 3:595.91.07-1\nremove nvidia-open 3:595.91.07-1\n"
            "install cuda-drivers 3:595.91.07-1\ndowngrade libnvidia-ml 3:595.58.03-1\n",
        ),
        (
            "zypper",
            "zypper",
            ZYPPER,
            0,
            "download 56772\nupgrade nvidia-compute-G06 580.178.04-1\ninstall nvidia-persistenced 580.178.04-1\n",
        ),
        (
            "apt",
            "apt-get",
            APT,
            0,
            "upgrade nvidia-open 595.91.07-1\ninstall nvidia-driver-cuda 595.91.07-1\n"
            "remove nvidia-kernel-dkms 580.178.04-1\n",
        ),
        (
            "pacman",
            "pacman",
            PACMAN,
            0,
            "install nvidia-utils 595.91.07-1\ninstall nvidia-open-dkms 595.91.07-1\ndownload 4000000005\n",
        ),
    ],
    ids=["dnf5", "zypper", "apt", "pacman"],
)
def test_the_resolvers_answer_is_read(
    tmp_path: Path, name: str, binary: str, says: str, code: int, answer: str
) -> None:
    tool(tmp_path, binary, f"cat <<'E'\n{says}E\nexit {code}\n")
    done = perform(BACKENDS[name].simulate([Wanted("nvidia-open")], DRIVER), tmp_path)
    assert (done.returncode, done.stdout) == (0, answer), done.stderr


@pytest.mark.parametrize(
    ("name", "says", "size"),
    [
        ("dnf", "Transaction Summary\nTotal download size: 1.8 M\nInstalled size: 4.3 M\n", 1887437),
        ("tdnf", "Total installed size:   9.00M\nTotal download size: 400.50k\nTransaction Summary\n", 410112),
        (
            "dnf5",
            "Transaction Summary:\nTotal size of inbound packages is 2 GiB. Need to download 1 GiB.\n"
            "After this operation, 5 GiB extra will be used (install 5 GiB, remove 6 MiB).\n",
            1 << 30,
        ),
        ("dnf5", "Transaction Summary:\nTotal size of inbound packages is 28 KiB. Need to download 0 B.\n", 0),
    ],
    ids=["dnf 4", "tdnf", "dnf5", "all is downloaded already"],
)
def test_what_is_still_to_be_fetched_is_read_from_the_summary(tmp_path: Path, name: str, says: str, size: int) -> None:
    tool(tmp_path, name.replace("5", ""), f"cat <<'E'\n{says}E\nexit 1\n")
    done = perform(BACKENDS[name].simulate([Wanted("nvidia-open")], DRIVER), tmp_path)
    assert (done.returncode, done.stdout) == (0, f"download {size}\n"), done.stderr


@pytest.mark.parametrize(
    ("uris", "size"), [(APT_URIS, "download 648012\n"), ("", "")], ids=["two from a mirror", "all is downloaded"]
)
def test_apt_is_asked_for_sizes_in_a_second_question(tmp_path: Path, uris: str, size: str) -> None:
    simulated = "echo 'Inst nginx (1.22 Debian [amd64])'"
    tool(tmp_path, "apt-get", f"case $* in *--print-uris*) cat <<'E'\n{uris}E\n;; *) {simulated} ;; esac\n")
    done = perform(BACKENDS["apt"].simulate([Wanted("nginx")], DRIVER), tmp_path)
    assert (done.returncode, done.stdout) == (0, f"install nginx 1.22\n{size}"), done.stderr


def test_a_resolver_that_takes_away_what_is_not_ours_is_stopped(tmp_path: Path) -> None:
    tool(tmp_path, "dnf", f"cat <<'E'\n{DNF4}E\nexit 1\n")
    done = perform(BACKENDS["dnf"].simulate([Wanted("nvidia-container-toolkit")], DRIVER), tmp_path)
    assert done.returncode == 65
    assert "docker-ce" in done.stderr
    assert "install nvidia-container-toolkit-base-with-a-long-name 1.20.0-1" in done.stdout


def test_a_file_that_is_called_like_a_package_changes_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs in the login's directory, where a downloaded package or installer may lie."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "nvidia-driver-local-repo.deb").touch()
    monkeypatch.chdir(home)
    tool(tmp_path, "apt-get", f"cat <<'E'\n{APT}E\n")
    done = perform(BACKENDS["apt"].simulate([Wanted("nvidia-open")], DRIVER), tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("name", "binary", "says"),
    [("dnf", "dnf", "Error: Unable to find a match: nvidia-open"), ("zypper", "zypper", "No provider of 'x' found.")],
)
def test_a_resolver_that_finds_no_way_says_so_itself(tmp_path: Path, name: str, binary: str, says: str) -> None:
    tool(tmp_path, binary, f'echo "{says}"\nexit 1\n')
    done = perform(BACKENDS[name].simulate([Wanted("nvidia-open")], DRIVER), tmp_path)
    assert done.returncode == 1
    assert says in done.stderr


LISTINGS = {
    "rpm": ("dnf", "rpm", 'echo "{0}" | tr , "\\n"'),
    "pacman": ("pacman", "pacman", 'echo "{0}" | tr , "\\n"'),
    "dpkg": ("apt", "dpkg-query", 'echo "{0}" | tr , "\\n" | sed "s/^/installed /"'),
}


@pytest.mark.parametrize(
    ("listing", "lead", "installed", "code", "said"),
    [
        ("rpm", "nvidia-open", "nvidia-open 595.91.07,libcuda1 595.91.07", 0, "595.91.07: libcuda1 nvidia-open"),
        ("rpm", "nvidia-open", "nvidia-open 595.91.07,libcuda1 595.58.03", 65, "libcuda1 595.58.03"),
        ("rpm", "nvidia-open", "libcuda1 595.58.03", 65, "nvidia-open is not installed"),
        (
            "rpm",
            "nvidia-compute-utils-G06",
            "nvidia-compute-utils-G06 580.178.04,nvidia-open-driver-G06-kmp 580.178.04_k6.4.0_150600.21",
            0,
            "580.178.04: nvidia-compute-utils-G06 nvidia-open-driver-G06-kmp",
        ),
        ("rpm", "nvidia-open", "nvidia-open 595.91.07,nvidia-container-toolkit 1.20.0", 0, "595.91.07: nvidia-open"),
        (
            "pacman",
            "nvidia-utils",
            "nvidia-utils 595.91.07-1,nvidia-open-dkms 595.91.07-2,linux 6.18-1",
            0,
            "595.91.07: nvidia-open-dkms nvidia-utils",
        ),
        ("pacman", "nvidia-utils", "nvidia-utils 595.91.07-1,nvidia-open-dkms 595.58.03-1", 65, "595.58.03"),
        ("dpkg", "nvidia-open", "nvidia-open 595.91.07,libcuda1 595.91.07", 0, "595.91.07: libcuda1 nvidia-open"),
        (
            "dpkg",
            "nvidia-open",
            "nvidia-open 595.91.07,nvidia-settings 510.47.03",
            0,
            "595.91.07: nvidia-open\nnot at that version, and not pinned: nvidia-settings 510.47.03",
        ),
        ("rpm", "nvidia-open", "nvidia-open 595.91.07,nvidia-settings 595.91.07", 0, "nvidia-open nvidia-settings\n"),
    ],
    ids=[
        "one version",
        "a library that stayed behind",
        "no driver at all",
        "SUSE's module carries the kernel's version too",
        "the toolkit is another set",
        "pacman's releases may differ",
        "pacman, a half upgrade",
        "dpkg",
        "a distribution's nvidia-settings has its own version",
        "the same repository's is one of the set",
    ],
)
def test_the_set_is_one_version(tmp_path: Path, listing: str, lead: str, installed: str, code: int, said: str) -> None:
    name, binary, body = LISTINGS[listing]
    tool(tmp_path, binary, body.format(installed))
    done = perform(BACKENDS[name].same_version(lead, DRIVER, hold=False), tmp_path)
    assert done.returncode == code, done.stderr
    assert said in done.stdout + done.stderr


def test_an_older_lock_is_replaced(tmp_path: Path) -> None:
    tool(tmp_path, "rpm", 'echo "nvidia-open 595.91.07"')
    tool(tmp_path, "dnf", f'echo "$@" >>{tmp_path}/told\n')
    assert perform(BACKENDS["dnf"].same_version("nvidia-open", DRIVER, hold=True), tmp_path).returncode == 0
    told = (tmp_path / "told").read_text().splitlines()
    assert told == ["-q -y versionlock delete nvidia-open", "-y versionlock add nvidia-open"]


def test_a_signature_is_not_waited_for(tmp_path: Path) -> None:
    # The command's watch looks each second; it never waits longer.
    tool(tmp_path, "sleep", f'[ "$1" != 1 ] || exec /bin/sleep 1\necho slept >>{tmp_path}/naps\n')
    tool(tmp_path, "apt-get", 'echo "E: The repository is not signed: NO_PUBKEY 1234"\nexit 100\n')
    assert perform(BACKENDS["apt"].refresh([]), tmp_path).returncode == 100
    assert not (tmp_path / "naps").exists()
    tool(
        tmp_path,
        "apt-get",
        'echo "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 1 (x)"\nexit 100\n',
    )
    assert perform(BACKENDS["apt"].refresh([]), tmp_path).returncode == 100
    assert (tmp_path / "naps").read_text().count("slept") == 3


LOCKED = "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 1 (apt-get)"


@pytest.mark.parametrize(("free_after", "done"), [(2, True), (99, False)], ids=["apt-daily ends", "it does not"])
def test_every_index_is_waited_for_while_another_apt_fetches_them(free_after: int, done: bool, tmp_path: Path) -> None:
    """That a mirror cannot be reached is left to the install that needs it; that nothing was asked is not."""
    tool(tmp_path, "sleep", '[ "$1" != 1 ] || exec /bin/sleep 1\nexit 0\n')
    count = f"n=$(cat {tmp_path}/n 2>/dev/null || echo 0); n=$((n + 1)); echo $n >{tmp_path}/n"
    tool(tmp_path, "apt-get", f'{count}\n[ $n -le {free_after} ] || exit 0\necho "{LOCKED}"\nexit 100\n')
    run = BACKENDS["apt"].refresh_all()
    code = perform(run, tmp_path).returncode
    assert (code in run.ok_codes, (tmp_path / "n").read_text()) == (done, "3\n" if done else "6\n")


def test_an_index_that_cannot_be_fetched_is_left_to_the_install(tmp_path: Path) -> None:
    tool(tmp_path, "sleep", f'[ "$1" != 1 ] || exec /bin/sleep 1\necho slept >>{tmp_path}/naps\n')
    tool(tmp_path, "apt-get", 'echo "E: Failed to fetch http://m/InRelease  Could not connect"\nexit 100\n')
    run = BACKENDS["apt"].refresh_all()
    assert perform(run, tmp_path).returncode in run.ok_codes
    assert not (tmp_path / "naps").exists()


def test_what_never_got_in_is_not_taken_away(tmp_path: Path) -> None:
    """A roll-back names all that the step would have installed."""
    tool(tmp_path, "rpm", 'case $1 in -E) ;; *) echo "package nvidia-open is not installed"; exit 1 ;; esac\n')
    tool(tmp_path, "dnf", 'case "$*" in *remove*) exit 1 ;; esac\n')
    assert perform(BACKENDS["dnf"].remove(["nvidia-open"]), tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("words", "tries", "code"),
    [
        ("Status code: 404 for https://mirror/x.rpm", 3, 0),
        ("E: Failed to fetch http://m/x.deb  Hash Sum mismatch", 3, 0),
        ("Public key for x.rpm is not installed", 1, 1),
    ],
    ids=["dnf's mirror lags", "apt's mirror lags", "another key's signature is no better later"],
)
def test_a_lagging_mirror_is_tried_again(tmp_path: Path, words: str, tries: int, code: int) -> None:
    tool(tmp_path, "sleep", "exit 0\n")
    count = f"n=$(cat {tmp_path}/n 2>/dev/null || echo 0); n=$((n + 1)); echo $n >{tmp_path}/n"
    body = f'case "$*" in *makecache*) exit 0 ;; esac\n{count}\n[ $n -lt 3 ] || exit 0\necho "{words}"\nexit 1\n'
    tool(tmp_path, "dnf", body)
    done = perform(BACKENDS["dnf"].fetch([Wanted("nvidia-open")]), tmp_path)
    assert (done.returncode, (tmp_path / "n").read_text()) == (code, f"{tries}\n"), done.stdout


@pytest.mark.parametrize(
    ("how", "held", "left", "included"),
    [
        ({}, "a\nb\n", "b\n", "[other]\n[options]\nHoldPkg = x\n"),
        (
            {"key": "Ignore", "section": "options"},
            f"{WRITTEN}Ignore = a b\n",
            f"{WRITTEN}Ignore = b\n",
            "[other]\n[options]\nInclude = FILE\nHoldPkg = x\n",
        ),
    ],
    ids=["a name a line", "one line, included by the manager's own file"],
)
def test_a_manager_says_how_its_file_of_holds_is_written(
    how: dict[str, str], held: str, left: str, included: str, tmp_path: Path
) -> None:
    file, conf = tmp_path / "directory" / "held", tmp_path / "zug.conf"
    conf.write_text("[other]\n[options]\nHoldPkg = x\n")
    script = scripts.hold_file(str(file), includer=str(conf) if how else "", **how)
    for verb, names, text in (("hold", "ba", held), ("hold", "a", held), ("unhold", "a", left)):
        subprocess.run(("sh", "-s", "--", verb, *names), input=script, text=True, check=True)
        assert file.read_text() == text
    assert conf.read_text() == included.replace("FILE", str(file))
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} == {"held", "zug.conf"}


@pytest.mark.parametrize(
    ("says", "code", "ok", "ends", "times"),
    [
        ("zug: done, but restart", 4, (0, 4), 0, 1),
        ("zug: done, but restart", 4, (0,), 4, 1),
        ("zug: another zug is at work", 1, (0, 4), 1, 4),
    ],
    ids=["its own code for done", "the same code of another manager", "its own word for a lock: again, to the end"],
)
def test_a_manager_says_what_may_pass_and_what_is_done(
    says: str, code: int, ok: tuple[int, ...], ends: int, times: int, tmp_path: Path
) -> None:
    told = tmp_path / "told"
    run = scripts.refresh(
        ("sh", "-c", f"echo x >>{told}; echo '{says}'; exit {code}"), "zug update", (), busy="at work", ok_codes=ok
    )
    argv = [word if word != "5 15 30" else "0 0 0" for word in run.argv]
    assert subprocess.run(argv, input=run.stdin, text=True, capture_output=True, check=False).returncode == ends
    assert told.read_text() == "x\n" * times
