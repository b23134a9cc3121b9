"""Replies with the time, as an ASGI application."""
import time


async def app(scope, receive, send):
    if scope["path"] == "/":
        status, body = 200, b"Hello. The time is %d" % time.time()
    else:
        status, body = 404, b"Not found"
    headers = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
