"""A device plugin of Kubernetes (v1beta1) for the GPUs that nvidia-smi shows. For a lab host's python3.

    python3 -m lab.device_plugin        (in a package with cri_pod.py; standard library only)

It stands for NVIDIA's, in a pod: says which GPUs there are, answers Allocate with NVIDIA_VISIBLE_DEVICES, and registers
again after a restart of the kubelet, which removes its socket. Field numbers are from deviceplugin/v1beta1/api.proto.
gRPC's paths come compressed (HPACK), and need not be read: of the two methods that a kubelet calls here only Allocate
asks with something.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import threading
import time

from . import cri_pod
from .cri_pod import ACK, DATA, END_HEADERS, END_STREAM, HEADERS, PING, SETTINGS, field, frame, header

FOLDER = "/var/lib/kubelet/device-plugins"
OWN, KUBELET = f"{FOLDER}/nvidia-gpu.sock", f"{FOLDER}/kubelet.sock"
PREFACE = len(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")


def main() -> None:
    with open("/proc/self/comm", "w") as comm:
        comm.write("nvidia-device-p")  # what the kernel keeps of nvidia-device-plugin
    listing = subprocess.run(("nvidia-smi", "-L"), stdout=subprocess.PIPE, text=True).stdout
    devices = re.findall(r"UUID: (GPU-[0-9a-f-]+)", listing)
    if not devices:
        print("No devices found. Waiting indefinitely.", flush=True)
        threading.Event().wait()
    while True:
        register(devices)
        while os.path.exists(OWN):
            time.sleep(0.1)


def register(devices: list[str]) -> None:
    if os.path.exists(OWN):
        os.unlink(OWN)
    server = socket.socket(socket.AF_UNIX)
    server.bind(OWN)
    server.listen()
    threading.Thread(target=serve, args=(server, devices), daemon=True).start()
    request = field(1, "v1beta1") + field(2, os.path.basename(OWN)) + field(3, "nvidia.com/gpu")
    while os.path.exists(OWN):  # until the kubelet is there
        try:
            cri_pod.call(KUBELET, "Register", request, "/v1beta1.Registration/")
        except (OSError, SystemExit):
            time.sleep(0.1)
        else:
            print(f"Registered {len(devices)} devices", flush=True)
            return


def serve(server: socket.socket, devices: list[str]) -> None:
    while True:
        connection, _ = server.accept()
        threading.Thread(target=answer, args=(connection, devices), daemon=True).start()


def answer(connection: socket.socket, devices: list[str]) -> None:
    stream = connection.makefile("rb")
    stream.read(PREFACE)
    connection.sendall(frame(SETTINGS, 0, 0))
    asked: dict[int, bytes] = {}
    while head := stream.read(9):
        payload = stream.read(int.from_bytes(head[:3], "big"))
        kind, flags, number = head[3], head[4], int.from_bytes(head[5:9], "big")
        if kind in (SETTINGS, PING) and not flags & ACK:
            connection.sendall(frame(kind, ACK, 0, payload if kind == PING else b""))
        if kind != DATA:
            continue
        asked[number] = asked.get(number, b"") + payload
        if flags & END_STREAM:
            connection.sendall(reply(number, asked.pop(number)[5:], devices))


def reply(number: int, request: bytes, devices: list[str]) -> bytes:
    """Headers and a message; the stream of ListAndWatch stays open, that of Allocate ends."""
    begin = frame(HEADERS, END_HEADERS, number, header(":status", "200") + header("content-type", "application/grpc"))
    if not request:
        message = b"".join(field(1, field(1, name) + field(2, "Healthy")) for name in devices)
        return begin + frame(DATA, 0, number, framed(message))
    message = b""
    for container in parts(request):
        chosen = ",".join(part.decode() for part in parts(container))
        print(f"Allocate {chosen}", flush=True)
        message += field(1, field(1, field(1, "NVIDIA_VISIBLE_DEVICES") + field(2, chosen)))
    end = frame(HEADERS, END_HEADERS | END_STREAM, number, header("grpc-status", "0"))
    return begin + frame(DATA, 0, number, framed(message)) + end


def framed(message: bytes) -> bytes:
    return b"\0" + len(message).to_bytes(4, "big") + message


def parts(message: bytes) -> list[bytes]:
    """The fields of a message that has only strings and messages."""
    found = []
    while message:
        length, shift, at = 0, 0, 1
        while True:
            length |= (message[at] & 127) << shift
            shift, at = shift + 7, at + 1
            if not message[at - 1] & 128:
                break
        found.append(message[at : at + length])
        message = message[at + length :]
    return found


if __name__ == "__main__":
    main()
