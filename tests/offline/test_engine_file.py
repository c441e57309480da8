"""A containerd file and what it imports, from the disk alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpunode.errors import UsageError
from gpunode.model.spec import RuntimeSpec
from gpunode.offline.engine_file import Disk, Where, plan_one
from tests.engines.test_containerd import V2, V3
from tests.engines.test_containerd_schemas import default, runtime


def test_a_hidden_drop_in_is_read_as_containerd_reads_it(tmp_path: Path) -> None:
    directory = tmp_path / "conf.d"
    directory.mkdir()
    (tmp_path / "config.toml").write_text('version = 2\nimports = ["conf.d/*.toml"]\n')
    (directory / ".site.toml").write_text(f"version = 2\n{default(V2, 'crun')}{runtime(V2, 'crun')}")
    found = plan_one("containerd", Where(f"{tmp_path}/config.toml"), RuntimeSpec())
    assert found.rewrite.main.path == f"{directory}/.site.toml"
    assert "default crun → nvidia" in found.rewrite.added


def test_a_star_takes_whatever_is_in_one_directory(tmp_path: Path) -> None:
    for name in ("a/.x.toml", "a/y.toml", "a/z.conf", ".b/x.toml", "c/d/x.toml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert Disk(str(tmp_path)).named("/*/*.toml") == ["/.b/x.toml", "/a/.x.toml", "/a/y.toml"]
    assert Disk().named(f"{tmp_path}/a/?.[ct]o*") == [f"{tmp_path}/a/y.toml", f"{tmp_path}/a/z.conf"]
    assert Disk(str(tmp_path)).named("/nowhere/*.toml") == []


def test_names_of_another_version_need_the_daemons(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f"version = 2\n{runtime(V3, 'runc', True)}")
    with pytest.raises(UsageError, match="sets runtimes under") as refused:
        plan_one("containerd", Where(str(file)), RuntimeSpec())
    assert "--daemon-version" in refused.value.remedy.text
    found = plan_one("containerd", Where(str(file), daemon="2.1.9"), RuntimeSpec())
    assert "+ handler nvidia (SystemdCgroup = true, copied from runc)" in found.rewrite.added
