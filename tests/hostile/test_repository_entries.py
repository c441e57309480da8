"""Which existing entry counts as NVIDIA's repository, and what becomes of one that does not."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.errors import UnsupportedHost
from gpunode.model.action import PutFile
from gpunode.model.files import FileFacts
from gpunode.model.packages import PackageFacts
from gpunode.model.plan import Plan
from gpunode.model.spec import Spec
from gpunode.packages.entries import read_entry
from gpunode.planner.plan import make_plan
from gpunode.planner.repos.claims import Claim
from gpunode.planner.repos.cleanup import MARK
from tests.hostile.linear import assert_linear
from tests.hostile.openpgp import Key, armored
from tests.planner.builders import T4, host, packages

CATALOG = load_catalog()
HOST = "developer.download.nvidia.com"
PATH = "compute/cuda/repos/ubuntu2404/x86_64"
URL = f"https://{HOST}/{PATH}/"
RPM_URL = f"https://{HOST}/compute/cuda/repos/rhel9/x86_64"
NVIDIA, NVIDIA_RPM = "EB693B3035CD5710E231E123A4B469963BF863CC", "610C7B14E068A878070DA4E99CD0A493D42D0685"
GOOD, BAD, BOTH = (
    "/usr/share/keyrings/cuda-archive-keyring.gpg",
    "/etc/apt/keyrings/bad.gpg",
    "/etc/apt/keyrings/both.gpg",
)
RPM_KEY, RPM_BAD = "/etc/pki/rpm-gpg/RPM-GPG-KEY-NVIDIA", "/etc/pki/rpm-gpg/RPM-GPG-KEY-BAD"
STRANGER = Key("stranger").fingerprint
PRIMARIES = {
    GOOD: (NVIDIA,),
    BAD: (STRANGER,),
    BOTH: tuple(sorted((NVIDIA, STRANGER))),
    "/etc/apt/keyrings/unreadable.gpg": (),
    "/home/me/key.gpg": (NVIDIA,),
    RPM_KEY: (NVIDIA_RPM,),
    RPM_BAD: (STRANGER,),
}
NONE: Mapping[str, tuple[str, ...]] = {}
LISTS, REPOS = "/etc/apt/sources.list.d", "/etc/yum.repos.d"


def plan_with(path: str, text: str, spec: Spec | None = None, more: Mapping[str, tuple[str, ...]] = NONE) -> Plan:
    os, manager = ("rocky-9", "dnf") if path.endswith(".repo") else ("ubuntu-24.04", "apt")
    file = FileFacts(path, text, "1" * 64)
    tools = {"gnupg2": "2.3"} if manager == "dnf" else {}
    there = packages(tools, sources=(file,), primaries={**PRIMARIES, **more}, manager=manager)
    return make_plan(host(T4, os=os, packages=there), spec or Spec(), CATALOG)


def after(plan: Plan, path: str) -> str | None:
    """What the plan makes of the file; None when it stays."""
    puts = [a for s in plan.steps if s.id == "repo.lists" for a in s.actions if isinstance(a, PutFile)]
    return next((put.text for put in puts if put.path == path), None)


def why(plan: Plan) -> str:
    return " ".join(step.why for step in plan.steps if step.id == "repo.lists")


def added(plan: Plan) -> bool:
    return "repo.cuda" in [step.id for step in plan.steps]


def stanza(**fields: str) -> str:
    said = {"Types": "deb", "URIs": URL, "Suites": "/", "Signed-By": GOOD}
    said |= {name.replace("_", "-"): value for name, value in fields.items()}
    return "".join(f"{name}: {value}\n" for name, value in said.items() if value)


def section(**options: str) -> str:
    said = {
        "name": "cuda",
        "baseurl": RPM_URL,
        "enabled": "1",
        "gpgcheck": "1",
        "gpgkey": f"file://{RPM_KEY}",
    } | options
    return "[cuda]\n" + "".join(f"{name}={value}\n" for name, value in said.items() if value)


INLINE = armored(Key("vendor").block).decode()
RIGHT = [
    pytest.param("a.list", f"deb [signed-by={GOOD}] {URL} /\n", id="the vendor's own line"),
    pytest.param("a.list", f"deb  [ arch=amd64  signed-by={GOOD} ]  {URL[:-1]} ./ # note\n", id="in other words"),
    pytest.param(
        "a.list", f"deb [signed-by={GOOD}] https://{HOST}/{PATH.removesuffix('x86_64')} x86_64/\n", id="split"
    ),
    pytest.param("a.list", f"deb [signed-by={GOOD}] https://{HOST.upper()}:443/{PATH}/ /\n", id="host in capitals"),
    pytest.param("a.list", f"# deb [trusted=yes] {URL} /\ndeb [signed-by={GOOD}] {URL} /\n", id="a comment before it"),
    pytest.param("a.sources", stanza(), id="a stanza"),
    pytest.param("a.sources", stanza(Types="deb deb-src", X_Repolib_Name="CUDA"), id="sources too"),
    pytest.param(
        "a.sources", stanza(Signed_By="").replace("URIs", "# note\nSigned-By:\n " + GOOD + "\nURIs"), id="folded"
    ),
    pytest.param("a.repo", section(), id="a section whose key lies here"),
    pytest.param("a.repo", section(gpgcheck="0", repo_gpgcheck="True"), id="a section with a checked index"),
]


@pytest.mark.parametrize(("name", "text"), RIGHT)
def test_an_entry_that_is_right_in_every_part_is_used(name: str, text: str) -> None:
    path = f"{REPOS if name.endswith('.repo') else LISTS}/{name}"
    plan = plan_with(path, text)
    assert not added(plan)
    assert after(plan, path) is None


WRONG = [
    pytest.param(
        "a.list", f"deb [trusted=yes] http://{HOST}/{PATH}/ /\n", "http, not https", id="A5: trusted over http"
    ),
    pytest.param("a.list", f"deb [trusted=yes signed-by={GOOD}] {URL} /\n", "sets trusted=yes", id="A5: trusted"),
    pytest.param(
        "a.list", f"deb [Allow-Insecure=yes signed-by={GOOD}] {URL} /\n", "allow-insecure", id="allow-insecure"
    ),
    pytest.param("a.list", f"deb [allow-weak=yes signed-by={GOOD}] {URL} /\n", "allow-weak", id="allow-weak"),
    pytest.param(
        "a.list", f"deb [tr%75sted=yes signed-by={GOOD}] {URL} /\n", "tr%75sted", id="trusted, as apt decodes it"
    ),
    pytest.param("a.list", f"deb-src [signed-by={GOOD}] {URL} /\n", "no packages", id="A5: a lone deb-src"),
    pytest.param("a.list", f"deb [signed-by={BAD}] {URL} /\n", STRANGER, id="G11: another key"),
    pytest.param("a.list", f"deb [signed-by={BOTH}] {URL} /\n", STRANGER, id="NVIDIA's key and another"),
    pytest.param("a.list", f"deb [signed-by={GOOD},{BAD}] {URL} /\n", STRANGER, id="a second key file"),
    pytest.param("a.list", f"deb [signed-by=/usr/share/keyrings/none.gpg] {URL} /\n", "is not there", id="no key file"),
    pytest.param(
        "a.list", f"deb [signed-by=/etc/apt/keyrings/unreadable.gpg] {URL} /\n", "cannot be read", id="no keyring"
    ),
    pytest.param(
        "a.list", f"deb [signed-by=/home/me/key.gpg] {URL} /\n", "not a file of this system", id="a user's file"
    ),
    pytest.param("a.list", f"deb [signed-by=/usr/../home/me/key.gpg] {URL} /\n", "not a file of this", id="by detour"),
    pytest.param(
        "a.list", f"deb [signed-by={NVIDIA}] {URL} /\n", "not a file of this system", id="a fingerprint alone"
    ),
    pytest.param("a.list", f"deb {URL} /\n", "names no key", id="no key"),
    pytest.param(
        "a.list", f"deb [arch=arm64 signed-by={GOOD}] {URL} /\n", "for arm64 alone", id="another architecture"
    ),
    pytest.param("a.list", f"deb [signed-by={BAD} signed-by={GOOD}] {URL} /\n", "more than once", id="two answers"),
    pytest.param("a.list", f"deb [signed-by={GOOD}] {URL} stable main\n", "suite", id="a suite"),
    pytest.param("a.sources", stanza(Trusted="yes"), "sets trusted=yes", id="a stanza: Trusted"),
    pytest.param("a.sources", stanza(Allow_Insecure="yes"), "allow-insecure", id="a stanza: Allow-Insecure"),
    pytest.param("a.sources", stanza(trusted="yes"), "sets trusted=yes", id="a stanza: in lower case"),
    pytest.param("a.sources", stanza(Types="deb-src"), "no packages", id="a stanza: sources alone"),
    pytest.param("a.sources", stanza(URIs=URL.replace("https", "http")), "http, not https", id="a stanza: http"),
    pytest.param("a.sources", stanza(Signed_By=""), "names no key", id="a stanza: no key"),
    pytest.param(
        "a.sources",
        stanza(Signed_By="\n" + "".join(f" {line or '.'}\n" for line in INLINE.splitlines()).rstrip()),
        Key("vendor").fingerprint,
        id="a stanza: another key inside",
    ),
    pytest.param("a.repo", section(gpgcheck="0", sslverify="0"), "sslverify=0", id="A5: nothing is checked"),
    pytest.param("a.repo", section(gpgcheck="0"), "checks no signature", id="gpgcheck=0"),
    pytest.param("a.repo", section(gpgcheck=""), "checks no signature", id="gpgcheck left to dnf.conf"),
    pytest.param("a.repo", section(GPGCheck="1", gpgcheck=""), "checks no signature", id="a key dnf does not know"),
    pytest.param("a.repo", section(gpgcheck="maybe"), "gpgcheck=maybe", id="neither yes nor no"),
    pytest.param("a.repo", section(sslverify="False"), "sslverify=0", id="sslverify=False"),
    pytest.param("a.repo", section(gpgkey=f"{RPM_URL}/D42D0685.pub"), "whoever serves", id="the vendor's own .repo"),
    pytest.param("a.repo", section(gpgkey=f"file://{RPM_KEY}\n  {RPM_URL}/x.pub"), "whoever serves", id="a second key"),
    pytest.param("a.repo", section(gpgkey=f"file://{RPM_BAD}"), STRANGER, id="another key"),
    pytest.param("a.repo", section(gpgkey=""), "names no key", id="no gpgkey"),
    pytest.param("a.repo", section(baseurl=RPM_URL.replace("https", "http")), "http, not https", id="plain http"),
    pytest.param("a.repo", section(baseurl=f"{RPM_URL} https://evil.example/"), "more than one", id="a second baseurl"),
    pytest.param("a.repo", section(metalink="https://evil.example/m"), "list of mirrors", id="a metalink"),
    pytest.param("a.repo", section() + "gpgcheck=0\n", "more than once", id="two answers to gpgcheck"),
]


@pytest.mark.parametrize(("name", "text", "reason"), WRONG)
def test_a_wrong_entry_is_switched_off_with_the_reason_and_ours_added_first(name: str, text: str, reason: str) -> None:
    path = f"{REPOS if name.endswith('.repo') else LISTS}/{name}"
    plan = plan_with(path, f"# mine\n{text}" if name.endswith(".list") else text)
    assert added(plan)
    becomes = after(plan, path)
    assert becomes is not None
    off = {"list": f"# mine\n{MARK}{text}", "sources": "\nEnabled: no\n", "repo": "\nenabled=0\n"}[name.rsplit(".")[-1]]
    assert off in becomes
    assert reason in why(plan)
    ids = [step.id for step in plan.steps]
    assert ids.index("repo.lists") < ids.index("repo.cuda") < ids.index("driver.install")
    assert not added_twice(path, becomes)


def added_twice(path: str, text: str) -> bool:
    """Once it is switched off, nobody takes it for a live entry again."""
    return after(plan_with(path, text), path) is not None


FOREIGN = [
    pytest.param("a.list", f"deb [allow-insecure=yes] https://evil.example/{HOST}/{PATH}/ /\n", id="A5: in the path"),
    pytest.param("a.list", f"deb [signed-by={GOOD}] https://{HOST}.evil.example/{PATH}/ /\n", id="a longer host"),
    pytest.param("a.list", f"deb [signed-by={GOOD}] https://{HOST}@evil.example/{PATH}/ /\n", id="a user's name"),
    pytest.param("a.list", f"deb [signed-by={GOOD}] https://evil.example/?x={URL} /\n", id="in a query"),
    pytest.param("a.list", f"deb [signed-by={GOOD}] https://{HOST}:8443/{PATH}/ /\n", id="another port"),
    pytest.param("a.list", f"deb [signed-by={GOOD}] https://{HOST}/x/../{PATH}/ /\n", id="by detour"),
    pytest.param("a.list", f"# deb [signed-by={GOOD}] {URL} /\n", id="a comment"),
    pytest.param("a.list", f"deb [signed-by={GOOD}] https://[::1/{PATH}/ / # {URL}\n", id="no address at all"),
    pytest.param("a.sources", stanza(Enabled="no"), id="a stanza that is off"),
    pytest.param("a.sources", stanza(Enabled="False"), id="a stanza that is off, in other words"),
    pytest.param("a.sources", stanza(URIs="https://evil.example/", Description=URL), id="a stanza that talks about it"),
    pytest.param("a.repo", section(enabled="0"), id="A5: enabled=0"),
    pytest.param("a.repo", section(enabled="no"), id="enabled=no"),
    pytest.param("a.repo", section(baseurl=f"https://evil.example/{HOST}/compute/"), id="a section of evil.example"),
]


@pytest.mark.parametrize(("name", "text"), FOREIGN)
def test_what_is_not_nvidias_is_left_alone_and_ours_is_added(name: str, text: str) -> None:
    path = f"{REPOS if name.endswith('.repo') else LISTS}/{name}"
    plan = plan_with(path, text)
    assert added(plan)
    assert after(plan, path) is None


@pytest.mark.parametrize(
    "more",
    [{"URIs": f"{URL} https://other.example/"}, {"Suites": "/ other/"}],
    ids=["two addresses", "two directories"],
)
def test_a_wrong_stanza_that_names_others_too_is_refused(more: dict[str, str]) -> None:
    with pytest.raises(UnsupportedHost, match="in one entry, and it sets trusted=yes") as caught:
        plan_with(f"{LISTS}/a.sources", stanza(Trusted="yes", **more))
    assert "an entry of their own" in caught.value.remedy.text


@pytest.mark.parametrize(
    ("held", "kept"),
    [((NVIDIA,), True), ((STRANGER,), False), ((NVIDIA, STRANGER), False), ((), False), (None, False)],
    ids=["the pinned key", "a stranger's", "both", "no keyring", "not readable"],
)
def test_gpunodes_own_entry_stands_only_with_the_pinned_key_alone(held: tuple[str, ...] | None, kept: bool) -> None:
    plan = plan_with(f"{LISTS}/none.list", "")
    own = next(a for s in plan.steps if s.id == "repo.cuda" for a in s.actions if isinstance(a, PutFile))
    keys = {} if held is None else {"/etc/apt/keyrings/gpunode-cuda.asc": held}
    assert added(plan_with(own.path, own.text, more=keys)) is not kept


def test_a_right_entry_beside_a_wrong_one_stays_and_the_wrong_one_goes() -> None:
    wrong, right = f"deb [trusted=yes] {URL} /\n", f"deb [signed-by={GOOD}] {URL} /\n"
    plan = plan_with(f"{LISTS}/a.list", wrong + right)
    assert not added(plan)
    assert after(plan, f"{LISTS}/a.list") == f"{MARK}{wrong}{right}"


def test_both_repositories_in_one_file_are_put_right_in_one_write() -> None:
    toolkit = "deb [trusted=yes] https://nvidia.github.io/libnvidia-container/stable/deb/$(ARCH) /\n"
    cuda = f"deb [signed-by={BAD}] {URL} /\n"
    plan = plan_with(f"{LISTS}/a.list", cuda + toolkit)
    assert after(plan, f"{LISTS}/a.list") == f"{MARK}{cuda}{MARK}{toolkit}"
    assert {"repo.cuda", "repo.toolkit"} <= {step.id for step in plan.steps}


def test_a_mirrors_entry_counts_for_that_mirror_alone() -> None:
    spec = Spec(mirror="https://mirror.example/nv")
    text = f"deb [signed-by={GOOD}] https://mirror.example/nv/{PATH}/ /\n"
    assert not added(plan_with(f"{LISTS}/a.list", text, spec))
    assert added(plan_with(f"{LISTS}/a.list", text))


def garbled(rng: random.Random, text: str) -> str:
    """A few bytes replaced, taken away, or said again."""
    for _ in range(rng.randint(1, 6)):
        at, size = rng.randrange(len(text) + 1), rng.randint(0, 12)
        new = rng.choice(("", text[at : at + size] * 2, rng.choice("[]=:#\n\t %$@/\\\"'\0\udcff.,"), "deb ", "\n[x]\n"))
        text = text[:at] + new + text[at + size :]
    return text


EL10_KEY = "/etc/pki/rpm-gpg/gpunode-cuda.key"
EL10_SUM = "afbea87d3b979b3788ef34223aeeb323ade481128e2c133723ae99b8a51368bb"  # as NVIDIA's own image pins it


def set_up_again(keyring_sha256: str, primaries: tuple[str, ...], key: str = EL10_KEY, own: bool = True) -> bool:
    """Whether a host of EL 10, whose key is pinned by its file, gets the repository that it has already."""
    bare = make_plan(host(T4, os="rocky-10"), Spec(), CATALOG)
    written = next(a for s in bare.steps if s.id == "repo.cuda" for a in s.actions if isinstance(a, PutFile))
    text = written.text.replace(EL10_KEY, key)
    file = FileFacts(written.path if own else f"{REPOS}/nvidia.repo", text, "1" * 64)
    there = packages({}, sources=(file,), primaries={key: primaries}, keys={key: keyring_sha256}, manager="dnf")
    return added(make_plan(host(T4, os="rocky-10", packages=there), Spec(), CATALOG))


def test_a_key_file_that_is_pinned_whole_counts_by_its_checksum_alone() -> None:
    assert not set_up_again(EL10_SUM, (STRANGER,))  # whoever's it is: nobody published its fingerprint
    assert not set_up_again(EL10_SUM, (STRANGER,), RPM_KEY, own=False)
    assert set_up_again("0" * 64, (STRANGER,))
    assert set_up_again("0" * 64, ("00000000000000000000000000000000CDF6BA43",))
    assert set_up_again(EL10_SUM, ())  # not root's alone, or no keyring
    assert set_up_again("0" * 64, (STRANGER,), RPM_KEY, own=False)


@pytest.mark.parametrize("seed", range(8))
def test_a_garbled_entry_is_judged_or_left_alone(seed: int) -> None:
    """Whatever it says by then: an answer, and no exception."""
    rng = random.Random(seed)
    claim = Claim("x", URL, frozenset((NVIDIA,)), "x86_64")
    rpm = Claim("x", RPM_URL, frozenset((NVIDIA_RPM,)), "x86_64")
    rows = [row.values for row in WRONG]
    for _ in range(250):
        name, text = (str(value) for value in rng.choice(rows)[:2])
        read = read_entry(name, garbled(rng, text))
        if read is not None:
            for judge in (claim, rpm):
                assert judge.concerns(read) in (True, False)
                assert judge.fault(read, PackageFacts(primaries=PRIMARIES)) != ""


@pytest.mark.parametrize(
    ("name", "piece", "frame"),
    [
        ("a.list", "a=b ", "deb [{}] https://x/ /\n"),
        ("a.sources", "a: b\n", "URIs: https://x/\nSuites: /\n{}"),
        ("a.sources", "https://x/ ", "URIs: {}\nSuites: / a/ b/ c/\n"),
        ("a.sources", " \n", "URIs: https://x/\nSigned-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n{} x\n"),
        ("a.repo", "a=b\n", "[x]\nbaseurl=https://x/\n{}"),
        ("a.repo", " ", "[x]\nbaseurl=https://x/{}x\n"),
    ],
)
def test_judging_is_linear(name: str, piece: str, frame: str) -> None:
    claim = Claim("x", URL, frozenset((NVIDIA,)), "x86_64")

    def judged(text: str) -> None:
        read = read_entry(name, text)
        assert read is None or not claim.concerns(read)
        assert read is None or claim.fault(read, PackageFacts(primaries=PRIMARIES))

    assert_linear(judged, lambda size: frame.format(piece * (size // len(piece))), short=64_000)
