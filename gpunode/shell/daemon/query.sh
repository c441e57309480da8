# Asking container daemons what they really run, with nothing installed for it. POSIX sh: dash, bash, busybox ash.
# Read-only. Every call is bounded. Standard input is never touched: the caller's script may still be on it.

# gpunode_tool NAME_OR_PATH -> TOOL, what to run for it. The probe puts its own in this place, which checks whose it is.
gpunode_tool() {
    TOOL=$(command -v "$1" 2>/dev/null)
}

# gpunode_bounded COMMAND...: at most five seconds, where the host has timeout(1).
gpunode_bounded() {
    if command -v timeout >/dev/null 2>&1; then
        timeout 5 "$@"
    else
        "$@"
    fi
}

# gpunode_python PROGRAM ARGUMENT...: the host's own Python; EL keeps its one out of PATH.
gpunode_python() {
    for gpunode_py in python3 /usr/libexec/platform-python; do
        if gpunode_tool "$gpunode_py"; then
            gpunode_bounded "$TOOL" -I -c "$@" </dev/null 2>/dev/null
            return
        fi
    done
    return 127
}

# gpunode_cri_status SOCKET
# Prints "source=crictl|python3|curl", then the CRI plugin's configuration as JSON. crictl prints it as the member
# "config" of a larger object, the other two print it alone.
# Returns 0: CRI answered. 1: it was asked and did not answer. 2: this host has nothing to ask with.
gpunode_cri_status() {
    gpunode_code=2
    for gpunode_way in crictl python3 curl; do
        gpunode_answer=$("gpunode_cri_by_$gpunode_way" "$1")
        case $? in
        0)
            printf 'source=%s\n%s\n' "$gpunode_way" "$gpunode_answer"
            return 0
            ;;
        127) ;; # not on this host
        *) gpunode_code=1 ;;
        esac
    done
    return "$gpunode_code"
}

gpunode_cri_by_crictl() {
    gpunode_tool crictl || return 127
    gpunode_json=$(gpunode_bounded "$TOOL" --timeout 5s --runtime-endpoint "unix://$1" info </dev/null 2>/dev/null)
    case $gpunode_json in
    *'"defaultRuntimeName"'*) printf '%s\n' "$gpunode_json" ;;
    *) return 1 ;;
    esac
}

gpunode_cri_by_python3() {
    gpunode_python "$gpunode_cri_client" "$1"
}

# A gRPC answer is five bytes of header and a protobuf, in which the JSON stands verbatim: control characters are
# framing (inside JSON they are escaped), so the line with defaultRuntimeName is the configuration, after a few
# bytes of length.
gpunode_cri_by_curl() {
    gpunode_tool curl || return 127
    "$TOOL" --version </dev/null | grep -q HTTP2 || return 127
    for gpunode_version in v1 v1alpha2; do # containerd before 1.6 has v1alpha2 alone
        gpunode_json=$(printf '\000\000\000\000\002\010\001' |
            "$TOOL" --silent --max-time 5 --http2-prior-knowledge --unix-socket "$1" --data-binary @- \
                --header 'content-type: application/grpc' --header 'te: trailers' \
                "http://localhost/runtime.$gpunode_version.RuntimeService/Status" 2>/dev/null |
            LC_ALL=C tr '\000-\037' "$gpunode_newlines" |
            LC_ALL=C sed -n '/"defaultRuntimeName"/{s/^[^{]*{*{"/{"/;p;}')
        [ -z "$gpunode_json" ] || { printf '%s\n' "$gpunode_json"; return 0; }
    done
    return 1
}

# As many as there are control characters: busybox does not support [\n*].
gpunode_newlines='\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n'

# gpunode_http_get SOCKET PATH: the body of a GET over a local socket. Returns 1 when nothing answers.
gpunode_http_get() {
    if gpunode_tool curl; then
        "$TOOL" --silent --fail --max-time 5 --unix-socket "$1" "http://localhost$2" </dev/null 2>/dev/null && return 0
    fi
    gpunode_python "$gpunode_http_client" "$1" "$2"
}

# gpunode_crio_config SOCKET: what the running CRI-O uses, as TOML. Its CRI Status has no more than the pause image,
# so its own inspection endpoint is asked, which is what `crio status config` prints.
gpunode_crio_config() {
    gpunode_http_get "$1" /config && return 0
    if gpunode_tool crio && gpunode_bounded "$TOOL" status --socket "$1" config </dev/null 2>/dev/null; then return 0; fi
    if gpunode_tool crio-status && gpunode_bounded "$TOOL" --socket "$1" config </dev/null 2>/dev/null; then return 0; fi
    return 1
}

