"""Where a setting was said, however the file spells it."""

from __future__ import annotations

import pytest

from gpunode.engines.provenance import Origin
from gpunode.engines.registry import engine
from tests.engines.hosts import PATHS, engine_facts, host_with

V2, V3 = "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime"
ROOT, DROP_IN = PATHS["containerd"], "/etc/containerd/conf.d/99-nvidia.toml"


def of(name: str, version: str, files: dict[str, str | None], **observed: object) -> dict[str, Origin]:
    facts = engine_facts(name, version, **observed)
    return {one.setting: one for one in engine(name).origins(host_with(facts, files=files), facts)}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"version = 2\n\n[plugins.'{V2}'.containerd]\n  # ours\n  default_runtime_name = 'nvidia'\n", 5),
        (f"version = 2\n[plugins]\n[plugins.\"{V2}\"]\ncontainerd.default_runtime_name = 'nvidia'\n", 4),
        (f"version = 2\nplugins.'{V2}' = {{ containerd = {{ default_runtime_name = 'nvidia' }} }}\n", 2),
        (f"version = 2\nx = [\n 1,\n]\n[plugins.'{V2}'.containerd]\ny = '''\ndefault_runtime_name = 1\n'''\n"
         "default_runtime_name = 'nvidia'\nz = 1", 9),
        (f"version = 2\r\n[plugins.'{V2}'.containerd]\r\ndefault_runtime_name = 'nvidia'", 3),
    ],
    ids=["a table", "a dotted key", "inline tables", "after texts of several lines", "CRLF, no last newline"],
)  # fmt: skip
def test_the_line_of_a_toml_setting(text: str, line: int) -> None:
    found = of("containerd", "1.7.24", {ROOT: text})["default runtime"]
    assert (found.value, found.where) == ("nvidia", f"{ROOT}:{line}")


def test_on_2_x_the_last_file_takes_precedence_key_by_key() -> None:
    main = f"version = 3\nimports = ['{DROP_IN}']\n[plugins.'{V3}'.containerd]\ndefault_runtime_name = 'runc'\n"
    main += f"[plugins.'{V3}'.containerd.runtimes.kata]\n"
    drop_in = f"version = 3\n[plugins.'{V3}'.containerd]\ndefault_runtime_name = 'nvidia'\n"
    found = of("containerd", "2.1.9", {ROOT: main, DROP_IN: drop_in}, imports=(DROP_IN,))
    assert found["default runtime"].where == f"{DROP_IN}:3"
    assert found["handler kata"].where == f"{ROOT}:5"
    assert found["handler runc"].where == "the daemon's own default"


def test_on_1_x_an_imported_section_hides_the_main_files() -> None:
    main = f"version = 2\nimports = ['{DROP_IN}']\n[plugins.'{V2}'.containerd]\ndefault_runtime_name = 'nvidia'\n"
    drop_in = f"version = 2\n[plugins.'{V2}']\nsandbox_image = 'pause'\n"
    found = of("containerd", "1.7.24", {ROOT: main, DROP_IN: drop_in}, imports=(DROP_IN,))
    assert found["default runtime"] == Origin("default runtime", "runc", "built in")


def test_dockers_settings_come_from_file_flag_or_itself() -> None:
    text = '{\n  "runtimes": {\n    "nvidia": {"path": "/n"}\n  },\n  "features": {\n    "cdi": true\n  }\n}\n'
    flags = ("--default-runtime", "crun", "--add-runtime=crun=/usr/bin/crun", "-H", "fd://")
    found = of("docker", "28.5.2", {PATHS["docker"]: text}, flags=flags)
    assert (found["default runtime"].value, found["default runtime"].where) == ("crun", "a flag of the daemon")
    assert (found["handler nvidia"].value, found["handler nvidia"].where) == ("/n", f"{PATHS['docker']}:3")
    assert (found["handler crun"].value, found["handler crun"].source) == ("/usr/bin/crun", "flag")
    assert (found["CDI"].value, found["CDI"].line) == ("true", 6)
    assert found["handler runc"].source == "built in"


@pytest.mark.parametrize("text", ["{", "[]", '{"runtimes": 3, "default-runtime": 1}', None])
def test_a_file_without_settings_is_no_origin(text: str | None) -> None:
    assert of("docker", "28.5.2", {PATHS["docker"]: text})["default runtime"].source == "built in"


def test_other_engines_have_their_own_keys() -> None:
    crio = "[crio.runtime]\ndefault_runtime = 'crun'\n[crio.runtime.runtimes.crun]\nruntime_path = '/usr/bin/crun'\n"
    facts = engine_facts("containerd", "1.30.0")
    from dataclasses import replace

    crio_facts = replace(facts, name="crio", config_path="/etc/crio/crio.conf")
    found = {
        o.setting: o
        for o in engine("crio").origins(host_with(crio_facts, files={"/etc/crio/crio.conf": crio}), crio_facts)
    }
    assert found["default runtime"].where == "/etc/crio/crio.conf:2"
    assert (found["handler crun"].value, found["handler crun"].line) == ("/usr/bin/crun", 3)
    path = "/etc/rancher/k3s/config.yaml"
    k3s = replace(facts, name="k3s", config_path="/x", imports=(path,))
    files: dict[str, str | None] = {path: "token: x\ndefault-runtime: nvidia  # ours\n"}
    assert engine("k3s").origins(host_with(k3s, files=files), k3s)[0].where == f"{path}:2"
