"""The exported module with a stand-in for Ansible's side of it and for gpunode's answers; the lab has both for real."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from gpunode.export.ansible import COLLECTION, ansible
from gpunode.model.plan import Plan
from gpunode.model.report import HostOutcome, RunReport
from gpunode.render.machine import hosts_json

from .requests import request

PACKAGE = "ansible_collections.gpunode.node.plugins"
PARENTS = ("ansible", "ansible.module_utils", "ansible_collections", "ansible_collections.gpunode",
           "ansible_collections.gpunode.node", PACKAGE, f"{PACKAGE}.module_utils")  # fmt: skip


class Ended(Exception):
    """exit_json or fail_json was called."""


@dataclass
class AnsibleModule:
    argument_spec: dict[str, Any]
    supports_check_mode: bool
    check_mode: bool = False
    _diff: bool = False
    params: dict[str, Any] = field(default_factory=lambda: {"spec": {}})
    warned: list[str] = field(default_factory=list)
    failed: str | None = None
    said: dict[str, Any] = field(default_factory=dict)

    def warn(self, text: str) -> None:
        self.warned.append(text)

    def exit_json(self, **said: Any) -> NoReturn:
        self.said = said
        raise Ended

    def fail_json(self, msg: str, **_: Any) -> NoReturn:
        self.failed = msg
        raise Ended


def play(directory: Path, plan: Plan, run: RunReport | None, *, check: bool = False) -> tuple[AnsibleModule, list[str]]:
    """What gpunode.node.setup makes of these answers, and the verbs that it asked."""
    asked: list[str] = []
    made: list[AnsibleModule] = []

    def answers(_: object, verb: str, *words: str) -> tuple[int, Any]:
        asked.append(verb)
        if verb == "plan":
            outcome = HostOutcome("gpu01", plan.code, plan=plan)
        else:
            assert run is not None
            outcome = HostOutcome("gpu01", run.code, run=run)
        return int(outcome.code), json.loads("".join(hosts_json(verb, [outcome], seconds_s=1)))

    def ansible_module(**words: Any) -> AnsibleModule:
        made.append(AnsibleModule(**words, check_mode=check))
        return made[-1]

    with _loaded(directory) as (setup, utils):
        setup.AnsibleModule = ansible_module
        utils.Gpunode.__init__ = lambda self, module: setattr(self, "module", module)
        utils.Gpunode.spec = lambda self, wanted: "spec.yaml"
        utils.Gpunode.ask = answers
        try:
            setup.main()
        except Ended:
            return made[0], asked
    raise AssertionError("the module neither ended nor failed")


@contextmanager
def _loaded(directory: Path) -> Iterator[tuple[Any, Any]]:
    """(the module, its module_utils), as `gpunode export ansible` writes them."""
    before = set(sys.modules)
    for one in ansible(request()):
        path = directory / one.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(one.data)
    plugins = directory / COLLECTION / "plugins"
    try:
        for name in PARENTS:
            sys.modules[name] = ModuleType(name)
        basic = sys.modules["ansible.module_utils.basic"] = ModuleType("ansible.module_utils.basic")
        basic.AnsibleModule = AnsibleModule  # type: ignore[attr-defined]
        _load(f"{PACKAGE}.module_utils.carried", plugins / "module_utils/carried.py")
        utils = _load(f"{PACKAGE}.module_utils.gpunode", plugins / "module_utils/gpunode.py")
        yield _load("gpunode_ansible_setup", plugins / "modules/setup.py"), utils
    finally:
        for name in set(sys.modules) - before:
            del sys.modules[name]


def _load(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
