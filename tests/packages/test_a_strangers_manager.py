"""A package manager that gpunode does not know: one file, registered from here, works with no edit to the product.

`zug` is invented: a program of a few lines of sh that keeps its packages in a file. The probe, the plan's commands, the
check's words and the undo all run for real against it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from gpunode.apply.execute import execute
from gpunode.apply.journal.past import read_past
from gpunode.apply.journal.snapshot import before_values
from gpunode.catalog.distros import _distro
from gpunode.catalog.documents import document
from gpunode.catalog.load import Catalog, load_catalog
from gpunode.catalog.rows import Row
from gpunode.checks import run_all
from gpunode.errors import UnsupportedHost
from gpunode.facts.collect import assemble
from gpunode.model.action import Run
from gpunode.model.facts import HostFacts
from gpunode.model.files import FileFacts
from gpunode.model.packages import PackageVersion
from gpunode.model.plan import Plan
from gpunode.model.report import Finding, StepStatus
from gpunode.model.spec import Spec
from gpunode.packages import scripts
from gpunode.packages.base import Backend, Repository, Wanted
from gpunode.packages.registry import BACKENDS, register
from gpunode.planner.plan import make_plan
from gpunode.planner.undo.plan import undo_plan
from tests.apply.machine import Machine
from tests.facts.hosts import make_root, run_probe

# zug VERB NAME...: a line of the database is NAME VERSION, and a held package has a line in the other file.
ZUG = r"""#!/bin/sh
db=@DB@
verb=$1
shift
echo "$verb $*" >>"$db.told"
case $verb in
  list) while read -r name version; do
      grep -qx "$name" "$db.held" && echo "$name $version !" || echo "$name $version"
    done <"$db" ;;
  update | fetch) ;;
  plan) for name; do echo "+ $name 1.20.0-r1"; done ;;
  add) for name; do echo "$name 1.20.0-r1" >>"$db"; done ;;
  del) for name; do sed -i "/^$name /d" "$db"; done ;;
  lock) for name; do echo "$name" >>"$db.held"; done ;;
  unlock) for name; do sed -i "/^$name\$/d" "$db.held"; done ;;
  *) exit 2 ;;
esac
"""


class Zug(Backend):
    name = "zug"
    source_directory = "/etc/zug"
    key_directory = "/etc/zug/keys"
    key_suffix = ".pub"
    key_tools = ("curl",)
    hold_tools = ()
    names_version = False
    tools = ("zug",)
    listing = "zug"
    list_script = 'find_tool zug || return 127\n"$TOOL" list\n'  # NAME VERSION, and ! after a held one
    names_script = "zug list | sed 's/ .*//'\n"
    source_files = ("/etc/zug/*",)
    hold_files = ("/etc/zug/frozen",)
    directories = ("/etc/zug/",)
    commands = {  # noqa: RUF012
        "install": ("zug", "add"),
        "remove": ("zug", "del"),
        "purge": ("zug", "del", "--all"),
        "owner": ("zug", "whose"),
        "repair": ("zug", "mend"),
        "search": ("zug", "find"),
    }

    def installed(self, listing: str) -> Mapping[str, PackageVersion]:
        return {words[0]: PackageVersion(words[1]) for words in map(str.split, listing.splitlines())}

    def held(self, listing: str, files: Mapping[str, FileFacts]) -> frozenset[str]:
        frozen = (files["/etc/zug/frozen"].text or "").split() if "/etc/zug/frozen" in files else []
        return frozenset([*frozen, *(line.split()[0] for line in listing.splitlines() if line.endswith(" !"))])

    def kernel_headers(self, installed: Collection[str]) -> tuple[tuple[str, str], ...]:
        return (("linux-lts", "linux-lts-headers"),) if "linux-lts" in installed else ()

    def source_file(self, repository: Repository) -> tuple[str, str]:
        raise UnsupportedHost(f"{repository.title} has no packages for zug", remedy="use --driver-source distro")

    def refresh(self, repositories: Sequence[Repository]) -> Run:
        return scripts.refresh(("zug", "update"), "zug update", ())

    def refresh_all(self) -> Run:
        return self.refresh(())

    def trust(self, keyring: str, url: str) -> Run | None:
        return None

    def distrust(self, keyring: str, url: str) -> Run | None:
        return None

    def forget(self, keys: Sequence[str]) -> Run | None:
        return None

    def simulate(self, packages: Sequence[Wanted], mine: Sequence[str], *, downgrade: bool = False) -> Run:
        resolve = 'zug plan "$@" >"$output" || exit $?\nsed -n "s/^+/install/p" "$output"\n'
        return scripts.simulate(self.name, resolve, [p.name for p in packages], mine, ())

    def fetch(self, packages: Sequence[Wanted], *, downgrade: bool = False) -> Run:
        names = [p.name for p in packages]
        return scripts.fetch(("zug", "fetch", *names), "zug update", "zug fetch", ())

    def install(self, packages: Sequence[Wanted], *, downgrade: bool = False) -> Run:
        names = tuple(p.name for p in packages)
        return Run(("zug", "add", *names), detach=True, packages=names)

    def reinstall(self, packages: Sequence[Wanted]) -> Run:
        return Run(("zug", "add", "--again", *(p.name for p in packages)), detach=True)

    def remove(self, names: Sequence[str]) -> Run:
        script = 'zug unlock "$@"; exec zug del "$@"'
        return Run(("sh", "-c", script, "sh", *names), detach=True, packages=tuple(names))

    def hold(self, names: Sequence[str]) -> Run:
        return Run(("zug", "lock", *names))

    def unhold(self, names: Sequence[str]) -> Run:
        return Run(("zug", "unlock", *names))

    def same_version(self, lead: str, patterns: Sequence[str], *, hold: bool) -> Run:
        versions = 'for name; do zug list | sed -n "s/^\\($name\\) \\(.*\\)-r.*/\\1 \\2/p"; done'
        return scripts.same_version(versions, 'zug lock "$@"' if hold else "", lead, patterns, ())

    def repair(self, names: Sequence[str]) -> Run:
        return Run(("zug", "mend"), detach=True)


@pytest.fixture(autouse=True)
def zug_is_known() -> Iterator[None]:
    register(Zug())
    yield
    del BACKENDS["zug"]


@pytest.fixture
def catalog() -> Catalog:
    """The catalog with a distribution that uses it: a row as of Arch's, which is data and no code."""
    known = load_catalog()
    arch = next(row for row in document("distros.yaml")["distros"] if row["match"]["id"] == "arch")
    zug = {**arch, "name": "Zug OS", "match": {**arch["match"], "id": "zugos"}, "manager": "zug"}
    return replace(known, distros=(*known.distros, _distro(Row("distros.yaml", "Zug OS", zug))))


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host with a GPU, docker's containerd and zug; no driver yet. zug is the first in our own PATH as well."""
    database = tmp_path / "zug.db"
    database.write_text("zug 1.0-r0\nlinux-lts 6.12-r0\nnvidia-docker2 2.13-r0\n")
    (tmp_path / "zug.db.held").write_text("linux-lts\n")
    script = ZUG.replace("@DB@", str(database))
    root = make_root(tmp_path / "root", {"zug": script})
    for tool in ("apt-get", "dpkg-query"):
        (root / "usr/bin" / tool).unlink()
    for directory in (
        "sys/module/nvidia",
        "proc/driver/nvidia",
        "lib/modules/6.8.0-52-generic/updates",
        "lib/modules/6.8.0-52-generic/build",
    ):
        shutil.rmtree(root / directory)
    (root / "etc/os-release").write_text("ID=zugos\nPRETTY_NAME='Zug OS'\n")
    (root / "etc/zug").mkdir()
    (root / "etc/zug/frozen").write_text("zug\n")
    (root / "etc/zug/cuda").write_text("https://mirror.example/nvidia\n")
    path = tmp_path / "bin" / "zug"
    path.parent.mkdir()
    path.write_text(script)
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{path.parent}:{os.environ['PATH']}")
    return root


