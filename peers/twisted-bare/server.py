"""Writes the time to each client as text without HTTP, and closes without reading."""
import sys
import time

from twisted.internet import protocol, reactor


class TimeProtocol(protocol.Protocol):
    def connectionMade(self):
        self.transport.write(b"Hello. The time is %f" % time.time())
        self.transport.loseConnection()


class TimeFactory(protocol.ServerFactory):
    protocol = TimeProtocol
    noisy = False


reactor.listenTCP(int(sys.argv[1]), TimeFactory(), backlog=4096, interface="127.0.0.1")
reactor.run()
