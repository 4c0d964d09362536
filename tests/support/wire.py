"""Talks to goheap-agent as goheapd does: frames of the messages in proto/goheapd.proto.

Messages are dictionaries here. The schema is read from the .proto file itself, of which this
understands what it uses: messages, enums, oneofs, and scalar, string, bytes and message fields.
"""

import pathlib
import re
import socket
import struct

PROTO = pathlib.Path(__file__).resolve().parents[2] / "proto" / "goheapd.proto"

VARINTS = {"uint32", "uint64", "bool"}
FIELD = re.compile(r"^(?:(required|optional|repeated)\s+)?(\w+)\s+(\w+)\s*=\s*(\d+)\s*;$")


class Field:
    def __init__(self, label, kind, name, number):
        self.repeated, self.kind, self.name, self.number = label == "repeated", kind, name, number


class Schema:
    def __init__(self, path=PROTO):
        self.messages, self.enums = {}, {}
        text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
        current = None
        for line in (line.strip() for line in text.splitlines()):
            if match := re.match(r"^(message|enum)\s+(\w+)\s*{", line):
                kind, name = match.groups()
                current = {} if kind == "enum" else []
                (self.enums if kind == "enum" else self.messages)[name] = current
            elif isinstance(current, dict) and (match := re.match(r"^(\w+)\s*=\s*(\d+);", line)):
                current[match[1]] = int(match[2])
            elif isinstance(current, list) and (match := FIELD.match(line.split("/")[0].strip())):
                current.append(Field(match[1], match[2], match[3], int(match[4])))

    # ---- encoding ----

    def encode(self, message, values):
        fields = {field.name: field for field in self.messages[message]}
        unknown = set(values) - set(fields)
        assert not unknown, f"{message} has no {unknown}"
        parts = []
        for field in sorted(fields.values(), key=lambda field: field.number):
            if field.name not in values:
                continue
            value = values[field.name]
            for item in value if field.repeated else [value]:
                parts.append(self.encode_field(field, item))
        return b"".join(parts)

    def encode_field(self, field, value):
        if field.kind in self.enums and isinstance(value, str):
            value = self.enums[field.kind][value]
        if field.kind in self.messages:
            return tagged(field.number, 2, sized(self.encode(field.kind, value)))
        if field.kind in ("bytes", "string"):
            data = value.encode() if isinstance(value, str) else value
            return tagged(field.number, 2, sized(data))
        if field.kind == "fixed64":
            return tagged(field.number, 1, struct.pack("<Q", value))
        return tagged(field.number, 0, varint(int(value)))

    # ---- decoding ----

    def decode(self, message, data):
        fields = {field.number: field for field in self.messages[message]}
        values, at = {}, 0
        while at < len(data):
            key, at = read_varint(data, at)
            field = fields[key >> 3]
            value, at = self.decode_field(field, key & 7, data, at)
            if field.repeated:
                values.setdefault(field.name, []).append(value)
            else:
                values[field.name] = value
        return values

    def decode_field(self, field, wire_type, data, at):
        if wire_type == 0:
            value, at = read_varint(data, at)
            return self.name_number(field.kind, value), at
        if wire_type == 1:
            form = "<d" if field.kind == "double" else "<Q"
            return struct.unpack_from(form, data, at)[0], at + 8
        assert wire_type == 2, f"{field.name} has wire type {wire_type}"
        size, at = read_varint(data, at)
        value = data[at:at + size]
        if field.kind in self.messages:
            value = self.decode(field.kind, value)
        elif field.kind == "string":
            value = value.decode()
        return value, at + size

    def name_number(self, kind, value):
        if kind in self.enums:
            return next(name for name, number in self.enums[kind].items() if number == value)
        if kind == "sint64":
            return (value >> 1) ^ -(value & 1)
        return bool(value) if kind == "bool" else value


def varint(value):
    data = bytearray()
    while value > 0x7f:
        data.append(value & 0x7f | 0x80)
        value >>= 7
    data.append(value)
    return bytes(data)


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7f) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def tagged(number, wire_type, data):
    return varint(number << 3 | wire_type) + data


def sized(data):
    return varint(len(data)) + data


class Closed(Exception):
    """The agent has closed the connection."""


class Client:
    """One session. Every request gets an id of its own; answers may come in any order."""

    schema = Schema()

    def __init__(self, connection, timeout=60):
        self.connection, self.last_id, self.answers = connection, 0, {}
        connection.settimeout(timeout)

    @classmethod
    def connect(cls, path):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.connect(str(path))
        return cls(connection)

    def send_frame(self, data):
        self.connection.sendall(struct.pack("<I", len(data)) + data)

    def send(self, body, **values):
        """Sends a request and returns its id."""
        self.last_id += 1
        self.send_frame(self.schema.encode("Request", {"id": self.last_id, body: values}))
        return self.last_id

    def receive_exactly(self, size):
        data = bytearray()
        while len(data) < size:
            try:
                part = self.connection.recv(size - len(data))
            except ConnectionResetError:
                part = b""
            if not part:
                raise Closed
            data += part
        return bytes(data)

    def receive(self):
        """The next answer, whichever it is."""
        size, = struct.unpack("<I", self.receive_exactly(4))
        return self.schema.decode("Answer", self.receive_exactly(size))

    def answer(self, request_id):
        """The answer to that request: {"scan": …} or {"failure": …} and so on."""
        while request_id not in self.answers:
            answer = self.receive()
            self.answers[answer.pop("id")] = answer
        return self.answers.pop(request_id)

    def ask(self, body, **values):
        return self.answer(self.send(body, **values))

    def hello(self):
        return self.ask("hello", protocol=2)

    def close(self):
        self.connection.close()