# gpunode_docker_info SOCKET: docker's GET /info, as JSON. Returns 1 when the daemon does not answer.
gpunode_docker_info() {
    gpunode_http_get "$1" /info && return 0
    if gpunode_tool docker; then
        # The CLI prints an object and exits 0 without a daemon too; only a daemon has an ID.
        gpunode_json=$(gpunode_bounded "$TOOL" --host "unix://$1" info --format '{{json .}}' </dev/null 2>/dev/null)
        case $gpunode_json in
        *'"ServerErrors"'* | '') ;;
        *)
            printf '%s\n' "$gpunode_json"
            return 0
            ;;
        esac
    fi
    return 1
}

# One unary call over HTTP/2 with the standard library of any Python 3. The request header block is written with
# HPACK literals that need no table (RFC 7541 6.2.2); of the answer only DATA frames are read, and its status is
# known from whether a message came.
gpunode_cri_call='
import socket, struct, sys

DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY, WINDOW = 0, 1, 3, 4, 6, 7, 8
END_STREAM = ACK = 1
END_HEADERS = 4


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def literal(name, value):
    return b"".join([b"\0", bytes([len(name)]), name, bytes([len(value)]), value])


def exactly(connection, count):
    received = b""
    while len(received) < count:
        more = connection.recv(count - len(received))
        if not more:
            sys.exit(1)
        received += more
    return received


def frames(connection):
    while True:
        head = exactly(connection, 9)
        length, stream = struct.unpack(">I", b"\0" + head[:3])[0], struct.unpack(">I", head[5:])[0]
        yield head[3], head[4], stream, exactly(connection, length)


def call(path, method, message):
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(4)
    connection.connect(path)
    headers = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", method), (b":authority", b"localhost"),
               (b"content-type", b"application/grpc"), (b"te", b"trailers")]
    # Windows as wide as allowed, so that an answer of any size comes without asking for more.
    window = 2**31 - 1
    connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                       + frame(SETTINGS, 0, 0, struct.pack(">HI", 4, window))
                       + frame(WINDOW, 0, 0, struct.pack(">I", window - 65535))
                       + frame(HEADERS, END_HEADERS, 1, b"".join(literal(*h) for h in headers))
                       + frame(DATA, END_STREAM, 1, b"\0" + struct.pack(">I", len(message)) + message))
    body = b""
    for kind, flags, stream, payload in frames(connection):
        if kind in (SETTINGS, PING) and not flags & ACK:
            connection.sendall(frame(kind, ACK, 0, payload if kind == PING else b""))
        elif kind in (RESET, GOAWAY):
            sys.exit(1)
        elif stream == 1:
            body += payload if kind == DATA else b""
            if flags & END_STREAM and kind in (DATA, HEADERS):
                return body[5:] if body else None # an error has headers alone


def varint(blob, at):
    value = shift = 0
    while True:
        byte = blob[at]
        at, value, shift = at + 1, value | (byte & 127) << shift, shift + 7
        if byte < 128:
            return value, at


def fields(blob):
    at = 0
    while at < len(blob):
        tag, at = varint(blob, at)
        size = 0
        if tag & 7 == 0:
            _, at = varint(blob, at)
        elif tag & 7 == 2:
            size, at = varint(blob, at)
            yield tag >> 3, blob[at:at + size]
        else:
            size = 8 if tag & 7 == 1 else 4
        at += size

'
gpunode_cri_client=$gpunode_cri_call'
# StatusRequest{verbose: true}; StatusResponse.info is field 2, a map, so each entry is {1: key, 2: value}.
# containerd before 1.6 has v1alpha2 alone, with the same numbers.
apis = (b"runtime.v1", b"runtime.v1alpha2")
asked = (call(sys.argv[1], b"/" + api + b".RuntimeService/Status", b"\x08\x01") for api in apis)
answer = next(filter(None, asked), b"")
info = [dict(fields(entry)) for number, entry in fields(answer) if number == 2]
config = [entry.get(2, b"") for entry in info if entry.get(1) == b"config"]
if not config:
    sys.exit(1)
sys.stdout.write(config[0].decode("utf-8", "replace") + "\n")
'

gpunode_http_client='
import http.client, socket, sys


class Local(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(4)
        self.sock.connect(sys.argv[1])


connection = Local("localhost")
connection.request("GET", sys.argv[2])
answer = connection.getresponse()
if answer.status != 200:
    sys.exit(1)
sys.stdout.write(answer.read(4 << 20).decode("utf-8", "replace"))
'
