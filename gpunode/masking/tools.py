"""Programs whose flags take a secret that no name gives away: `curl -u user:PW`, `mysql -pPW`, `docker login -p PW`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from gpunode.masking.names import MASK, is_secret
from gpunode.regex import regex


class Tool(NamedTuple):
    flag: str  # a pattern; what stands behind it is secret: the rest of the word, or the next one
    verbs: frozenset[str] = frozenset()  # only behind one of them
    attached: bool = False  # only the rest of the word: `mysql -p NAME` asks for the password
    once: bool = False  # what follows is another program's
    until: frozenset[str] = frozenset()  # names of programs whose flags follow
    runs: bool = False  # `run` and `create` take ports and users of a container


_LOGIN = Tool("-p", frozenset(("login",)), runs=True)
_MYSQL = Tool("-p", attached=True)
# --token; --agent-token has no short form (k3s server --help).
_K3S = Tool(r"-t(?![\w-])", until=frozenset(("kubectl", "crictl", "ctr")))
TOOLS: Mapping[str, Tool] = {
    # Behind letters without a value: -sSfu user:PW (curl.1).
    "curl": Tool(r"--(?:proxy-)?user(?![\w-])|-[#0-6aBfgGiIjJklLMnNOpqRsSvVZ:]*[uU]"),
    **dict.fromkeys(("mysql", "mysqldump", "mysqladmin", "mysqlimport", "mysqlcheck", "mysqlshow"), _MYSQL),
    **dict.fromkeys(("mariadb", "mariadb-dump", "mariadb-admin"), _MYSQL),
    **dict.fromkeys(("docker", "podman", "nerdctl", "buildah", "skopeo", "helm", "oras", "oc", "az"), _LOGIN),
    "ctr": Tool(r"--user(?![\w-])|-u", frozenset(("pull", "push", "fetch", "fetch-object", "push-object")), runs=True),
    "sshpass": Tool("-p", once=True, until=frozenset(("ssh", "scp", "sftp", "rsync"))),
    **dict.fromkeys(("redis-cli", "valkey-cli"), Tool("-a")),
    **dict.fromkeys(("mongo", "mongosh", "mongodump", "mongorestore"), Tool("-p")),
    "ipmitool": Tool("-P"),
    **dict.fromkeys(("k3s", "rke2"), _K3S),
}
# One of them stands in every text that any of these flags stands in.
STEMS = (
    "curl",
    "mysql",
    "mariadb",
    "login",
    "ctr",
    "sshpass",
    "redis-cli",
    "valkey-cli",
    "mongo",
    "ipmitool",
    "k3s",
    "rke2",
)
WORDS = frozenset(word for tool in TOOLS.values() for word in (*tool.verbs, *tool.until)) | {"run", "create"}
NAMED_FLAG = regex(r"--?[A-Za-z][\w.-]*")
OTHER_FLAG = regex(r"--[A-Za-z]|-[A-Za-z]$")
# 8080:80, 127.0.0.1:8080:80/tcp, 1000:1000
_PORTS_OR_IDS = regex(r"(?:[0-9.]{1,15}:)?[0-9]{1,10}(?:-[0-9]{1,5})?:[0-9]{1,10}(?:-[0-9]{1,5})?(?:/[a-z]{1,4})?")


def names_tools(text: str) -> bool:
    """Whether `text` may hold one of their secrets: if not, gpunode/masking/shell.py need not look, nor be loaded."""
    return any(stem in text for stem in STEMS)


class Command:
    """What is asked of the words of a command line as they come one after the other.

    A program's name may be an argument of another (a directory, a container's name): all that were named are asked.
    """

    __slots__ = ("_container", "_count", "_known", "_ready", "behind", "pending", "tools")

    def __init__(self, known: Mapping[str, Tool] = TOOLS) -> None:
        self._known = known
        self.begin()

    def begin(self) -> None:
        """Another command begins here."""
        self.tools: list[Tool] = []  # that were named
        self.pending = False  # the next word is secret
        self._ready: list[Tool] = []  # those of them that need no verb, or one of their verbs came
        self._container = False  # of `docker run` and its like
        self.behind = ""  # the flag for which it is
        self._count = 0

    def take(self, word: str, *, unquoted: bool = False) -> str | None:
        """What to show of a whole word: None where it is no secret by what came before it, nor by its own flag.

        `unquoted`: words were parted at blanks, so that a secret may be several: all go, up to the next flag.
        """
        if self.pending and not OTHER_FLAG.match(word):
            shown = self.stays(self.behind, word)
            self.pending = unquoted and not shown
            return None if shown else MASK
        self.pending, self.behind = False, ""
        self.name(word.strip("\"'").rpartition("/")[2].partition(":")[0])
        if found := self.flag(word, 0):
            return self._behind(word, *found, unquoted=unquoted)
        flag, equals, _ = word.partition("=")
        self.pending = (unquoted or not equals) and bool(NAMED_FLAG.fullmatch(flag)) and is_secret(flag)
        return None

    def _behind(self, word: str, tool: Tool, end: int, *, unquoted: bool) -> str | None:
        value = word[end:].removeprefix("=")
        if value and self.stays(word[:end], value):
            return None
        self.pending = unquoted if value else not tool.attached
        self.behind = word[:end]
        self.used(tool)
        return word[: len(word) - len(value)] + MASK if value else None

    def name(self, word: str) -> None:
        """A program, or a verb of one."""
        self._count += 1
        if self.tools:
            self._verb(word)
        if tool := self._known.get(word):
            self._add(tool)
        elif self._count <= 3 and word in ("server", "agent"):
            self._add(_K3S)  # the arguments of a container of k3s

    def _verb(self, word: str) -> None:
        self.tools = [tool for tool in self.tools if word not in tool.until]
        self._ready = [tool for tool in self.tools if tool in self._ready or word in tool.verbs]
        self._container = self._container or (word in ("run", "create") and any(tool.runs for tool in self.tools))

    def _add(self, tool: Tool) -> None:
        self._container = self._container and not tool.runs
        if tool not in self.tools:
            self.tools.append(tool)
        if not tool.verbs and tool not in self._ready:
            self._ready.append(tool)

    def flag(self, text: str, start: int) -> tuple[Tool, int] | None:
        """The tool whose flag stands at `start`, and where that ends, if what is behind it is secret."""
        for tool in self._ready:
            if found := re.compile(tool.flag).match(text, start):
                return tool, found.end()
        return None

    def stays(self, flag: str, value: str) -> bool:
        """Ports and users of a container, and a user's number: people need to see them."""
        if self._container and _PORTS_OR_IDS.fullmatch(value):
            return True
        return flag.endswith(("u", "user")) and value.isdigit()

    def used(self, tool: Tool) -> None:
        """A flag's secret was found."""
        if tool.once:
            self.tools.remove(tool)
            self._ready.remove(tool)
