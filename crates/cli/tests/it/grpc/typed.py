"""A gRPC server whose messages protoc and Google's library for Python compile, encode and read.

The first argument is the folder of items.proto, the second a file with messages as JSON, by their names.
"""

import concurrent.futures
import json
import math
import random
import sys
import tempfile

import grpc
from google.protobuf import json_format
from grpc_tools import protoc

folder, cases = sys.argv[1:]
with tempfile.TemporaryDirectory() as out:
    well_known = protoc.__file__.rsplit("/", 1)[0] + "/_proto"
    for file in ("items.proto", "old.proto"):
        args = ["protoc", f"-I{folder}", f"-I{well_known}", f"--python_out={out}", f"{folder}/{file}"]
        assert protoc.main(args) == 0
    sys.path.insert(0, out)
    import items_pb2

with open(cases) as file:
    cases = json.load(file)


def expected(request):
    return json_format.Parse(json.dumps(cases[request.name]), items_pb2.Item())


def check(request, context):
    """The request must be what this library reads in the same JSON."""
    item = expected(request)
    # As JSON, because a NaN is not equal to itself, and an Any is compared by its bytes.
    if json_format.MessageToDict(item) != json_format.MessageToDict(request):
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"got {request}; expected {item}")
    return item.SerializeToString()


def turn(item):
    """The same message with its fields in random order, and another message before it that it replaces."""
    parts = []
    for field, value in item.ListFields():
        one = items_pb2.Item()
        values = getattr(one, field.name)
        if field.is_repeated and field.message_type and field.message_type.GetOptions().map_entry:
            for key in reversed(list(value)):
                one = items_pb2.Item()
                if field.name == "parts":
                    getattr(one, field.name)[key].CopyFrom(value[key])
                else:
                    getattr(one, field.name)[key] = value[key]
                parts.append(one.SerializeToString())
            continue
        if field.is_repeated:
            values.extend(value)
        elif field.message_type:
            values.CopyFrom(value)
            values.SetInParent()
        else:
            setattr(one, field.name, value)
        parts.append(one.SerializeToString())
    random.shuffle(parts)
    return items_pb2.Item(name="other", long_id=0).SerializeToString() + b"".join(parts)


def turned(request, context):
    return turn(expected(request))


def numbered(request):
    """As many messages as the request says, from JSON in which the number of each replaces placeholders."""
    for n in range(1, request.small + 1):
        text = cases[request.name]["each"]
        for placeholder, number in (("{n}", n), ("{n-1}", n - 1), ("{n+100}", n + 100)):
            text = text.replace(placeholder, str(number))
        yield json_format.Parse(text, items_pb2.Item())


def count(request, context):
    for item in numbered(request):
        yield item.SerializeToString(deterministic=True)


def count_turned(request, context):
    for item in numbered(request):
        yield turn(item)


def newer(request, context):
    """A field that only this server knows: 99, with the number 1."""
    return expected(request).SerializeToString() + b"\x98\x06\x01"


def remaining(request, context):
    """The time that the call has left, in whole seconds."""
    return items_pb2.Item(long_id=math.ceil(context.time_remaining())).SerializeToString()


def late(request, context):
    context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "too late")


calls = {"Check": check, "Turned": turned, "Newer": newer, "Remaining": remaining, "Late": late}
handlers = {
    name: grpc.unary_unary_rpc_method_handler(call, items_pb2.Item.FromString) for name, call in calls.items()
}
streams = {"Count": count, "CountTurned": count_turned}
handlers |= {
    name: grpc.unary_stream_rpc_method_handler(call, items_pb2.Item.FromString) for name, call in streams.items()
}
server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("typed.Items", handlers),))
port = server.add_insecure_port("127.0.0.1:0")
server.start()
print(f"listening on 127.0.0.1:{port}", flush=True)
server.wait_for_termination()
