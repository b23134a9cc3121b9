"""A WebSocket hub with websockets on uvloop, in one process: asyncio has one thread.

broadcast() frames a text once, never waits, and skips members that are closing. The buffer of a slow member has
no bound, so members with too many unsent bytes are disconnected once a second. uvloop disables Nagle's algorithm.
"""
import asyncio
import json
import sys
from http import HTTPStatus

import uvloop
from websockets.asyncio.server import broadcast, serve
from websockets.exceptions import ConnectionClosed

BACKLOG = 4096
MAX_MESSAGE = 1 << 20
MAX_BUFFERED = 1 << 20  # unsent bytes of a member

members = set()


def text_of(message):
    """Reproduces a payload that is a string of plain ASCII exactly."""
    return json.dumps(message, separators=(",", ":"), ensure_ascii=False)


async def join(member):
    members.add(member)
    try:
        async for text in member:
            await member.send(text_of(answer(text)))
    except ConnectionClosed:
        pass  # without a close frame, or while a reply was sent
    finally:
        members.discard(member)


def answer(text):
    try:
        message = json.loads(text)
        kind, payload = message["type"], message["payload"]
    except KeyError as missing:
        return {"type": "error", "error": f"no {missing.args[0]}"}
    except (TypeError, ValueError) as error:
        return {"type": "error", "error": str(error)}
    if kind == "echo":
        return {"type": "echo", "payload": payload}
    if kind == "broadcast":
        # Written to all members, including the sender, before the result.
        broadcast(members, text_of({"type": "broadcast", "payload": payload}))
        return {"type": "broadcastResult", "payload": payload, "listenerCount": len(members)}
    return {"type": "error", "error": "unknown type"}


async def cut_off_slow_members():
    while True:
        await asyncio.sleep(1)
        for member in members:
            if member.transport.get_write_buffer_size() > MAX_BUFFERED:
                member.transport.abort()  # it would not read a close frame


def only_ws(connection, request):
    if request.path != "/ws":
        return connection.respond(HTTPStatus.NOT_FOUND, "not found\n")


async def main(port):
    options = {"backlog": BACKLOG, "max_size": MAX_MESSAGE, "compression": None}
    async with serve(join, "127.0.0.1", port, process_request=only_ws, **options) as server:
        await asyncio.gather(server.serve_forever(), cut_off_slow_members())


uvloop.run(main(int(sys.argv[1])))
