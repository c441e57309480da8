"""What mkosi copies into an image is used there, by the script that runs in it: a real shell and python3."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from gpunode.export import mkosi as recipe
from gpunode.export.mkosi import COPIED, COPIED_SPEC, mkosi

from .requests import SPEC, request

ENDS = b"import sys\nprint('ran', *sys.argv[1:])\nprint(open(sys.argv[4]).read(), end='')\n"


def test_the_script_reads_what_the_extra_tree_brings() -> None:
    files = {one.name: one for one in mkosi(request(path=COPIED))}
    assert sorted(files) == [
        "mkosi.conf",
        f"mkosi.extra{COPIED_SPEC}",
        f"mkosi.extra{COPIED}",
        "mkosi.postinst.chroot",
    ]
    script = files["mkosi.postinst.chroot"]
    assert script.mode == 0o755, "mkosi runs no script that is not executable"
    for name in (COPIED, COPIED_SPEC):
        assert f"={name}\n" in script.data.decode()
    assert files[f"mkosi.extra{COPIED_SPEC}"].data.decode() == SPEC


def test_the_included_configuration_sets_nothing_but_the_network() -> None:
    conf = next(one for one in mkosi(request(path=COPIED)) if one.name == "mkosi.conf").data.decode()
    assert [line for line in conf.splitlines() if not line.startswith("#")] == ["[Build]", "WithNetwork=yes"]


@pytest.mark.skipif(os.geteuid() != 0, reason="the script is for root")
@pytest.mark.parametrize("changed", [False, True])
def test_setup_runs_by_the_spec_of_the_export_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: bool
) -> None:
    zipapp, spec = tmp_path / "gpunode.pyz", tmp_path / "gpunode-spec.yaml"
    for name, value in (("STATE", tmp_path / "state"), ("COPIED", zipapp), ("COPIED_SPEC", spec)):
        monkeypatch.setattr(recipe, name, str(value))
    files = mkosi(request(ENDS, "--allow-no-gpu", path=str(zipapp)))
    script = next(one for one in files if one.name == "mkosi.postinst.chroot").data.decode()
    zipapp.write_bytes(ENDS)
    spec.write_text(SPEC if not changed else SPEC.replace("580", "595"))
    done = subprocess.run(("dash", "-c", script), capture_output=True, text=True, timeout=120, check=False)
    if changed:
        assert (done.returncode, done.stdout) == (1, "")
        assert "nothing was run" in done.stderr
    else:
        words = f"ran setup --yes --spec {tmp_path}/state/spec.yaml --allow-no-gpu\n"
        assert (done.returncode, done.stdout, done.stderr) == (0, words + SPEC, "")
        assert [path.name for path in tmp_path.iterdir()] == ["state"]


def test_gpunode_is_what_mkosi_copies() -> None:
    with pytest.raises(ValueError, match="mkosi copies"):
        mkosi(request())
