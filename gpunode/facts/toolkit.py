"""NVIDIA Container Toolkit and CDI."""

from __future__ import annotations

import re

from gpunode.facts.release import key_values
from gpunode.facts.wire import Sections
from gpunode.foreign import read_json, whole_number
from gpunode.model.facts import CliInfo, ToolkitFacts


def parse_toolkit(sections: Sections) -> ToolkitFacts:
    """`toolkit` lines are NAME=PATH, of low_level several; `ctk_version` is what `nvidia-ctk --version` printed:

    NVIDIA Container Toolkit CLI version 1.18.0
    commit: f8daa5e26de9fd7eb79259040b6dd5a52060048c
    """
    path = key_values(sections.text("toolkit"))
    version = re.search(r"version (\d\S*)", sections.text("ctk_version"))
    specs = tuple(p for p in sections.text("cdi").splitlines() if p in sections.files)
    return ToolkitFacts(
        version=version[1] if version else None,
        runtime_path=path.get("nvidia-container-runtime") or path.get("not-executable"),
        runtime_executable="nvidia-container-runtime" in path,
        hook_path=path.get("nvidia-container-runtime-hook"),
        hook_refused=_refused(sections),
        operator=path.get("operator"),
        cli=_cli_info(sections),
        hook_since=whole_number(path.get("hook_since")),
        low_level=tuple(path["low_level"].split()) if "low_level" in path else None,
        cdi_specs=specs,
        cdi_devices=tuple(device for spec in specs for device in cdi_devices(sections.files[spec].text or "")),
    )


def _refused(sections: Sections) -> str | None:
    """The daemon that logged it last, by the section `hook_log`, which is there for one version of the toolkit."""
    section = sections.commands.get("hook_log")
    return section.text.strip()[:40] if section is not None and section.rc == 0 else None


def _cli_info(sections: Sections) -> CliInfo | None:
    """`nvidia-container-cli info`, or what it says when it fails:

    NVRM version:   595.91.07
    CUDA version:   13.2

    nvidia-container-cli: initialization error: nvml error: driver/library version mismatch
    """
    section = sections.commands.get("cli_info")
    if section is None or section.rc is None:
        return None
    version = re.search(r"^NVRM version: {1,20}([0-9.]{1,40})$", section.text, re.M)
    first = next((line.strip() for line in section.text.splitlines() if line.strip()), "")[:300]
    return CliInfo(section.rc, version[1] if version else None, first if section.rc else "")


def cdi_devices(text: str) -> tuple[str, ...]:
    """Qualified names in a CDI spec, JSON or the YAML that nvidia-ctk writes:

    kind: nvidia.com/gpu
    devices:
    - name: "0"
      containerEdits: ...
    containerEdits: ...
    """
    if text.lstrip().startswith("{"):
        return _json_devices(text)
    kind = re.search(r"^kind:\s*[\"']?([^\"'\s]+)", text, re.MULTILINE)
    listed = re.search(r"^devices:\n((?:[ \-].*\n?)*)", text, re.MULTILINE)
    if kind is None or listed is None:
        return ()
    # A device is named at the list's own depth, wherever in its mapping the name stands.
    depth = len(listed[1]) - len(listed[1].lstrip(" "))
    names = re.findall(rf"^ {{{depth}}}(?:- |  )name:\s*[\"']?([^\"'\s]+)", listed[1], re.MULTILINE)
    return tuple(f"{kind[1]}={name}" for name in names)


def _json_devices(text: str) -> tuple[str, ...]:
    try:
        spec = read_json(text)
    except ValueError:  # the CDI checks read the file itself; a spec that does not parse offers no device
        return ()
    if not isinstance(spec, dict) or not isinstance(spec.get("devices"), list):
        return ()
    return tuple(f"{spec.get('kind')}={d['name']}" for d in spec["devices"] if isinstance(d, dict) and "name" in d)
