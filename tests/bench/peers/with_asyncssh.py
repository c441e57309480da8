"""The probe on many hosts with asyncssh: with_asyncssh.py PROBE IDENTITY KNOWN_HOSTS FORKS HOST..."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import asyncssh  # type: ignore[import-not-found, unused-ignore]  # of the peers' own environment


async def main(probe: str, identity: str, known_hosts: str, forks: int, hosts: list[str]) -> int:
    known = asyncssh.import_known_hosts(Path(known_hosts).read_text())
    key = asyncssh.read_private_key(identity)
    free = asyncio.Semaphore(forks)

    async def one(host: str) -> bool:
        async with (
            free,
            asyncssh.connect(
                host, username="root", client_keys=[key], known_hosts=known, agent_path=None, config=None
            ) as connection,
        ):
            done = await connection.run(probe, encoding=None)
            return bool(done.stdout.endswith(b"@end\n"))

    answers = await asyncio.gather(*map(one, hosts))
    return 0 if all(answers) else 1


if __name__ == "__main__":
    _, probe_file, *words = sys.argv
    sys.exit(asyncio.run(main(Path(probe_file).read_text(), words[0], words[1], int(words[2]), words[3:])))
