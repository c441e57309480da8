"""check reads an engine's files as setup does, whatever their spelling: neither sees what the other does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.checks import run_all
from gpunode.engines.registry import engine
from gpunode.errors import ConfigFileError
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.files import FileFacts
from gpunode.model.report import CheckOutcome, Finding
from gpunode.model.spec import RuntimeSpec
from tests.checks import hosts as h

V2 = "io.containerd.grpc.v1.cri"
MAIN, DROP_IN = "/etc/containerd/config.toml", "/etc/containerd/conf.d/99-nvidia.toml"
PROGRAM = RuntimeSpec().program
NVIDIA = f"runtime_type = 'io.containerd.runc.v2', options = {{ BinaryName = '{PROGRAM}' }}"
RUNC = "runtime_type = 'io.containerd.runc.v2'"
TABLES = f"""version = 2
[plugins.'{V2}'.containerd]
default_runtime_name = 'nvidia'
[plugins.'{V2}'.containerd.runtimes.runc]
{RUNC}
[plugins.'{V2}'.containerd.runtimes.nvidia]
runtime_type = 'io.containerd.runc.v2'
options.BinaryName = '{PROGRAM}'
"""
INLINE = (
    f"version = 2\n[plugins]\n'{V2}' = {{ containerd = {{ default_runtime_name = 'nvidia', "
    f"runtimes = {{ runc = {{ {RUNC} }}, nvidia = {{ {NVIDIA} }} }} }} }}\n"
)
DOTTED = (
    f"version = 2\nplugins.'{V2}'.containerd.default_runtime_name = 'nvidia'\n"
    f"plugins.'{V2}'.containerd.runtimes.runc.{RUNC}\n"
    f"plugins.'{V2}'.containerd.runtimes.nvidia = {{ {NVIDIA} }}\n"
)
OPTIONS = f"""version = 2
[plugins.'{V2}'.containerd]
default_runtime_name = 'nvidia'
[plugins.'{V2}'.containerd.runtimes]
runc.{RUNC}
nvidia.runtime_type = 'io.containerd.runc.v2'
[plugins.'{V2}'.containerd.runtimes.nvidia.options]
BinaryName = '{PROGRAM}'
"""
HIDDEN = f"version = 2\n[plugins.'{V2}']\nsandbox_image = 'pause'\n"
IN_TEXT = f"version = 2\nx = '''\n[plugins.'{V2}'.containerd.runtimes.nvidia]\n'''\n"
IMPORTS = "imports = ['/etc/containerd/conf.d/*.toml']\n"


def containerd(version: str, files: dict[str, str]) -> tuple[HostFacts, RuntimeFacts]:
    facts = replace(h.CONTAINERD_ENGINE, version=version, imports=tuple(path for path in files if path != MAIN))
    return h.host(runtimes=(facts,), files={path: FileFacts(path, text) for path, text in files.items()}), facts


def verdict(id: str, host: HostFacts) -> CheckOutcome:
    return run_all(host, None, load_catalog()).results[id].outcome


@pytest.mark.parametrize(
    ("version", "files", "right"),
    [
        ("1.7.27", {MAIN: TABLES}, True),
        ("1.7.27", {MAIN: INLINE}, True),
        ("1.7.27", {MAIN: DOTTED}, True),
        ("1.7.27", {MAIN: OPTIONS}, True),
        ("2.1.9", {MAIN: f"version = 2\n{IMPORTS}", DROP_IN: DOTTED}, True),
        ("1.7.27", {MAIN: IMPORTS + TABLES, DROP_IN: HIDDEN}, False),
        ("1.7.27", {MAIN: IN_TEXT}, False),
        ("2.1.9", {MAIN: "version = 2\n", DROP_IN: TABLES}, False),
    ],
    ids=["tables", "inline tables", "dotted keys", "a header for its options alone",
         "an import in dotted keys", "1.x: an imported section hides it",
         "the words in a text", "a file that nobody imports"],
)  # fmt: skip
def test_check_and_setup_see_the_same_handler(version: str, files: dict[str, str], right: bool) -> None:
    host, facts = containerd(version, files)
    assert engine("containerd").rewrite(host, facts, RuntimeSpec(default=False)).changed is not right
    assert (verdict("rt.containerd-file", host) is None) is right


@pytest.mark.parametrize("text", [TABLES, INLINE, DOTTED], ids=["tables", "inline tables", "dotted keys"])
def test_a_default_that_the_daemon_has_not_loaded_yet_is_quoted_in_any_spelling(text: str) -> None:
    host, facts = containerd("1.7.27", {MAIN: text})
    old = replace(host, runtimes=(replace(facts, effective_default="runc"),))
    outcome = verdict("rt.effective-default", old)
    assert isinstance(outcome, Finding)
    assert "the daemon was not restarted" in outcome.summary
    line = next(n for n, one in enumerate(text.splitlines(), 1) if "default_runtime_name" in one)
    assert f"{MAIN}:{line} default_runtime_name = nvidia" in outcome.evidence


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("docker", '{"runtimes": {}, "runtimes": {"nvidia": {"path": "x"}}}', "daemon.json:1:18"),
        ("docker", "[]", "daemon.json:1:1"),
        ("containerd", "version = 2\n[plugins\n", "config.toml:2:"),
        ("containerd", "version = 2\nversion = 2\n[a.runtimes.nvidia]\n", "config.toml:2:"),
    ],
    ids=["docker: a key that stands twice", "docker: no object", "containerd: no TOML", "containerd: a key twice"],
)
def test_what_setup_refuses_is_a_finding_at_the_same_place(name: str, text: str, place: str) -> None:
    host = h.host(files=h.files(**{name: text}))
    facts = host.runtime(name)
    assert facts is not None
    with pytest.raises(ConfigFileError):
        engine(name).rewrite(host, facts, RuntimeSpec())
    outcome = verdict(f"rt.{name}-file", host)
    assert isinstance(outcome, Finding)
    assert place in outcome.evidence


def test_a_runtime_that_dockerd_has_by_a_flag_of_two_words_is_found() -> None:
    host = h.host(files=h.files(docker="{}"))
    flags = ("--add-runtime", f"nvidia={PROGRAM}")
    configured = replace(host, runtimes=(replace(h.DOCKER_ENGINE, flags=flags),))
    assert isinstance(verdict("rt.docker-file", host), Finding)
    assert verdict("rt.docker-file", configured) is None


def test_cri_is_off_however_the_list_is_written() -> None:
    off = 'x = "disabled_plugins"\ndisabled_plugins = [\n  # docker ships it so\n  "cri",\n]\n'
    host, facts = containerd("1.7.27", {MAIN: off})
    outcome = verdict("rt.cri-disabled", replace(host, runtimes=(replace(facts, cri_error="unknown service"),)))
    assert isinstance(outcome, Finding)
    assert f"{MAIN}:2 disabled_plugins has cri" in outcome.evidence


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[nvidia-container-cli]\nno-cgroups = true\n", 2),
        ("nvidia-container-cli.no-cgroups = true\n", 1),
        ("\nnvidia-container-cli = { no-cgroups = true }\n", 2),
        ("[nvidia-container-cli]\n'no-cgroups' = true # rootless\n", 2),
    ],
    ids=["a table", "a dotted key", "an inline table", "a quoted key"],
)
def test_the_toolkits_own_file_is_read_as_toml(text: str, line: int) -> None:
    outcome = verdict("ctk.config", h.host(files=h.files(ctk=text)))
    assert isinstance(outcome, Finding)
    assert outcome.evidence == f"{h.CTK}:{line} no-cgroups = true"


def test_a_key_of_another_table_is_not_the_toolkits() -> None:
    other = "[other]\nmode = 'fast'\nno-cgroups = true\nldconfig = '/sbin/ldconfig'\n"
    host = h.host(files=h.files(ctk=f"[nvidia-container-runtime]\nmode = 'cdi'\n{other}"))
    assert verdict("ctk.config", host) is None
    lost = verdict("ctk.cdi-present", replace(host, toolkit=replace(h.TOOLKIT, cdi_devices=())))
    assert isinstance(lost, Finding)
