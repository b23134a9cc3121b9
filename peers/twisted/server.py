"""Replies with the time."""
import sys
import time

from twisted.internet import reactor
from twisted.web import resource, server


class Hello(resource.Resource):
    def render_GET(self, request):
        request.setHeader(b"content-type", b"text/plain")
        return b"Hello. The time is %d" % time.time()


class QuietSite(server.Site):
    def log(self, request):
        """No access log."""


root = resource.Resource()
root.putChild(b"", Hello())
site = QuietSite(root, timeout=3600)
reactor.listenTCP(int(sys.argv[1]), site, backlog=4096, interface="127.0.0.1")
reactor.run()
