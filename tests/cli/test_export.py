"""gpunode export: what is wrong is said before anything is written, and nothing of others is overwritten."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from gpunode.cli.app import main
from gpunode.cli.verbs import export_files
from gpunode.export.files import MANIFEST

HERE = ("--gpunode-path", "/opt/gpunode.pyz")
CLOUD_INIT = ("export", "cloud-init")
DAEMONSET = ("export", "daemonset")
NODEWRIGHT = ("export", "nodewright")
EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "hosts"
SCRIPT = ("export", "script", "--recorded", str(EXAMPLES / "debian12-l4"))


@pytest.fixture(autouse=True)
def _a_stand_in_for_gpunode(monkeypatch: pytest.MonkeyPatch) -> None:
    """To build the real zipapp takes a second; what an export does with it does not depend on its bytes."""
    monkeypatch.setattr(export_files, "carried", lambda: b"stand-in")


def exit_of(*words: str) -> int:
    return main(list(words))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*CLOUD_INIT, *HERE), "where to? evidence an export is a directory remedy --output DIR"),
        ((*CLOUD_INIT, "--output", "DIR"), "how does gpunode come onto the hosts?"),
        ((*CLOUD_INIT, *HERE, "--gpunode-url", "https://a/b", "--output", "DIR"), "exclude each other"),
        ((*CLOUD_INIT, "--gpunode-url", "ftp://a/b", "--output", "DIR"), "is not of the right form"),
        ((*CLOUD_INIT, "--gpunode-url", "https://me:hunter2@a/b", "--output", "DIR"), "no user and no password"),
        ((*CLOUD_INIT, "--gpunode-path", "opt/g", "--output", "DIR"), "not a whole path"),
        ((*CLOUD_INIT, *HERE, "--driver", "5x", "--output", "DIR"), "580.178.04"),
        ((*CLOUD_INIT, *HERE, "--spec", "/nosuch.yaml", "--output", "DIR"), "/nosuch.yaml"),
        (
            (*CLOUD_INIT, *HERE, "--proxy", "http://u:hunter2@p:1", "--output", "DIR"),
            "must not hold a user or a password",
        ),
        (("export", "ansible", "--reboot", "if-needed", "--output", "DIR"), "a play reboots its hosts itself"),
        (("export", "packer-shell", "--reboot", "if-needed", "--output", "DIR"), "a build does not reboot"),
        (("export", "mkosi", "--reboot", "if-needed", "--output", "DIR"), "a build does not reboot"),
        ((*NODEWRIGHT, "--output", "DIR"), "which image?"),
        ((*NODEWRIGHT, "--image", "a:1", "--output", "DIR"), "is no name of an image without a tag"),
        ((*NODEWRIGHT, "--image", "a", "--kind", "x", "--output", "DIR"), "is no kind of its objects"),
        ((*NODEWRIGHT, "--image", "a:5000/b", "--kind", "skyhook", "--output", "DIR"), "has a port"),
        ((*NODEWRIGHT, "--image", "a", "--reboot", "if-needed", "--output", "DIR"), "the operator reboots nodes"),
        *(
            ((*export, "--bundle", "b.tar", "--output", "DIR"), "--bundle is not for this export")
            for export in (
                (*CLOUD_INIT, *HERE),
                ("export", "ansible"),
                (*DAEMONSET, "--image", "a:1"),
                (*NODEWRIGHT, "--image", "a"),
                ("export", "packer-shell"),
                ("export", "mkosi"),
            )
        ),
        ((*SCRIPT, "--bundle", "b.tar", "--output", "DIR"), "--bundle is not for this export"),
        ((*SCRIPT,), "where to?"),
        (("export", "script", "--ssh", "a,b", "--output", "DIR"), "a script is for one host"),
        ((*DAEMONSET, "--output", "DIR"), "which image?"),
        ((*DAEMONSET, "--image", "a b", "--output", "DIR"), "is no name of an image"),
        ((*DAEMONSET, "--image", "a", "--kubectl-image", "-x", "--output", "DIR"), "is no name of an image"),
        ((*DAEMONSET, "--image", "a", "--namespace", "A", "--output", "DIR"), "is no name of a namespace"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, tuple) else None,
)
def test_a_wrong_command_line_is_exit_2_and_writes_nothing(
    words: tuple[str, ...], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = tuple(str(tmp_path / "DIR") if word == "DIR" else word for word in words)
    assert exit_of(*words) == 2
    out, err = capsys.readouterr()
    assert said in " ".join(err.split())
    assert "hunter2" not in out + err
    assert os.listdir(tmp_path) == []


def test_an_export_is_written_over_an_earlier_one_and_over_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "export"
    words = (*CLOUD_INIT, *HERE, "--output", str(place))
    assert exit_of(*words) == 0
    assert sorted(os.listdir(place)) == [MANIFEST, "gpunode.pyz", "user-data"]
    assert exit_of(*words, "--driver", "580") == 0
    assert 'driver: "580"' in (place / "user-data").read_text()

    (place / "user-data").write_text("mine\n")
    assert exit_of(*words) == 2
    assert "'user-data' in it was changed" in " ".join(capsys.readouterr().err.split())
    assert (place / "user-data").read_text() == "mine\n"
    assert os.listdir(tmp_path) == ["export"], "something was left next to it"


def a_file(place: Path) -> None:
    place.write_text("mine")


def a_link(place: Path) -> None:
    (place.parent / "theirs").mkdir()
    place.symlink_to("theirs")


def a_directory(place: Path) -> None:
    (place / "deep").mkdir(parents=True)
    (place / "deep" / "notes").write_text("mine")


def a_manifest_that_is_none(place: Path) -> None:
    place.mkdir()
    (place / MANIFEST).write_text('{"schema": "other"}')


def a_manifest_that_is_a_fifo(place: Path) -> None:
    place.mkdir()
    os.mkfifo(place / MANIFEST)


def a_file_more(place: Path) -> None:
    assert exit_of(*CLOUD_INIT, *HERE, "--output", str(place)) == 0
    (place / "notes").write_text("mine")


@pytest.mark.parametrize(
    "made", [a_file, a_link, a_directory, a_manifest_that_is_none, a_manifest_that_is_a_fifo, a_file_more]
)
def test_what_others_made_stays(made: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "export"
    made(place)  # type: ignore[operator]
    before = sorted(str(path) for path in tmp_path.rglob("*"))
    assert exit_of(*CLOUD_INIT, *HERE, "--output", str(place)) == 2
    assert "cannot be written" in " ".join(capsys.readouterr().err.split())
    assert sorted(str(path) for path in tmp_path.rglob("*")) == before


def test_an_empty_directory_is_taken(tmp_path: Path) -> None:
    (tmp_path / "export").mkdir()
    assert exit_of(*CLOUD_INIT, *HERE, "--output", str(tmp_path / "export")) == 0


@pytest.mark.parametrize(("typed", "policy"), [((), "--reboot if-needed"), (("--reboot", "never"), "")])
def test_a_first_boot_may_reboot_unless_the_spec_says_otherwise(
    typed: tuple[str, ...], policy: str, tmp_path: Path
) -> None:
    assert exit_of(*CLOUD_INIT, *HERE, *typed, "--output", str(tmp_path / "export")) == 0
    (line,) = (
        line
        for line in (tmp_path / "export" / "user-data").read_text().splitlines()
        if line.strip().startswith("WORDS=")
    )
    assert line.strip() == f"WORDS={policy!r}"


def test_an_export_for_packer_names_its_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "export"
    words = ("export", "packer-shell", "--driver", "595", "--flavour", "open", "--output", str(place))
    assert exit_of(*words) == 0
    assert sorted(os.listdir(place)) == [MANIFEST, "gpunode.hcl", "gpunode.pyz", "provision.sh", "spec.yaml"]
    assert (place / "spec.yaml").read_text() == 'driver: "595"\nflavour: "open"\n'
    assert "WORDS=--allow-no-gpu\n" in (place / "provision.sh").read_text()
    assert "gpunode.hcl into the build block" in capsys.readouterr().err
    assert exit_of(*words, "--allow-no-gpu") == 0
    assert 'allow_no_gpu: "true"' in (place / "spec.yaml").read_text()
    assert "WORDS=''\n" in (place / "provision.sh").read_text()


def test_an_export_for_mkosi_is_a_directory_to_include(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "export"
    assert exit_of("export", "mkosi", "--driver", "595", "--flavour", "open", "--output", str(place)) == 0
    assert sorted(os.listdir(place)) == [MANIFEST, "mkosi.conf", "mkosi.extra", "mkosi.postinst.chroot"]
    assert os.access(place / "mkosi.postinst.chroot", os.X_OK)
    assert f"Include={place}" in capsys.readouterr().err


def test_an_export_of_a_plan_is_one_script_that_shows_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")  # a script is shown without line breaks
    place = tmp_path / "export"
    assert exit_of(*SCRIPT, "--output", str(place)) == 0
    assert sorted(os.listdir(place)) == [MANIFEST, "setup.sh"]
    text = (place / "setup.sh").read_text()
    capsys.readouterr()
    assert exit_of("plan", *SCRIPT[2:]) == 0
    plan = capsys.readouterr().out.partition("\n\nThis host is a recording")[0]
    assert plan.strip().splitlines()[1] in text
    assert subprocess.run(("dash", "-n", place / "setup.sh"), check=False).returncode == 0
    first = text
    assert exit_of(*SCRIPT, "--output", str(place)) == 0
    assert (place / "setup.sh").read_text() == first, "the same plan is the same script"


def test_a_host_that_is_set_up_has_no_script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ready = str(EXAMPLES / "debian12-ready")
    assert exit_of("export", "script", "--recorded", ready, "--output", str(tmp_path / "export")) == 4
    assert "there is no script" in " ".join(capsys.readouterr().err.split())
    assert os.listdir(tmp_path) == []


def test_an_export_for_nodewright_says_which_image_to_build(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "export"
    assert exit_of("export", "nodewright", "--image", "registry.example:5000/gpunode", "--output", str(place)) == 0
    assert sorted(os.listdir(place)) == ["Dockerfile", MANIFEST, "nodewright.yaml", "skyhook-package"]
    (tag,) = re.findall(r"--tag registry.example:5000/gpunode:(\S+) ", capsys.readouterr().err)
    assert f"version: {tag}\n" in (place / "nodewright.yaml").read_text()
