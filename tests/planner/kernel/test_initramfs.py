"""nouveau and nvidia's modules stay out of dracut's images; an image that is older than its reasons is built again."""

from __future__ import annotations

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.model.action import PutFile, Run
from gpunode.model.initramfs import DracutFacts, InitramfsImage
from gpunode.model.plan import Kept, Step
from gpunode.model.spec import Spec
from gpunode.planner.kernel.initramfs import DRACUT_FILE
from gpunode.planner.kernel.setup import NOUVEAU_FILE, RIVALS, rivals_step
from gpunode.planner.site import survey
from tests.planner.builders import H100, RELEASE, host, kernel

NOTHING: frozenset[str] = frozenset()
BOTH = frozenset({"nouveau", "nvidia"})
IMAGE = f"/boot/initrd.img-{RELEASE}"


def step(dracut: DracutFacts | None, *, blacklisted: bool = True) -> Step | Kept:
    facts = kernel(blacklisted=frozenset(RIVALS) if blacklisted else NOTHING, dracut=dracut, initramfs_tool="dracut")
    return rivals_step(survey(host(H100, kernel=facts), Spec(), load_catalog()))


def written(made: Step | Kept) -> list[str]:
    assert isinstance(made, Step)
    assert isinstance(made.actions[-1], Run)
    assert made.actions[-1].argv == ("dracut", "--force", "--regenerate-all")
    return [action.path for action in made.actions if isinstance(action, PutFile)]


def test_dracut_is_told_before_the_image_is_built_again() -> None:
    made = step(DracutFacts(NOTHING, NOTHING), blacklisted=False)
    assert written(made) == [NOUVEAU_FILE, DRACUT_FILE]
    assert isinstance(made, Step)
    assert made.for_undo.initramfs
    _, omitted, _ = made.actions
    assert isinstance(omitted, PutFile)
    assert '\nomit_drivers+=" nouveau nova_core nvidia nvidia_drm nvidia_modeset nvidia_uvm' in omitted.text


@pytest.mark.parametrize(
    ("dracut", "files"),
    [
        (DracutFacts(NOTHING, NOTHING), [DRACUT_FILE]),
        (DracutFacts(frozenset({"nvidia", "nvidia_drm"}), NOTHING), [DRACUT_FILE]),
        (DracutFacts(BOTH, NOTHING, images=(InitramfsImage("6.1", IMAGE, frozenset({"configuration"})),)), []),
        (DracutFacts(frozenset({"nouveau"}), frozenset({"nvidia"}), images=(
            InitramfsImage("6.1", IMAGE, frozenset({"module"})),)), []),
    ],
    ids=["blacklisted, and nothing is omitted", "NVIDIA's omits nvidia, nouveau stays", "a rebuild was interrupted",
         "the admin has nvidia in it, and the driver changed"],
)  # fmt: skip
def test_the_image_is_built_again(dracut: DracutFacts, files: list[str]) -> None:
    assert written(step(dracut)) == files


@pytest.mark.parametrize(
    "dracut",
    [
        None,
        DracutFacts(BOTH, NOTHING),
        DracutFacts(frozenset({"nvidia"}), NOTHING, blocked=frozenset({"nouveau"})),
        DracutFacts(frozenset({"nouveau"}), frozenset({"nvidia"}), images=(InitramfsImage("6.1", IMAGE),)),
        DracutFacts(BOTH, NOTHING, images=(InitramfsImage("6.1", IMAGE, frozenset({"module"})),)),
    ],
    ids=["no dracut", "both omitted", "nouveau off by the command line, as NVIDIA's rpm does it",
         "the admin has nvidia in it",         "a driver changed that is not in the image"],
)  # fmt: skip
def test_nothing_is_built_without_a_reason(dracut: DracutFacts | None) -> None:
    assert isinstance(step(dracut), Kept)
