"""A gRPC server with grpcio, written independently of the load. Messages are bytes, not parsed."""

import concurrent.futures
import threading

import grpc


def echo(request, context):
    # Nobody expects these fields; every real server may send some.
    context.send_initial_metadata((("x-before", "1"),))
    context.set_trailing_metadata((("x-after", "2"),))
    return request


def fail(request, context):
    context.abort(grpc.StatusCode.NOT_FOUND, "no item \u00e4\n100%")


def compressed(request, context):
    context.set_compression(grpc.Compression.Gzip)
    return request


def changing(request, context):
    """Changes the last byte of every message that asks for it."""
    return request[:-1] + b"!" if request.endswith(b"?") else request


def varint(n):
    out = bytearray()
    while n >= 0x80:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes(out) + bytes([n])


def numbers(request, context):
    """As many messages as the request says in decimal digits, each with its number in field 1."""
    for n in range(1, int(request) + 1):
        yield b"\x08" + varint(n)


def long_messages(request, context):
    """As many messages of 10 KB as the request says."""
    for _ in range(int(request)):
        yield b"x" * 10_000


def fail_late(request, context):
    """Fails after half of the messages."""
    yield from numbers(str(int(request) // 2), context)
    context.abort(grpc.StatusCode.DATA_LOSS, "half")


def doubled(request, context):
    """Sends the third message twice."""
    for n, message in enumerate(numbers(request, context), 1):
        yield message
        if n == 3:
            yield message


def stalls(request, context):
    """Sends one message, and then nothing for a minute, or until the call is cancelled."""
    yield b"\x08\x01"
    ended = threading.Event()
    context.add_callback(ended.set)
    ended.wait(60)


methods = {
    "Echo": echo,
    "Empty": lambda request, context: b"",
    "Fail": fail,
    "Compressed": compressed,
    "Changing": changing,
}
streams = {
    "Numbers": numbers,
    "Long": long_messages,
    "FailLate": fail_late,
    "Doubled": doubled,
    "Stalls": stalls,
}
handlers = {name: grpc.unary_unary_rpc_method_handler(call) for name, call in methods.items()}
handlers |= {name: grpc.unary_stream_rpc_method_handler(call) for name, call in streams.items()}
server = grpc.server(concurrent.futures.ThreadPoolExecutor(40))
server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Items", handlers),))
port = server.add_insecure_port("127.0.0.1:0")
server.start()
print(f"listening on 127.0.0.1:{port}", flush=True)
server.wait_for_termination()
