from __future__ import annotations

from tests.bench.fleet.packets import Counts

CLIENT, SERVER = bytes((10, 77, 0, 1)), bytes((10, 78, 1, 1))
SYN, ACK, PUSH = 0x02, 0x10, 0x18


def packet(counts: Counts, to_server: bool, flags: int, payload: bytes = b"", port: int = 40000) -> None:
    """One TCP segment without options, as it goes by."""
    ends = (CLIENT, SERVER) if to_server else (SERVER, CLIENT)
    ports = (port, 22) if to_server else (22, port)
    ip = bytes((0x45, *bytes(8), 6, 0, 0)) + b"".join(ends)
    tcp = b"".join(number.to_bytes(2, "big") for number in ports) + bytes((*bytes(8), 0x50, flags, *bytes(6)))
    counts.saw(ip + tcp + payload, to_server)


def test_a_round_trip_begins_where_a_client_speaks_after_the_server() -> None:
    counts = Counts()
    packet(counts, True, SYN)
    packet(counts, False, SYN | ACK)
    packet(counts, True, ACK)
    for _ in range(3):
        packet(counts, True, PUSH, b"one question in three packets")
        packet(counts, False, ACK)
    packet(counts, False, PUSH, b"answer")
    packet(counts, True, ACK)
    packet(counts, False, PUSH, b"more of it")
    packet(counts, True, PUSH, b"next")
    assert counts.taken() == {"connections": 1, "turns": 3, "packets": 13, "sent": 13 * 40 + 3 * 29 + 6 + 10 + 4}


def test_connections_are_told_apart_and_what_follows_a_count_is_counted_anew() -> None:
    counts = Counts()
    for port in (1, 2):
        packet(counts, True, SYN, port=port)
        packet(counts, True, PUSH, b"hello", port=port)
    assert counts.taken()["turns"] == 4
    packet(counts, True, PUSH, b"still the same turn", port=1)
    packet(counts, False, PUSH, b"answer", port=2)
    packet(counts, True, PUSH, b"next", port=2)
    assert counts.taken() == {"connections": 0, "turns": 1, "packets": 3, "sent": 3 * 40 + 19 + 6 + 4}
