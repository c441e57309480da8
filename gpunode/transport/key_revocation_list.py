"""OpenSSH's binary lists of revoked keys and certificates (PROTOCOL.krl), as ssh-keygen reads them."""

from __future__ import annotations

import base64
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

from gpunode.transport.known_hosts import HostKey

_LIMIT_S = 60


@lru_cache(maxsize=1024)
def revokes(path: Path, _mtime_ns: int, key: HostKey) -> bool:
    """Whether the list at `path` has `key`, which may be a certificate. Asked once for each, per content.

    Raises OSError without ssh-keygen, or when it does not answer in time, and ValueError where it cannot tell.
    """
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "key.pub")
        file.write_text(f"{key.type} {base64.b64encode(key.blob).decode('ascii')}\n", encoding="ascii")
        command = ("ssh-keygen", "-Q", "-f", str(path.absolute()), str(file))
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=_LIMIT_S)
        except subprocess.TimeoutExpired as error:
            raise TimeoutError(f"ssh-keygen did not answer within {_LIMIT_S} seconds") from error
    if done.returncode == 0:
        return False
    if b"REVOKED" in done.stdout:  # it ends with 1 for an error as well
        return True
    said = (done.stderr or done.stdout).decode("utf-8", "replace").replace(str(file), "the key")
    raise ValueError(" ".join(said.split())[:200] or f"ssh-keygen ended with {done.returncode}")
