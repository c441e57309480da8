"""Stand-ins for sudo and sudo-rs, as Debian 13 has them: what they ask, print and count; the lab has the real ones.

Directory `bin` gets a `sudo` and the few programs that a script of ours needs before it is root, and nothing else.
"""

from __future__ import annotations

import shutil
from pathlib import Path

PASSWORD = "open sesame"
# What a refused password looks like, question by question. Each end of input at a question is one more wrong password:
# for sudo-rs 0.2.5 itself, and with sudo for PAM, where faillock counts it.
DIALECTS = {
    "sudo": (
        "$question",
        "Sorry, try again.",
        "sudo: no password was provided\nsudo: 1 incorrect password attempt",
        "sudo: a password is required",
    ),
    "sudo-rs": (
        "[sudo: $question] Password: ",
        "sudo: Authentication failed, try again.",
        "sudo: Maximum 3 incorrect authentication attempts",
        "sudo: interactive authentication is required",
    ),
}
_SUDO = r"""#!/bin/sh
cd '{directory}' || exit 99
echo "$*" >>argv
env >>environ
[ -e nopasswd ] && asks= || asks=yes
read -r _ _ _ _ _ _ terminal _ </proc/$$/stat
if [ -e requiretty ] && [ "$terminal" = 0 ]; then
  echo 'sudo: sorry, you must have a tty to run sudo' >&2
  exit 1
fi
if [ "$1" = -n ]; then
  [ -z "$asks" ] || { echo '{required}' >&2; exit 1; }
  shift
  exec "$@"
fi
[ "$1 $2" = '-S -p' ] || { echo "usage: $*" >&2; exit 1; }
question=$(printf %s "$3" | sed -e 's/%p/{owner}/' -e 's/%u/ann/')
shift 3
[ -n "$asks" ] || exec "$@"
for try in 1 2 3; do
  printf %s "{prompt}" >&2
  word= ended=
  IFS= read -r word || ended=yes
  [ ! -e slow ] || /bin/sleep 3
  [ "$word" = '{password}' ] && exec "$@"
  echo x >>tries
  echo >&2
  if [ '{dialect}' = sudo ] && [ -n "$ended" ]; then break; fi
  [ "$try" = 3 ] || echo '{again}' >&2
done
printf '%s\n' '{last}' >&2
exit 1
"""
_DOAS = """#!/bin/sh
cd '{directory}' || exit 99
echo "$*" >>argv
[ "$1" = -n ] || exit 98
[ -e nopass ] || { echo 'doas: Authentication required' >&2; exit 1; }
shift
exec "$@"
"""
NEEDED = ("sh", "env", "sed")


def stand_in(directory: Path, dialect: str, *, owner: str = "ann") -> Path:
    """`directory`/bin, for a PATH. `tries`, `argv` and `environ` are beside it; a file `nopasswd` makes it not ask, one
    `requiretty` refuse whoever has no terminal, one `slow` take its time to answer, as PAM does.
    """
    prompt, again, last, required = DIALECTS[dialect]
    words = {
        "prompt": prompt,
        "again": again,
        "last": last,
        "required": required,
        "dialect": dialect,
        "password": PASSWORD,
    }
    return _program(directory, "sudo", _filled(_SUDO, directory=directory, owner=owner, **words))


def doas(directory: Path) -> Path:
    """A host with doas alone; it wants a password unless there is a file `nopass`."""
    return _program(directory, "doas", _filled(_DOAS, directory=directory))


def neither(directory: Path) -> Path:
    return _program(directory, "true", "#!/bin/sh\n")


def _filled(text: str, **words: object) -> str:
    for name, word in words.items():
        text = text.replace(f"{{{name}}}", str(word))
    return text


def _program(directory: Path, name: str, text: str) -> Path:
    bin_ = directory / "bin"
    bin_.mkdir(exist_ok=True)
    for needed in NEEDED:
        found = shutil.which(needed)
        assert found is not None
        (bin_ / needed).symlink_to(found)
    (bin_ / name).write_text(text)
    (bin_ / name).chmod(0o755)
    return bin_
