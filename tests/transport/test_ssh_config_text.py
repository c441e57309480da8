"""ssh_config as gpunode reads it, next to what `ssh -G` of this machine says of the same files."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

import pytest

from gpunode.errors import TransportError
from gpunode.transport import ssh_config_text
from gpunode.transport.ssh_config import Hop, SshOptions, SshTarget, resolve
from gpunode.transport.ssh_config_lookup import looked_up
from gpunode.transport.ssh_config_text import read_config
from gpunode.transport.ssh_config_words import escaped, words

GPU07 = SshTarget("gpu07")


def hop_of(home: Path, config: str, more: str = "", target: SshTarget = GPU07) -> Hop:
    """What gpunode makes of a config; the word MORE in it is the name of a file that holds `more`."""
    (home / ".ssh").mkdir()
    (home / ".ssh/MORE").write_text(more)
    (home / ".ssh/config").write_text(config.replace("MORE", str(home / ".ssh/MORE")))
    options = SshOptions(home=home, config=(home / ".ssh/config",))
    return resolve(target, options, lambda typed: looked_up(typed, options))


def ssh_says(home: Path) -> dict[str, str]:
    asked = ("ssh", "-G", "-F", str(home / ".ssh/config"), "gpu07")
    said = subprocess.run(asked, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=True).stdout
    return dict(line.partition(" ")[::2] for line in said.splitlines())


FULL = "Host *\n CanonicalizeHostname yes\n CanonicalDomains absent.example example.com\n CanonicalizeMaxDots 0"

# (host, port, user) of gpu07; the second text is the file MORE. `User ann` stands at the end of each.
CASES: dict[str, tuple[str, str, tuple[str, int, str]]] = {
    "capitals in Match": ("Match Host bastion*\n HostName 10.6.6.6", "", ("gpu07", 22, "ann")),
    "capitals that hold": ("User bob\nmatch HOST gpu* USER bob\n port 2222", "", ("gpu07", 2222, "bob")),
    "an equals sign": ("Match host=other\n Port 2222\nHost=gpu07\n User=bob", "", ("gpu07", 22, "bob")),
    "not": ("Match !host gpu07\n Port 2222\nMatch !exec false\n User bob", "", ("gpu07", 22, "bob")),
    "HostName in final": ("Match final\n HostName 10.9.9.9\n Port 2", "", ("gpu07", 2, "ann")),
    "final all": ("Match final all\n Port 2222", "", ("gpu07", 2222, "ann")),
    "final comes last": ("Match final\n Port 2\n User x\nHost gpu*\n Port 3", "", ("gpu07", 3, "ann")),
    "Include in final": (
        "Match final\n Include MORE\nHost *\n User bob",
        "User c\nHost *\n Port 2",
        ("gpu07", 2, "bob"),
    ),
    "not final": ("Match !final host gpu*\n Port 2\nHost *\n Port 3", "", ("gpu07", 2, "ann")),
    "canonical all": ("Match canonical all\n Port 2222", "", ("gpu07", 22, "ann")),
    "all": ("Match all\n Port 2222", "", ("gpu07", 2222, "ann")),
    "the host that was found": ("Host gpu07\n HostName a.x\nMatch host a.x\n Port 2", "", ("a.x", 2, "ann")),
    "the host that was typed": ("HostName a.x\nMatch originalhost gpu07\n Port 2", "", ("a.x", 2, "ann")),
    "brackets are letters": ("Host gpu[0-9]7\n Port 2222", "", ("gpu07", 22, "ann")),
    "Include in another Host": ("Host other\n Include MORE", "Host *\n Port 2222", ("gpu07", 22, "ann")),
    "Include in this Host": ("Host gpu07\n Include MORE\n User bob", "Host gpu*\n Port 2", ("gpu07", 2, "bob")),
    "Include in two": ("Host gpu07\n Include MORE\nHost x\n Port 3", "Host x\n Port 2", ("gpu07", 22, "ann")),
    "Include in a Match": (
        "User bob\nMatch user root\n Include MORE",
        "Match host gpu*\n Port 2222",
        ("gpu07", 22, "bob"),
    ),
    "Include in a Match not": ("Match !user bob\n Include MORE", "Host !x *\n Port 2222", ("gpu07", 2222, "ann")),
    "a comma in Host": ("Host gpu07,x\n Port 2\nHost !gpu07,x *\n User bob", "", ("gpu07", 22, "bob")),
    "Include behind a block": ("Host x\n Port 3\nMatch all\nInclude MORE", "Port 2222", ("gpu07", 2222, "ann")),
    "Include and then its block": ("Host x\n Include MORE\n Port 3", "Host gpu07", ("gpu07", 22, "ann")),
    "Include behind a tab": ("Include\tMORE", "Port 2222", ("gpu07", 2222, "ann")),
    "Include in quotes": ('Include "MORE" absent*', "Port 2222", ("gpu07", 2222, "ann")),
    "comments": ("Host gpu07 # 08\n HostName a.x # rack 3\n Port 22 # Port 23\n#User c", "", ("a.x", 22, "ann")),
    "a comment names a host": ("Host x # gpu07\n Port 2222", "", ("gpu07", 22, "ann")),
    "quotes": ('Host "gpu07"\n HostName \'a.x\'\n User "bob"', "", ("a.x", 22, "bob")),
    "the end of a line elsewhere": ("Host gpu07\r\n Port 2222\r\n", "", ("gpu07", 2222, "ann")),
    "what holds comes first": ("Port 2\nHost gpu07\n Port 3", "", ("gpu07", 2, "ann")),
    "an address has no full name": (f"HostName 10.9.9.9\n{FULL}", "", ("10.9.9.9", 22, "ann")),
    "an address has a second look": (
        f"Host gpu07\n HostName 10.9.9.9\nMatch canonical originalhost gpu07\n Port 2\n{FULL}",
        "",
        ("10.9.9.9", 2, "ann"),
    ),
    "Host is asked of HostName in the second look": (
        f"Host 10.*\n Port 2\nHost gpu07\n HostName 10.9.9.9\n{FULL}",
        "",
        ("10.9.9.9", 2, "ann"),
    ),
    "a full name behind a proxy": (f"ProxyJump b\n{FULL}", "", ("gpu07", 22, "ann")),
    "a full name that is typed": (f"HostName a.b\nMatch canonical\n Port 2\n{FULL}", "", ("a.b", 2, "ann")),
    "full names without domains": (
        "Match canonical\n Port 2\nHost *\nCanonicalizeHostname true",
        "",
        ("gpu07", 2, "ann"),
    ),
    "full names in no domain": (f"CanonicalDomains none\n{FULL}", "", ("gpu07", 22, "ann")),
    "no full names": ("CanonicalizeHostname no\nMatch canonical\n Port 2", "", ("gpu07", 22, "ann")),
    "a name of a name": ("Host gpu*\n HostName %h.x%%", "", ("gpu07.x%", 22, "ann")),
}


@pytest.mark.parametrize(("config", "more", "want"), CASES.values(), ids=CASES)
def test_it_is_read_as_ssh_does(tmp_path: Path, config: str, more: str, want: tuple[str, int, str]) -> None:
    hop = hop_of(tmp_path, f"{config}\nHost *\nUser ann\n", more)
    ssh = ssh_says(tmp_path)
    assert (ssh["hostname"], int(ssh["port"]), ssh["user"]) == want
    assert (hop.host, hop.port, hop.user) == want


NAMES = {"gpu07.example.com.": "gpu07.example.com", "node-a.example.com.": "", "cn.example.com.": "real.example.org"}
FOLLOW = f"CanonicalizePermittedCNAMEs *.example.net:* *.example.com:*.example.org\n{FULL}"


@pytest.mark.parametrize(
    ("config", "want"),
    [
        (FULL, ("gpu07.example.com", 22, "ann")),
        (f"Host gpu07\n HostName node-a\n{FULL}", ("node-a.example.com", 22, "ann")),
        (f"Host gpu07\n HostName node-b\n{FULL}", ("node-b", 22, "ann")),
        (f"Host gpu07.example.com\n Port 2\n{FULL}", ("gpu07.example.com", 2, "ann")),
        (f"Match canonical host *.com originalhost gpu07\n Port 2\n{FULL}", ("gpu07.example.com", 2, "ann")),
        (f"Match originalhost *.com\n Port 2\n{FULL}", ("gpu07.example.com", 22, "ann")),
        (f"ProxyJump b\nCanonicalizeHostname always\n{FULL}", ("gpu07.example.com", 22, "ann")),
        (f"HostName gpu07.example.com.\n{FULL}", ("gpu07.example.com", 22, "ann")),
        (f"HostName cn\n{FULL}", ("cn.example.com", 22, "ann")),
        (f"HostName cn\n{FOLLOW}", ("real.example.org", 22, "ann")),
        (f"HostName cn.example.com\n{FOLLOW}", ("cn.example.com", 22, "ann")),
    ],
    ids=[
        "a domain has it",
        "HostName comes first",
        "no domain has it",
        "Host is asked of the full name",
        "originalhost is asked of what was typed",
        "and of nothing else",
        "always, behind a proxy too",
        "a name that ends with a dot",
        "an alias stays",
        "an alias that may be followed",
        "an alias that the resolver does not know",
    ],
)
def test_a_full_name_is_what_ssh_makes_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: str, want: tuple[str, int, str]
) -> None:
    """The resolver's answers are made up; ssh makes the same of them where they stand in /etc/hosts."""

    def answer(name: str, *_: object, **__: object) -> list[tuple[int, int, int, str, tuple[str, int]]]:
        if name not in NAMES:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, NAMES[name], ("10.0.0.7", 0))]

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    hop = hop_of(tmp_path, f"{config}\nHost *\nUser ann\n")
    assert (hop.host, hop.port, hop.user) == want
    assert hop.key_names[-1] == want[0]


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("CanonicalizeHostname maybe", "CanonicalizeHostname 'maybe' is not yes, no or always"),
        ("CanonicalizeHostname yes\nCanonicalizeFallbackLocal no", "gpu07 is in no domain of CanonicalDomains"),
    ],
)
def test_a_host_without_a_full_name_that_has_to_have_one_is_refused(tmp_path: Path, config: str, said: str) -> None:
    with pytest.raises(TransportError) as refused:
        hop_of(tmp_path, config)
    assert said in refused.value.evidence


