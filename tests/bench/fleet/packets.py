"""What went over the wire, counted packet by packet. It does not depend on how busy the machine is, as times do."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

_TCP = 6
_SYN, _ACK = 0x02, 0x10


@dataclass
class Counts:
    """Of all connections since the last `taken`."""

    connections: int = 0
    turns: int = 0  # round trips: how often a client began to speak, after the server had (or had not yet) answered
    packets: int = 0
    sent: int = 0  # bytes with headers, both ways
    _server_spoke_last: dict[bytes, bool] = field(default_factory=dict, repr=False)  # address and port of the client

    def saw(self, packet: bytes, to_server: bool) -> None:
        """One IPv4 packet. Pure acknowledgements turn nothing: nobody waits for them (but a full window does)."""
        self.packets += 1
        self.sent += len(packet)
        if len(packet) < 40 or packet[0] >> 4 != 4 or packet[9] != _TCP:
            return
        head = (packet[0] & 15) * 4
        flags = packet[head + 13]
        if to_server and flags & (_SYN | _ACK) == _SYN:
            self.connections += 1
            self.turns += 1
            self._server_spoke_last[packet[12:20] + packet[head : head + 2]] = True
            return
        if len(packet) <= head + (packet[head + 12] >> 4) * 4:
            return  # no payload
        if to_server:
            flow = packet[12:20] + packet[head : head + 2]
            if self._server_spoke_last.get(flow, True):
                self.turns += 1
                self._server_spoke_last[flow] = False
        else:
            self._server_spoke_last[packet[16:20] + packet[12:16] + packet[head + 2 : head + 4]] = True

    def taken(self) -> dict[str, int]:
        """The counts as JSON has them, and from zero again; which side of a connection spoke last is remembered."""
        found = {name: value for name, value in asdict(self).items() if not name.startswith("_")}
        self.connections = self.turns = self.packets = self.sent = 0
        return found
