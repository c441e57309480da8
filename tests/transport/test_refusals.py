from __future__ import annotations

import pytest

from gpunode.transport.refusals import not_started
from gpunode.transport.shell import deliver

QUESTION = "[gpunode] password of ann for ann: "
SENT = deliver("true", b"", become=True).argv[-1]

# As printed by sudo 1.9.16 and 1.9.17, sudo-rs 0.2.5 (Debian 13) and 0.2.15 (sid), and doas 6.8.2.
ROWS = {
    "sudo: password needed": ("sudo: a password is required", 1, "needs a password"),
    "sudo: not in sudoers": (f"{QUESTION}ann is not in the sudoers file.", 1, "does not allow this user"),
    "sudo: other commands only": (
        f"{QUESTION}Sorry, user ann is not allowed to execute '/usr/bin/sh -c {SENT}' as root on gpu01.",
        1,
        "does not allow this user",
    ),
    "sudo: nothing on this host": (
        f"{QUESTION}Sorry, user ann may not run sudo on gpu01.",
        1,
        "does not allow this user",
    ),
    "sudo: requiretty": ("sudo: sorry, you must have a tty to run sudo", 1, "wants a terminal"),
    "sudo: account locked": (
        f"{QUESTION}sudo: account validation failure, is your account locked?\nsudo: a password is required",
        1,
        "expired or locked",
    ),
    "sudo: password expired": (
        f"{QUESTION}sudo: Account or password is expired, reset your password and try again\nChanging password for ann."
        "\n[sudo] password for ann: \nsudo: no password was provided",
        1,
        "expired or locked",
    ),
    "sudo: wrong password": (f"{QUESTION}Sorry, try again.\n{QUESTION}", -1, "refused the password"),
    "sudo: another's password": (
        "[gpunode] password of root for ann: Sorry, try again.\n[gpunode] password of root for ann: ",
        -1,
        "for it wants root's",
    ),
    "sudo: no setuid bit": (
        "sudo: /usr/bin/sudo must be owned by uid 0 and have the setuid bit set",
        1,
        "no right to become root",
    ),
    "sudo: no new privileges": (
        'sudo: The "no new privileges" flag is set, which prevents sudo from running as root.',
        1,
        "no right to become root",
    ),
    "sudo: no sudoers": ("sudo: unable to open /etc/sudoers: No such file or directory", 1, "its sudoers file"),
    "sudo: noexec": ("gpunode: this shell may start no other program", 126, "NOEXEC"),
    "sudo-rs: password needed": ("sudo-rs: interactive authentication is required", 1, "needs a password"),
    "sudo-rs: not in sudoers": ("sudo: I'm sorry ann. I'm afraid I can't do that", 1, "does not allow this user"),
    "sudo-rs: wrong password": (
        f"[sudo: {QUESTION}] Password: \nsudo: Authentication failed, try again.\n[sudo: {QUESTION}] Password: ",
        137,
        "refused the password",
    ),
    "sudo-rs 0.2.5: wrong password, counted thrice": (
        f"[sudo: {QUESTION}] Password: \nsudo: Maximum 3 incorrect authentication attempts",
        1,
        "refused the password",
    ),
    "sudo-rs 0.2.15: input ended": (
        f"[sudo: {QUESTION}] Password: \nsudo: Authentication required but not attempted",
        1,
        "refused the password",
    ),
    "sudo-rs: account locked": (
        f"[sudo: {QUESTION}] Password: \nsudo: Account validation failure, is your account locked?",
        1,
        "expired or locked",
    ),
    "sudo-rs: faillock": (
        f"[sudo: {QUESTION}] Password: \nsudo: PAM error: Permission denied",
        1,
        "PAM does not let sudo",
    ),
    "sudo-rs 0.2.5: no sudoers": (
        "sudo-rs: invalid configuration: No such file or directory (os error 2)",
        1,
        "its sudoers file",
    ),
    "sudo-rs 0.2.15: no sudoers": ("sudo: sudoers file not found: /etc/sudoers\nsudo: \n", 1, "its sudoers file"),
    "doas: password needed": ("doas: Authentication required", 1, "doas wants a password"),
    "doas: no rule": ("doas: Operation not permitted", 1, "doas does not allow this user"),
    "doas: no configuration": (
        "doas: doas is not enabled, /etc/doas.conf: No such file or directory",
        1,
        "doas does not allow this user",
    ),
    "doas: broken configuration": ("doas: syntax error at line 4", 1, "doas does not allow this user"),
    "neither": ("sudo: not found, doas: not found", 127, "has no sudo and no doas"),
    "a sudo for a group alone (bash)": ("bash: line 1: /usr/bin/sudo: Permission denied", 126, "may not start sudo"),
    "the same (busybox)": ("sh: exec: line 0: sudo: Permission denied", 126, "may not start sudo"),
    "no sh (bash)": ("bash: line 1: sh: command not found", 127, "has no sh in its PATH"),
    "no sh (fish)": ("fish: Unknown command: sh", 127, "has no sh in its PATH"),
    "no shell": ("This account is currently not available.", 1, "the login shell runs no commands"),
}


@pytest.mark.parametrize(("said", "code", "meaning"), ROWS.values(), ids=ROWS)
def test_each_refusal_has_its_sentence(said: str, code: int, meaning: str) -> None:
    error = not_started("gpu01", code, b"", said.encode())
    assert meaning in error.problem
    assert "gpunode_script" not in error.evidence
    assert "[gpunode]" not in error.evidence
    assert error.remedy.text
