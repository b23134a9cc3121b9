"""Replies with the time."""
import asyncio
import sys
import time

import tornado.web


class Hello(tornado.web.RequestHandler):
    def get(self):
        self.set_header("Content-Type", "text/plain")
        self.write("Hello. The time is %d" % time.time())

    head = get

    # By default each reply is hashed, for conditional requests.
    def compute_etag(self):
        return None


def no_access_log(handler):
    pass


async def main(port):
    app = tornado.web.Application([("/", Hello)], log_function=no_access_log)
    app.listen(port, "127.0.0.1", backlog=4096)
    await asyncio.Event().wait()


asyncio.run(main(int(sys.argv[1])))