def test_an_include_that_is_not_for_this_host_runs_nothing(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    hop_of(tmp_path, "Host other\n Include MORE", f'Match exec "touch {ran}"\n Port 2222')
    assert not ran.exists()


@pytest.mark.parametrize(
    ("criterion", "said"),
    [
        ("localnetwork 10.0.0.0/8", "localnetwork 10.0.0.0/8"),
        ("tagged x", "tagged x"),
        ("!sessiontype shell", "!sessiontype shell"),
        ("host gpu07 version 1.%", "version 1.%"),
        ("hots gpu07", "hots gpu07"),
    ],
)
def test_a_match_for_what_ssh_alone_knows_is_refused_where_it_counts(tmp_path: Path, criterion: str, said: str) -> None:
    config = f"Host gpu07\n User bob\nMatch {criterion}\n HostName 10.6.6.6"
    with pytest.raises(TransportError) as refused:
        hop_of(tmp_path, config)
    assert f"Match {said} ({tmp_path}/.ssh/config, line 3)" in refused.value.evidence


def test_a_match_for_what_ssh_alone_knows_is_nothing_to_other_hosts(tmp_path: Path) -> None:
    assert hop_of(tmp_path, "Match host other tagged x\n Port 2222").port == 22


@pytest.mark.parametrize(
    ("config", "port", "user", "command"),
    [
        ("ProxyCommand nc b %h %p", 2222, None, "nc b gpu07 2222"),
        ("ProxyCommand ssh -W %h:%p b\nHostName %h.x", 2222, None, "ssh -W gpu07.x:2222 b"),
        ("HostName %h.x\nMatch exec 'test %h%% = gpu07.x%%'\n ProxyCommand b", None, None, "b"),
        ("HostName %h.x\nMatch !exec 'test %h = gpu07.x'\n ProxyCommand b", None, None, None),
        ("ProxyCommand ssh -l %r b '#' %%%n", None, "bob", "ssh -l bob b '#' %gpu07"),
        ("Match user bob\n ProxyCommand b", None, "bob", "b"),
        ("Match user bob\n ProxyCommand b", None, "eve", None),
        ("Match exec 'test %r%p = bob22'\n ProxyCommand b", None, "bob", "b"),
    ],
)
def test_what_was_typed_comes_before_the_config(
    tmp_path: Path, config: str, port: int | None, user: str | None, command: str | None
) -> None:
    hop = hop_of(tmp_path, f"{config}\nHost *\n User eve\n Port 22", "", SshTarget("gpu07", user, port))
    assert (hop.proxy_command, hop.user, hop.port) == (command, user or "eve", port or 22)


@pytest.mark.parametrize(
    ("config", "want"),
    [
        ("ProxyCommand nc\nProxyJump b", ("nc", ())),
        ("ProxyJump b\nProxyCommand nc", (None, ("b",))),
        ("ProxyCommand none\nProxyJump b", (None, ())),
        ("ProxyJump none\nProxyCommand nc", (None, ())),
        ("Host gpu07\n ProxyJump ann@b:2200, c\nHost *\n ProxyCommand nc", (None, ("ann@b:2200", "c"))),
    ],
)
def test_of_two_ways_the_first_counts(tmp_path: Path, config: str, want: tuple[str | None, tuple[str, ...]]) -> None:
    hop = hop_of(tmp_path, config)
    assert (hop.proxy_command, hop.jumps) == want


def test_the_names_of_files_are_read_as_ssh_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHERE", "/where")
    hop = hop_of(
        tmp_path,
        """Host gpu*
        UserKnownHostsFile "~/my hosts" ~/of.%h ${WHERE}/%n-%p%% ${NOWHERE}/x # none
        IdentityFile "~/.ssh/my key"
        IdentityFile %d/%r-%h
        CertificateFile ~/%n-cert.pub
        RevokedHostKeys "/etc/ssh/revoked keys"
        HostName a.%hx
        IdentitiesOnly true""",
        "",
        SshTarget("gpu07", "bob"),
    )
    home = tmp_path
    assert hop.user_known_hosts == (
        home / "my hosts",
        home / "of.a.gpu07x",
        Path("/where/gpu07-22%"),
        Path("${NOWHERE}/x"),
    )
    assert hop.identities == (home / ".ssh/my key", home / "bob-a.gpu07x")
    assert hop.certificates == (home / "gpu07-cert.pub",)
    assert hop.revoked_keys == Path("/etc/ssh/revoked keys")
    assert hop.identities_only


@pytest.mark.parametrize("config", ["", "GlobalKnownHostsFile none", 'GlobalKnownHostsFile "/etc/hosts" /b'])
def test_the_systems_known_hosts_are_sshs(tmp_path: Path, config: str) -> None:
    hop = hop_of(tmp_path, config)
    said = ssh_says(tmp_path)["globalknownhostsfile"]
    assert [str(path) for path in hop.system_known_hosts] == ([] if said == "none" else said.split())


@pytest.mark.parametrize(("word", "seconds"), [("30", 30), ("30s", 30), ("1m30", 90), ("1H", 3600), ("none", 10)])
def test_a_time_is_read_as_ssh_does(tmp_path: Path, word: str, seconds: float) -> None:
    assert hop_of(tmp_path, f"ConnectTimeout {word}").connect_timeout_s == seconds


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("Host gpu07\n VisualHostKey", "line 2: 'VisualHostKey' is no keyword with a value"),
        ('User "bob', 'line 1: a " that does not end'),
        ("User #bob", "line 1: user has no value"),
        ("Match host", "line 1: Match host has no value"),
        ("Include ~absent/x MORE", "more than 16 deep"),
    ],
)
def test_what_ssh_does_not_read_is_told_by_its_line(tmp_path: Path, config: str, said: str) -> None:
    with pytest.raises(TransportError) as refused:
        hop_of(tmp_path, config, f"Include {tmp_path}/.ssh/config")
    assert said in refused.value.evidence
    assert str(tmp_path / ".ssh") in refused.value.evidence


