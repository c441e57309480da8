"""What a removal takes along, where rpm and pacman know it: asked before, and refused where it is somebody else's."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpunode.model.action import Run
from gpunode.packages.registry import BACKENDS
from tests.packages.test_repo_scripts import DRIVER, perform, tool

RPM_MANAGERS = ("dnf", "dnf5", "yum", "tdnf", "zypper")
NAMES = ("libnvidia-ml", "nvidia-open")
OWN = "nvidia-open needs libnvidia-ml\nnvidia-open needs kmod-nvidia-open-dkms\nkmod-nvidia-open-dkms needs dkms\n"
SETTINGS = "nvidia-settings needs libnvidia-ml\n"
STRANGERS = "slurm-nvml-plugin needs libnvidia-ml\nslurm-on-top needs slurm-nvml-plugin\n"
# rpm 6.1 on Debian; of a package that is needed by several it names each, and not what needs those.
RPM = r"""case $1$2 in
-q--requires) shift 2; for name; do sed -n "s/^$name needs //p" NEEDS; done ;;
-q--qf)
  form=$3
  shift 3
  [ "$1" != --whatprovides ] || shift
  for name; do
    [ "$name" != gone ] || { echo "package gone is not installed"; continue; }
    printf '%s\n' "$form" | sed "s/%{NAME}/$name/;s/%{EVR}/3:1-1/;s/[\\]n$//"
  done ;;
-e--test)
  shift 3
  code=0
  while read -r needing _ needed; do
    case " $* " in *" $needing "*) continue ;; esac
    case " $* " in *" $needed "*) ;; *) continue ;; esac
    [ "$code" != 0 ] || echo "error: Failed dependencies:" >&2
    code=$((code + 1))
    echo "	$needed is needed by (installed) $needing-0:595.91.07-1.x86_64" >&2
  done <NEEDS
  exit "$code" ;;
esac
"""
PACMAN_REFUSES = """error: failed to prepare transaction (could not satisfy dependencies)
:: removing nvidia-utils breaks dependency 'nvidia-utils' required by cuda-thing
"""
PACMAN = "case $1 in -Qq) shift; printf '%s\\n' \"$@\" ;; *) cat <<'E'\n{says}E\nexit {code} ;; esac\n"


def host(directory: Path, needs: str) -> Path:
    """`directory`, as the tools of a host whose packages need each other like this; a removal is written down."""
    (directory / "needs").write_text(needs)
    tool(directory, "rpm", RPM.replace("NEEDS", str(directory / "needs")))
    for name in ("dnf", "yum", "tdnf", "zypper"):
        tool(directory, name, f'case " $* " in *" remove "*) echo "$*" >>{directory}/removed ;; esac\n')
    return directory


def removed(directory: Path) -> bool:
    return (directory / "removed").exists()


def question(name: str) -> Run:
    run = BACKENDS[name].simulate_removal((*NAMES, "gone"), DRIVER)
    assert run is not None
    assert run.read_only
    return run


@pytest.mark.parametrize("name", RPM_MANAGERS)
@pytest.mark.parametrize(
    ("needs", "code", "along", "said"),
    [
        (OWN, 0, [], ""),
        (OWN + SETTINGS, 0, ["nvidia-settings"], ""),
        (OWN + STRANGERS, 65, ["slurm-nvml-plugin", "slurm-on-top"], "slurm-nvml-plugin slurm-on-top"),
    ],
    ids=["the driver", "what belongs to it", "what needs it, and what needs that"],
)
def test_rpm_says_what_a_removal_would_take_along(
    name: str, needs: str, code: int, along: list[str], said: str, tmp_path: Path
) -> None:
    done = perform(question(name), host(tmp_path, needs))
    assert done.stdout.splitlines() == [f"remove {one} 3:1-1" for one in (*NAMES, *along)]
    words = f"{name} would remove what is not the driver's: {said}\n" if said else ""
    assert (done.returncode, done.stderr) == (code, words)
    assert not removed(tmp_path)


def test_an_rpm_that_cannot_answer_stops_the_removal(tmp_path: Path) -> None:
    host(tmp_path, "")
    tool(tmp_path, "rpm", "[ $1 != -e ] || { echo 'error: cannot open Packages database' >&2; exit 1; }\necho x\n")
    done = perform(question("dnf"), tmp_path)
    assert (done.returncode, done.stderr) == (1, "error: cannot open Packages database\n")


@pytest.mark.parametrize(
    ("says", "code", "answer"),
    [
        ("remove nvidia-open 595.91.07-1\n", 0, (0, "remove nvidia-open 595.91.07-1\n", "")),
        (PACMAN_REFUSES, 1, (65, "", PACMAN_REFUSES)),
        ("error: could not open database\n", 1, (1, "", "error: could not open database\n")),
    ],
    ids=["nothing needs it", "something does", "no answer"],
)
def test_pacman_refuses_before_anything_is_unpinned(
    says: str, code: int, answer: tuple[int, str, str], tmp_path: Path
) -> None:
    tool(tmp_path, "pacman", PACMAN.format(says=says, code=code))
    done = perform(question("pacman"), tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == answer


@pytest.mark.parametrize("name", RPM_MANAGERS)
@pytest.mark.parametrize(
    ("needs", "others"),
    [
        (OWN, ""),
        (OWN + "zfs-dkms needs dkms\n", "zfs-dkms"),
        (OWN + "kvm-tools needs nvidia-open\n", "kvm-tools"),
    ],
    ids=["what came with it", "another module's package", "what was there before"],
)
def test_an_undo_removes_nothing_that_others_need(name: str, needs: str, others: str, tmp_path: Path) -> None:
    """dkms is needed by the module that came with nvidia-open, which goes with it, and perhaps by another one."""
    (tmp_path / "inventory").write_text("bash\nkvm-tools\n")
    run = BACKENDS[name].erase(("nvidia-open", "dkms"), str(tmp_path / "inventory"))
    done = perform(run, host(tmp_path, needs))
    words = "these packages need what would be removed, and gpunode did not install them: "
    assert (done.returncode, done.stderr) == ((65, f"{words}{others}\n") if others else (0, ""))
    assert removed(tmp_path) is (others == "")


def test_an_undo_without_the_list_from_before_removes_only_what_it_names(tmp_path: Path) -> None:
    done = perform(BACKENDS["dnf"].erase(("nvidia-open", "dkms"), ""), host(tmp_path, OWN))
    assert (done.returncode, removed(tmp_path)) == (65, False)
    assert done.stderr.endswith("did not install them: kmod-nvidia-open-dkms\n")
