"""Becoming root where gpunode is typed and over SSH: real sudo, sudo-rs as Debian 13 and sid have it, and doas."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from .host import Host, Result
from .lab import Lab
from .product_runs import Controller, expect, fingerprint_of_state
from .site import ROOT
from .test_bad_input import DAEMON_JSON, RUNTIME, SETUP, kept, refused, said

PASSWORD = "zwitter-7-maschine"
SUDOS = {"debian12": "Sudo version 1.9", "debian13-2026": "sudo-rs 0.2.5", "debian-sid-2026": "sudo-rs 0.2.1"}


@pytest.fixture(scope="module")
def lab(lab_session: Lab) -> Iterator[Lab]:
    yield lab_session
    lab_session.reset()


@pytest.fixture(scope="module", params=SUDOS)
def node(request: pytest.FixtureRequest, lab: Lab, gpunode_site: Path) -> Host:
    host = _host(lab, request.param, gpunode_site)
    assert SUDOS[request.param] in host.nsrun("sudo --version 2>&1", check=True).stdout
    return host


@pytest.fixture(scope="module")
def doas_node(lab: Lab, gpunode_site: Path) -> Host:
    return _host(lab, "debian13-doas", gpunode_site)


def _host(lab: Lab, distribution: str, site: Path) -> Host:
    host = lab.host(distribution, runtime="docker", files={RUNTIME: "#!/bin/sh\n"})
    host.nsrun(f"chmod 755 {RUNTIME}; systemctl start docker", check=True)
    host.nsrun("chpasswd", input=f"operator:{PASSWORD}\nnosudo:{PASSWORD}\n", check=True)
    host.install_gpunode(ROOT, site)
    return host


@pytest.fixture(params=["local", "ssh"])
def me(request: pytest.FixtureRequest, tmp_path: Path) -> Controller:
    return Controller(request.param, tmp_path)


def typed(me: Controller, node: Host, user: str, password: str | None, *words: str) -> Result:
    """gpunode as this user types it there, or over SSH as this user; with a file of the password."""
    if me.how == "ssh":
        if password is None:
            return me.gpunode(node, *words, "--user", user)
        (me.home / "pass").write_text(f"{password}\n")
        return me.gpunode(node, *words, "--user", user, "--become-pass-file", str(me.home / "pass"))
    if password is not None:
        file = f"/home/{user}/pass"
        node.nsrun(f"cat >{file}; chown {user} {file}; chmod 600 {file}", input=f"{password}\n", check=True)
        words = (*words, "--become-pass-file", file)
    return node.run(shlex.join(("gpunode", *words)), user=user)


def serves_a_plan_and_a_setup(me: Controller, node: Host, user: str, password: str | None) -> None:
    assert "docker.default" in expect(typed(me, node, user, password, "plan", "--allow-no-gpu"), 0).stdout
    with kept(node, DAEMON_JSON):
        expect(typed(me, node, user, password, *SETUP), 0)
        assert '"nvidia"' in node.read(DAEMON_JSON)
        assert node.nsrun(f"stat -c '%U %a' {DAEMON_JSON}").stdout == "root 644\n"
        assert "no changes" in said(expect(typed(me, node, user, password, *SETUP), 0))


def test_a_password_of_sudo_serves_a_plan_and_a_setup(lab: Lab, node: Host, me: Controller) -> None:
    serves_a_plan_and_a_setup(me, node, "operator", PASSWORD)
    written = "/var/log /var/lib/gpunode /home/operator/.local"
    found = node.nsrun(
        f"journalctl --no-pager -o export | grep -aF {PASSWORD}; grep -raslF {PASSWORD} {written}"
    ).stdout
    assert found == ""
    assert not [log for log in (me.home / "state").rglob("*") if log.is_file() and PASSWORD in log.read_text()]


def test_a_wrong_password_is_tried_once(lab: Lab, node: Host, me: Controller) -> None:
    """PAM's own count, which faillock goes by: sudo's end of input was a second try, that of sudo-rs 0.2.5 two more."""
    count = "journalctl --sync; journalctl --no-pager -o cat | grep 'pam_unix(sudo:auth)'"
    before = fingerprint_of_state(node)
    old = node.nsrun(count).stdout.splitlines()
    text = refused(typed(me, node, "operator", "barley", *SETUP), 3, "sudo refused the password", "tried once")
    assert "barley" not in text
    assert len(node.nsrun(count).stdout.splitlines()) == len(old) + 1, node.nsrun(count).stdout
    assert fingerprint_of_state(node) == before


@pytest.mark.parametrize(
    ("user", "sudoers", "words"),
    [
        ("nosudo", "", ("sudo does not allow this user", "sudoers")),
        ("operator", "Defaults rootpw\n", ("sudo refused the password, for it wants root's", "rootpw")),
        ("nosudo", "nosudo ALL=(ALL) /usr/bin/id\n", ("sudo does not allow this user", "sudoers")),
    ],
    ids=["not in sudoers", "rootpw", "other commands only"],
)
def test_each_refusal_has_its_reason(
    lab: Lab, node: Host, tmp_path: Path, user: str, sudoers: str, words: tuple[str, ...]
) -> None:
    me = Controller("local", tmp_path)
    node.write("/etc/sudoers.d/95-test", sudoers, 0o440)
    try:
        refused(typed(me, node, user, PASSWORD, "plan", "--allow-no-gpu"), 3, *words)
    finally:
        node.nsrun("rm /etc/sudoers.d/95-test", check=True)


def test_doas_without_a_password_serves_a_plan_and_a_setup(lab: Lab, doas_node: Host, me: Controller) -> None:
    serves_a_plan_and_a_setup(me, doas_node, "admin", None)


def test_doas_that_wants_a_password_is_refused(lab: Lab, doas_node: Host, me: Controller) -> None:
    shown = typed(me, doas_node, "operator", PASSWORD, "plan", "--allow-no-gpu")
    refused(shown, 3, "doas wants a password, and takes it only at a terminal", "permit nopass")
    refused(typed(me, doas_node, "nosudo", PASSWORD, "plan", "--allow-no-gpu"), 3, "doas does not allow this user")
