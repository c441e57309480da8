"""User-data: small, and without gpunode's bytes. cloud-init itself reads it in the lab."""

from __future__ import annotations

import pytest
import yaml

from gpunode.export.cloud_init import SCRIPT, SMALLEST_LIMIT_BYTES, STATE, cloud_init

from .requests import SPEC, STAND_IN, request


def user_data(**more: str) -> str:
    return cloud_init(request(STAND_IN, "--reboot", "if-needed", **{"path": "/opt/gpunode.pyz", **more}))[
        0
    ].data.decode()


def test_two_files_are_written_for_root_alone() -> None:
    text = user_data()
    assert text.startswith("#cloud-config\n")
    content = yaml.safe_load(text)
    assert list(content) == ["write_files"]
    found = {one["path"]: one for one in content["write_files"]}
    assert list(found) == [f"{STATE}/spec.yaml", SCRIPT]
    assert found[f"{STATE}/spec.yaml"]["content"] == SPEC
    assert [(one["owner"], one["permissions"]) for one in found.values()] == [
        ("root:root", "0600"),
        ("root:root", "0700"),
    ]
    assert "WORDS='--reboot if-needed'" in found[SCRIPT]["content"]
    assert len(text) < SMALLEST_LIMIT_BYTES


def test_gpunode_lies_next_to_it() -> None:
    files = cloud_init(request(path="/opt/gpunode.pyz"))
    assert [(one.name, one.data == STAND_IN) for one in files] == [("user-data", False), ("gpunode.pyz", True)]


def test_user_data_has_no_room_for_gpunode() -> None:
    with pytest.raises(ValueError, match="no room"):
        cloud_init(request())


def test_another_spec_is_set_up_again_on_the_same_instance() -> None:
    keys = {request(path="/a").key, request(path="/a", spec="").key, request(b"other", path="/a").key}
    assert len(keys) == 3
    assert request(path="/a").key == request(url="https://b.example/g").key, "from where it comes does not matter"


def test_an_address_is_one_quoted_word() -> None:
    text = user_data(path=None, url="https://b.example/g?a=$(touch%20x)'&b=`c`")  # type: ignore[arg-type]
    (script,) = (one["content"] for one in yaml.safe_load(text)["write_files"] if one["path"] == SCRIPT)
    assert """URL='https://b.example/g?a=$(touch%20x)'"'"'&b=`c`'""" in script
