"""Replies with the time, as an RSGI application."""
import time

TEXT = [("content-type", "text/plain")]


async def app(scope, protocol):
    if scope.path == "/":
        protocol.response_str(200, TEXT, "Hello. The time is %d" % time.time())
    else:
        protocol.response_str(404, TEXT, "Not found")