@pytest.mark.parametrize("mode", [0o666, 0o602])
def test_a_file_that_others_may_write_is_not_read(tmp_path: Path, mode: int) -> None:
    (tmp_path / "config").write_text("Port 2222")
    (tmp_path / "config").chmod(mode)
    with pytest.raises(TransportError) as refused:
        read_config([tmp_path / "config"])
    assert f"can be written by others (mode {mode:o}" in refused.value.evidence
    assert refused.value.remedy.text == f"chmod go-w {tmp_path}/config"


@pytest.mark.parametrize("private", [True, False])
def test_a_file_that_its_group_may_write_is_read_where_that_is_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, private: bool
) -> None:
    monkeypatch.setattr(ssh_config_text, "is_private", lambda group, user: private)
    (tmp_path / "config").write_text("Port 2222")
    (tmp_path / "config").chmod(0o664)
    if private:
        assert "port 2222" in read_config([tmp_path / "config"])
        return
    with pytest.raises(TransportError) as refused:
        read_config([tmp_path / "config"])
    assert "mode 664" in refused.value.evidence


def test_a_file_that_is_not_there_says_nothing(tmp_path: Path) -> None:
    assert read_config([tmp_path / "absent"]) == ""


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("a  b\tc", ["a", "b", "c"]),
        ("'a b' \"c 'd\" e#f #g", ["a b", "c 'd", "e#f"]),
        (r"a\ b \"c \\d\q", ["a b", '"c', r"\d\q"]),
        ("'' x", ["", "x"]),
    ],
)
def test_the_words_of_a_line(text: str, want: list[str]) -> None:
    assert words(text) == want
    assert words(" ".join(escaped(word) or "''" for word in want)) == want
