"""run.json: what a run is about, written whole before the first change and once more at its end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gpunode.errors import ExitCode
from gpunode.fleet.runs.proof import FORM, proof_of
from gpunode.foreign import read_json
from gpunode.masking import masked
from gpunode.model.rules import Rules
from gpunode.model.run_record import Controller, RunHeader
from gpunode.model.spec import Spec
from gpunode.regex import regex
from gpunode.render.clean import clean_json
from gpunode.specfile import rules_text, spec_text

SCHEMA = "gpunode.run/1"
LARGEST_BYTES = 8 << 20  # 10,000 hosts of 255 characters are 2.6 MB
MOST_HOSTS = 100_000  # more than one run takes; of a file that somebody else wrote
MOST_OPTIONS, LONGEST_OPTION = 40, 4096
_OPTION = regex("[a-z_]{1,40}")
VERBS = ("setup", "undo", "fix")
ID = regex(r"[0-9]{8}T[0-9]{6}Z-[0-9]{1,10}(-[0-9]{1,6})?")
_HOST = regex(r"[^\s,\x00-\x1f\x7f-\x9f]{1,600}")  # what --ssh takes, and "localhost"


def kept_spec(spec: Spec | None) -> tuple[str | None, str]:
    """The spec's text, or the proof of one that is withheld: with a secret masked it would be another spec."""
    text = None if spec is None else spec_text(spec)
    if text is None or masked(text, "yaml") == text:
        return text, ""
    return None, proof_of(text)


def kept_rules(rules: Rules) -> str:
    """The same of how checks are weighed: "" where a secret stands in it."""
    text = rules_text(rules)
    return text if masked(text, "yaml") == text else ""


def header_text(header: RunHeader) -> str:
    """One JSON document; secrets masked."""
    data = {
        "schema": SCHEMA,
        "id": header.id,
        "verb": header.verb,
        "begun": header.begun,
        "user": header.user,
        "controller": vars(header.controller),
        "over_ssh": header.over_ssh,
        "connection": dict(header.connection),
        "spec": header.spec,
        "spec_proof": header.spec_proof,
        "rollout": dict(header.rollout),
        "rules": header.rules,
        "ended": header.ended,
        "codes": {str(int(code)): number for code, number in header.codes.items()},
        "hosts": list(header.hosts),
    }
    return clean_json(masked(json.dumps(data, ensure_ascii=False) + "\n", "json"))


def parse_header(text: str) -> RunHeader:
    """Raises ValueError for what no gpunode wrote as run.json."""
    data = read_json(text, own=True, unique=True)
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise ValueError(f"its schema is not {SCHEMA}")
    try:
        hosts = tuple(_as(str, name, "hosts") for name in _as(list, data["hosts"], "hosts"))
        header = RunHeader(
            _as(str, data["id"], "id"),
            _as(str, data["verb"], "verb"),
            _as(str, data["begun"], "begun"),
            _as(str, data["user"], "user"),
            _controller(_as(dict, data["controller"], "controller")),
            hosts,
            _as(bool, data["over_ssh"], "over_ssh"),
            _as(dict, data["connection"], "connection"),
            None if data["spec"] is None else _as(str, data["spec"], "spec"),
            _as(str, data["spec_proof"], "spec_proof"),
            _as(str, data["ended"], "ended"),
            _rollout(_as(dict, data["rollout"], "rollout")),
            _as(str, data["rules"], "rules"),
            _codes(_as(dict, data["codes"], "codes")),
        )
    except KeyError as error:
        raise ValueError(f"{error.args[0]}: it is missing") from error
    if ID.fullmatch(header.id) is None or header.verb not in VERBS:
        raise ValueError("its id or verb is none of a run's")
    if header.spec_proof and FORM.fullmatch(header.spec_proof) is None:
        raise ValueError("spec_proof: it is none")
    if not 0 < len(hosts) <= MOST_HOSTS or len(set(hosts)) < len(hosts):
        raise ValueError("hosts: none, too many, or one of them twice")
    if not all(map(_HOST.fullmatch, hosts)):
        raise ValueError("hosts: one of them has no name of a host")
    return header


def _controller(data: Mapping[str, Any]) -> Controller:
    pid = _as(int, data["pid"], "pid")
    if not 0 < pid < 1 << 31:
        raise ValueError("pid: no process has it")
    host, started, boot = (_as(str, data[name], name) for name in ("host", "started", "boot"))
    return Controller(host, pid, started, boot)


def _rollout(data: Mapping[str, Any]) -> dict[str, object]:
    """Values of options: texts, and true for a switch. What they say is read where they are typed again."""
    for name, value in data.items():
        text = isinstance(value, str) and len(value) <= LONGEST_OPTION
        if len(data) > MOST_OPTIONS or _OPTION.fullmatch(name) is None or not (text or value is True):
            raise ValueError("rollout: it has no options")
    return dict(data)


def _codes(data: Mapping[str, Any]) -> dict[int, int]:
    known = {str(int(code)) for code in ExitCode}
    for code, number in data.items():
        if code not in known or type(number) is not int or not 0 <= number <= MOST_HOSTS:
            raise ValueError("codes: they are no exit codes with their numbers of hosts")
    return {int(code): number for code, number in data.items()}


def _as(kind: type, value: Any, name: str) -> Any:
    if type(value) is not kind:  # not isinstance: true is no number
        raise ValueError(f"{name}: it is of another type")
    return value