def detect(root: Path) -> HostFacts:
    return assemble(run_probe(("sh",), root).stdout, "gpu07")


def carry_out(plan: Plan, host: HostFacts, machine: Machine, run_id: str) -> None:
    results = execute(
        plan, machine, run_id=run_id, on_event=lambda _: None, stop=lambda: False, before=before_values(host, plan),
        manager=host.packages.manager, pause=lambda _: None,
    )  # fmt: skip
    assert [result.status for result in results] == [StepStatus.DONE] * len(plan.steps), results


def test_detect_sees_packages_holds_and_repositories(root: Path) -> None:
    packages = detect(root).packages
    assert packages.manager == "zug"
    assert {name: have.version for name, have in packages.installed.items()} == {
        "linux-lts": "6.12-r0",
        "nvidia-docker2": "2.13-r0",
    }
    assert packages.held == {"linux-lts", "zug"}
    assert [file.path for file in packages.sources] == ["/etc/zug/cuda"]


def test_a_plan_speaks_to_it_from_the_headers_to_the_hold(root: Path, catalog: Catalog) -> None:
    plan = make_plan(detect(root), Spec(only=("driver", "toolkit")), catalog)
    runs = [action for step in plan.steps for action in step.actions if isinstance(action, Run)]
    added = [run.argv for run in runs if run.argv[:2] == ("zug", "add")]
    assert added == [
        ("zug", "add", "linux-headers"),
        ("zug", "add", "nvidia-open-dkms", "nvidia-utils"),
        ("zug", "add", "nvidia-container-toolkit", "libnvidia-container"),
    ]
    assert ("zug", "lock", "nvidia-open-dkms", "nvidia-utils") in [run.argv for run in runs]


def test_check_says_what_a_person_types_there(root: Path, catalog: Catalog) -> None:
    results = run_all(detect(root), None, catalog).results
    old = results["ctk.legacy-packages"].outcome
    assert isinstance(old, Finding)
    assert old.remedy.text.endswith("; then zug del --all nvidia-docker2")
    assert "apt" not in old.remedy.text


def test_apply_installs_and_holds_and_undo_leaves_the_host_as_it_was(
    root: Path, catalog: Catalog, tmp_path: Path
) -> None:
    machine, before = Machine(tmp_path / "machine"), detect(root)
    plan = make_plan(before, Spec(only=("toolkit",)), catalog)
    assert [step.id for step in plan.steps] == ["toolkit.install"]
    carry_out(plan, before, machine, "r1.1")

    after = detect(root)
    assert after.packages.installed["nvidia-container-toolkit"].version == "1.20.0-r1"
    assert after.packages.held - before.packages.held == {"nvidia-container-toolkit", "libnvidia-container"}
    assert make_plan(after, Spec(only=("toolkit",)), catalog).empty
    inventory = (machine.state / "backup" / "r1.1" / "packages").read_text().splitlines()
    assert inventory == ["linux-lts", "nvidia-docker2", "zug"]

    past = read_past(machine, packages=True)
    back = undo_plan(after, past, catalog, packages=True)
    assert back.undo is not None
    assert not back.undo.left
    carry_out(back, after, machine, "r2.1")
    assert detect(root).packages == before.packages
