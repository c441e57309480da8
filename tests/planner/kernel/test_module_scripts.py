"""The scripts around packages that build a module, with a real shell: why it did not build, and whose version leads."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from gpunode import resources

# The lines that matter of what DKMS 3.0 and 3.2 kept of two builds that failed.
LOGS = {
    "3.0": "DKMS make.log for nvidia-current-open-535.261.03 for kernel 6.1.0-56-amd64 (x86_64)",
    "3.2": "DKMS (dkms-3.2.2) make.log for nvidia-current-open/550.163.01 for kernel 6.12.117+deb13-amd64 (x86_64)",
}
COMPILER = (
    "cc -Werror=date-time -c -o nv-pci.o nv-pci.c\n"
    "/var/lib/dkms/nvidia-current-open/535.261.03/build/nvidia/nv-pci.c:223:9: error: too few arguments to function "
    "‘pci_resize_resource’\n"
    "make[3]: *** [nv-pci.o] Error 1\n"
)


def shell(text: str, *words: str, tools: Path | None = None) -> subprocess.CompletedProcess[str]:
    path = f"{tools}:{os.environ['PATH']}" if tools else os.environ["PATH"]
    return subprocess.run(
        ("sh", "-s", "--", *words), input=text, env={**os.environ, "PATH": path}, capture_output=True, text=True
    )


def say_why(tmp_path: Path, command: str, after: str = 'say_why "$@"') -> subprocess.CompletedProcess[str]:
    """`command` runs beside a DKMS whose files are below tmp_path/dkms."""
    text = resources.script("kernel/explain_build")
    text = text.replace("find /var/lib/dkms", f"find {tmp_path}/dkms").replace("/var/lib/gpunode", f"{tmp_path}/state")
    return shell(f"{text}\n{after}\n", "sh", "-c", command)


def build(tmp_path: Path, log: str) -> Path:
    """Where a build that fails leaves its log; the command under test writes it."""
    source = tmp_path / "make.log"
    source.write_text(log)
    directory = tmp_path / "dkms/nvidia-current-open/535.261.03/build"
    directory.mkdir(parents=True)
    return directory


@pytest.mark.parametrize(
    ("version", "told"),
    [
        ("3.0", "Error: nvidia-current-open-535.261.03 does not build for 6.1.0-56-amd64"),
        ("3.2", "Error: nvidia-current-open/550.163.01 does not build for 6.12.117+deb13-amd64"),
    ],
    ids=["DKMS 3.0", "DKMS 3.2"],
)
def test_a_build_that_fails_is_told_in_the_compilers_words(tmp_path: Path, version: str, told: str) -> None:
    directory = build(tmp_path, f"{LOGS[version]}\n{COMPILER}")
    (tmp_path / "state").mkdir()

    done = say_why(tmp_path, f"cp {tmp_path}/make.log {directory}; exit 100")

    assert done.returncode == 65
    assert done.stderr.splitlines() == [
        told,
        "Error: nvidia/nv-pci.c:223:9: error: too few arguments to function ‘pci_resize_resource’",
        f"Error: the whole log of DKMS is in {tmp_path}/state/make.log",
    ]
    assert (tmp_path / "state/make.log").read_text() == f"{LOGS[version]}\n{COMPILER}"


def test_a_build_without_a_compilers_error_is_told_in_makes_words(tmp_path: Path) -> None:
    directory = build(tmp_path, f"{LOGS['3.0']}\nmake: *** No rule to make target 'modules'.  Stop.\n")
    done = say_why(tmp_path, f"cp {tmp_path}/make.log {directory}; exit 100")
    assert done.stderr.splitlines()[1:] == ["Error: make: *** No rule to make target 'modules'.  Stop."]


@pytest.mark.parametrize(
    ("before", "command", "code"),
    [
        ("touch -d '1 hour ago' {log}", "exit 100", 100),
        ("rm -f {log}", "exit 100", 100),
        ("rm -f {log}", "exit 0", 0),
    ],
    ids=["an older build failed", "nothing was built", "all went well"],
)
def test_any_other_end_stays_as_it_was(tmp_path: Path, before: str, command: str, code: int) -> None:
    log = build(tmp_path, "") / "make.log"
    log.write_text(COMPILER)
    subprocess.run(before.format(log=log), shell=True, check=True)
    done = say_why(tmp_path, command)
    assert (done.returncode, done.stderr) == (code, "")


def test_a_script_is_told_of_as_a_command_is(tmp_path: Path) -> None:
    directory = build(tmp_path, f"{LOGS['3.0']}\n{COMPILER}")
    script = f"attempt() {{\ncp {tmp_path}/make.log {directory} && false\n}}\nsay_why attempt"
    assert say_why(tmp_path, "", script).returncode == 65


POLICY = """nvidia-open-kernel-dkms:
  Installed: (none)
  Candidate: {candidate}
  Version table:
     535.261.03-1 500
"""


@pytest.mark.parametrize(
    ("candidate", "pin"),
    [("535.261.03-1", "535.261.03*"), ("2:550.163.01-2+deb13u1", "550.163.01*")],
    ids=["a plain version", "an epoch and a Debian revision"],
)
def test_the_modules_version_is_that_of_the_packages_beside_it(tmp_path: Path, candidate: str, pin: str) -> None:
    done = module_first(tmp_path, candidate)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out/module.conf").read_text() == f'Dir::Etc::preferences "{tmp_path}/out/module.pref";\n'
    wanted = f"Package: nvidia-[!c]* libcuda1\nPin: version {pin}\nPin-Priority: 1001\n"
    assert (tmp_path / "out/module.pref").read_text().startswith(wanted)


def test_a_module_that_no_archive_has_pins_nothing(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/module.conf").write_text("from an earlier run")
    assert module_first(tmp_path, "(none)").returncode == 0
    assert not (tmp_path / "out/module.conf").exists()


def module_first(tmp_path: Path, candidate: str) -> subprocess.CompletedProcess[str]:
    tool = tmp_path / "apt-cache"
    tool.write_text(f"#!/bin/sh\ncat <<'.'\n{POLICY.format(candidate=candidate)}.\n")
    tool.chmod(0o755)
    text = resources.script("packages/apt_module_first")
    names = ("nvidia-[!c]*", "libcuda1")
    return shell(text, "nvidia-open-kernel-dkms", str(tmp_path / "out"), *names, tools=tmp_path)


@pytest.mark.parametrize(
    ("version", "compiler"),
    [("140201", "toolset 14"), ("110500", "default")],
    ids=["a toolset's kernel", "a kernel of the default gcc"],
)
def test_what_dkms_sources_takes_the_kernels_own_toolset(tmp_path: Path, version: str, compiler: str) -> None:
    config = tmp_path / "lib/modules/K/build/include/config/auto.conf"
    enable = tmp_path / "opt/rh/gcc-toolset-14/enable"
    for path, text in ((config, f"CONFIG_X=y\nCONFIG_GCC_VERSION={version}\n"), (enable, 'CHOSEN="toolset 14"\n')):
        path.parent.mkdir(parents=True)
        path.write_text(text, encoding="utf-8")
    sourced = resources.render("dkms/toolset.env.j2").replace('"/lib', f'"{tmp_path}/lib')
    sourced = sourced.replace('"/opt', f'"{tmp_path}/opt')
    script = f'kernelver=K\nCHOSEN=default\n{sourced}printf %s "$CHOSEN"\n'
    said = subprocess.run(["bash", "-eu"], input=script, capture_output=True, text=True, check=True, timeout=20)
    assert said.stdout == compiler
