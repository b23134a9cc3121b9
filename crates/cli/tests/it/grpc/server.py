"""A gRPC server with grpcio, written independently of the load. Messages are bytes, not parsed."""

import concurrent.futures
import sys

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


methods = {
    "Echo": echo,
    "Empty": lambda request, context: b"",
    "Fail": fail,
    "Compressed": compressed,
    "Changing": changing,
}
handlers = {name: grpc.unary_unary_rpc_method_handler(call) for name, call in methods.items()}
server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Items", handlers),))
port = server.add_insecure_port("127.0.0.1:0")
server.start()
print(f"listening on 127.0.0.1:{port}", flush=True)
server.wait_for_termination()
