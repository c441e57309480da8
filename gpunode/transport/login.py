"""Who we are: keys one after the other, and a password where the person gave one for this run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from gpunode.transport import ssh_errors
from gpunode.transport.identities import identities
from gpunode.transport.pipelining import offer
from gpunode.transport.secret import Secret
from gpunode.transport.ssh_config import Hop
from gpunode.transport.ssh_library import Transport, paramiko
from gpunode.transport.tries import NOT_TRIED, Tries

BY_PASSWORD = ("password", "keyboard-interactive")


class LoginPassword:
    """One password for all hosts of a run: fifty hosts that ask one directory would lock the account (tries.py)."""

    def __init__(self, secret: Secret) -> None:
        self._secret = secret
        self._tries = Tries()

    def offer(self, attempt: Callable[[Secret], str]) -> str:
        """Why it did not open the door; "" where it did. `attempt` raises paramiko's errors."""
        if not self._tries.begin(wait=True):
            return f"the password was not tried: {NOT_TRIED}"
        try:
            why = attempt(self._secret)
            if not why:
                self._tries.count(taken=True)
            return why
        except paramiko.AuthenticationException as error:
            if _unanswered(error):
                raise
            self._tries.count(taken=False)
            return "the server refused the password, which was tried once"
        finally:
            self._tries.leave()


def _unanswered(error: paramiko.AuthenticationException) -> bool:
    """paramiko's own limit was over: nobody said no. Every other one is a refusal, whatever it names."""
    return str(error) == "Authentication timeout."


class Questions:
    """What a server asks in keyboard-interactive: the password is its answer to one question without echo, once."""

    def __init__(self, secret: Secret) -> None:
        self._secret = secret
        self.answered = False
        self.unanswered = ""  # a question that no password answers

    def answer(self, title: str, instructions: str, prompts: Sequence[tuple[str, bool]]) -> list[str]:
        """Raises SSHException for what it has no answer to: nothing is sent then, and the connection ends."""
        if not prompts:
            return []
        if self.answered or len(prompts) > 1 or prompts[0][1]:
            self.unanswered = " and ".join(repr(text[:60]) for text, _ in prompts[:3])
            raise paramiko.SSHException("a question without an answer")
        self.answered = True
        return [self._secret.reveal()]


def log_in(target: str, transport: Transport, hop: Hop, password: LoginPassword | None, *, session: bool) -> None:
    """As ssh does: keys first. `session`: one will be wanted next. Raises NotReached with all that was tried."""
    tried: list[str] = []
    skipped: list[str] = []
    with identities(hop, skipped) as keys:
        why, methods = _by_key(transport, hop.user, keys, tried, session=session and password is None)
    if why and password is not None and transport.is_active():
        why = _by_password(transport, hop.user, password, methods, tried) or ""
    if why:
        raise ssh_errors.login_refused(target, hop, tried, skipped, why)


def _by_key(
    transport: Transport, user: str, keys: Iterator[tuple[str, paramiko.PKey]], tried: list[str], *, session: bool
) -> tuple[str, Sequence[str]]:
    """Why no key opened the door, "" where one did; and the methods that are left, as far as the server named them."""
    following = next(keys, None)
    while following is not None:
        (label, key), following = following, next(keys, None)
        tried.append(label)
        try:
            left = offer(transport, user, key, session=session and following is None)
        except paramiko.BadAuthenticationType as error:
            return f"the server takes only {_listed(error.allowed_types)}", error.allowed_types
        except paramiko.AuthenticationException:
            if transport.is_active():
                continue
            return "then the server closed the connection (too many keys: MaxAuthTries?)", ()
        if left:
            return f"the key was accepted, but the server asks for a second proof as well ({_listed(left)})", left
        return "", ()
    return "the server accepted none of them", ()


def _by_password(
    transport: paramiko.Transport, user: str, password: LoginPassword, methods: Sequence[str], tried: list[str]
) -> str:
    """The password is sent only to a server that says it takes one."""
    if not methods:
        try:
            transport.auth_none(user)
            return ""
        except paramiko.BadAuthenticationType as error:
            methods = error.allowed_types
    if not set(methods) & set(BY_PASSWORD):
        return f"the server takes only {_listed(methods)}, and no password"
    tried.append("the password")
    return password.offer(lambda secret: _attempt(transport, user, secret, methods))


def _attempt(transport: paramiko.Transport, user: str, secret: Secret, methods: Sequence[str]) -> str:
    if "password" in methods:
        left = transport.auth_password(user, secret.reveal(), fallback=False)
    else:
        questions = Questions(secret)
        try:
            left = transport.auth_interactive(user, questions.answer)
        except paramiko.SSHException as error:
            if questions.unanswered:
                return f"the server asks {questions.unanswered}, which no password answers"
            if not questions.answered and isinstance(error, paramiko.AuthenticationException):
                return "the server ended the login before it asked for the password"
            raise
    return f"the password was accepted, but the server asks for more ({_listed(left)})" if left else ""


def _listed(methods: Sequence[str]) -> str:
    return ", ".join(filter(None, methods))[:200] or "methods it does not name"
