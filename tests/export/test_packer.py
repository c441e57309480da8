"""What Packer uploads is believed by its hash alone, and a build's exit status is setup's: a real shell and python3."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

from gpunode.export import packer
from gpunode.export.files import ZIPAPP
from gpunode.export.packer import packer_shell
from gpunode.export.scripts import NO_CHOICES

from .requests import SPEC, request

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the script is for root")
ENDS = b"import os, sys\nprint('ran', *sys.argv[1:])\nprint(open(sys.argv[4]).read(), end='')\nsys.exit(%d)\n"


class Build:
    """The uploaded files and the script, all in a directory of the test's own in /tmp's and /var/lib's place."""

    def __init__(self, place: Path, monkeypatch: pytest.MonkeyPatch, *, code: int = 0, spec: str = SPEC) -> None:
        self.state, self.zipapp, self.spec = place / "state", place / ZIPAPP, place / "gpunode-spec.yaml"
        for name, value in (("STATE", self.state), ("UPLOADED", self.zipapp), ("UPLOADED_SPEC", self.spec)):
            monkeypatch.setattr(packer, name, str(value))
        made = packer_shell(request(ENDS % code, "--allow-no-gpu", spec=spec, path=str(self.zipapp)))
        self.files = {one.name: one for one in made}
        self.upload()

    def upload(self) -> None:
        self.zipapp.write_bytes(self.files[ZIPAPP].data)
        self.spec.write_bytes(self.files["spec.yaml"].data)

    def run(self) -> subprocess.CompletedProcess[str]:
        script = self.files["provision.sh"].data.decode()
        return subprocess.run(("dash", "-c", script), capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("spec", [SPEC, ""])
def test_setup_runs_by_the_spec_and_nothing_uploaded_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: str
) -> None:
    build = Build(tmp_path, monkeypatch, spec=spec)
    done = build.run()
    words = f"ran setup --yes --spec {build.state}/spec.yaml --allow-no-gpu\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, words + (spec or NO_CHOICES), "")
    assert [path.name for path in tmp_path.iterdir()] == ["state"]
    assert {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in (build.state, *build.state.iterdir())} == {0}
    assert build.run().returncode == 0, "both are kept, for the same script once more"


@pytest.mark.parametrize("code", [1, 2, 4, 5, 7, 8])
def test_a_failed_setup_fails_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    build = Build(tmp_path, monkeypatch, code=code)
    assert build.run().returncode == code
    assert build.zipapp.exists()


def test_what_is_left_for_a_boot_is_said_and_fails_no_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = Build(tmp_path, monkeypatch, code=6).run()
    assert done.returncode == 0
    assert "exit code 6" in done.stderr
    assert "first boot of the image" in done.stderr


def other_bytes(path: Path) -> None:
    path.write_bytes(b"import os; os.system('touch pwned')\n")


def longer(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\n")


def gone(path: Path) -> None:
    path.unlink()


def a_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize("changed", [other_bytes, longer, gone, a_fifo])
@pytest.mark.parametrize("which", ["zipapp", "spec"])
def test_other_bytes_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: object, which: str) -> None:
    build = Build(tmp_path, monkeypatch)
    changed(getattr(build, which))  # type: ignore[operator]
    done = build.run()
    assert (done.returncode, done.stdout) == (1, "")
    assert "nothing was" in done.stderr
    assert not (build.state / "spec.yaml").exists()
    assert [path.name for path in build.state.iterdir() if path.name.startswith("new.")] == []


def test_a_kept_spec_that_was_changed_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build = Build(tmp_path, monkeypatch)
    assert build.run().returncode == 0
    (build.state / "spec.yaml").write_text("driver: none\n")
    build.upload()
    assert SPEC in build.run().stdout


def test_the_provisioners_name_the_files_of_the_export() -> None:
    files = {one.name: one.data.decode() for one in packer_shell(request(path=packer.UPLOADED))}
    assert list(files) == [ZIPAPP, "spec.yaml", "provision.sh", "gpunode.hcl"]
    for name in (ZIPAPP, "spec.yaml", "provision.sh"):
        assert f'"${{path.root}}/gpunode/{name}"' in files["gpunode.hcl"]
    for name in (packer.UPLOADED, packer.UPLOADED_SPEC):
        assert f'= "{name}"' in files["gpunode.hcl"]
        assert f"={name}\n" in files["provision.sh"]


def test_gpunode_is_what_packer_uploads() -> None:
    with pytest.raises(ValueError, match="Packer uploads"):
        packer_shell(request())
