"""Two users of a hub, with centrifuge-python. The hub has histories, presence and tokens.

    client.py URL SECRET
"""

import asyncio
import base64
import hashlib
import hmac
import json
import sys
import time

import centrifuge

WITHIN = 60


def token(secret, **claims):
    def part(value):
        return base64.urlsafe_b64encode(value).rstrip(b"=")

    text = part(b'{"alg":"HS256"}') + b"." + part(json.dumps(claims).encode())
    return (text + b"." + part(hmac.new(secret, text, hashlib.sha256).digest())).decode()


class Heard(centrifuge.SubscriptionEventHandler):
    def __init__(self):
        self.events = asyncio.Queue()

    async def on_subscribed(self, ctx):
        await self.events.put(("subscribed", ctx.was_recovering, ctx.recovered))

    async def on_unsubscribed(self, ctx):
        await self.events.put(("unsubscribed", ctx.code))

    async def on_publication(self, ctx):
        await self.events.put(("publication", ctx.pub.data, ctx.pub.offset))

    async def on_join(self, ctx):
        await self.events.put(("join", ctx.info.user))

    async def on_leave(self, ctx):
        await self.events.put(("leave", ctx.info.user))

    async def expect(self, *event):
        heard = await asyncio.wait_for(self.events.get(), WITHIN)
        assert heard == event, f"{heard} instead of {event}"


async def fails(awaitable, code):
    try:
        await awaitable
    except centrifuge.ReplyError as error:
        assert error.code == code, error
    else:
        raise AssertionError(f"no error {code}")


async def main(url, secret):
    secret = secret.encode()
    tokens = []

    async def of_ann():
        tokens.append(time.time())
        return token(secret, sub="ann", exp=int(time.time()) + 3, info={"n": 1})

    async def of_room(channel):
        return token(secret, sub="bob", channel=channel, exp=int(time.time()) + 3)

    caps = [{"channels": ["red"], "allow": ["sub", "pub", "prs", "hst"]}, {"channels": ["read"], "allow": ["sub"]}]
    ann = centrifuge.Client(url, get_token=of_ann)
    bob = centrifuge.Client(url, token=token(secret, sub="bob", caps=caps))
    await ann.connect()
    await bob.connect()
    await bob.ready(WITHIN)
    red, blue, bobs = Heard(), Heard(), Heard()
    in_red = ann.new_subscription("red", events=red, recoverable=True, join_leave=True)
    in_blue = ann.new_subscription("blue", events=blue)
    for sub, heard in [(in_red, red), (in_blue, blue)]:
        await sub.subscribe()
        await heard.expect("subscribed", False, False)
    await red.expect("join", "ann")
    in_bobs = bob.new_subscription("red", events=bobs)
    await in_bobs.subscribe()
    await bobs.expect("subscribed", False, False)
    await red.expect("join", "bob")
    await in_bobs.publish({"n": 1})
    await red.expect("publication", {"n": 1}, 1)
    await bobs.expect("publication", {"n": 1}, 1)
    await ann.publish("blue", "ä\n")
    await blue.expect("publication", "ä\n", 1)

    there = await in_red.presence()
    assert sorted(one.user for one in there.clients.values()) == ["ann", "bob"], there
    assert [one.conn_info for one in there.clients.values() if one.user == "ann"] == [{"n": 1}], there
    stats = await in_bobs.presence_stats()
    assert (stats.num_clients, stats.num_users) == (2, 2), stats
    kept = await in_red.history(limit=10)
    assert [(one.offset, one.data) for one in kept.publications] == [(1, {"n": 1})], kept
    await fails(bob.publish("read", 1), 103)
    await fails(bob.publish("blue", 1), 103)
    await fails(bob.history("red", limit=1, since=centrifuge.StreamPosition(1, "0")), 112)
    await fails(bob.rpc("x", {}), 108)

    # The connection is cut, and something is sent meanwhile.
    await ann._conn.close()
    for n in range(2, 5):
        await bob.publish("red", {"n": n})
        await bobs.expect("publication", {"n": n}, n)
    got = []
    while sum(event[0] == "publication" for event in got) < 3:
        got.append(await asyncio.wait_for(red.events.get(), WITHIN))
    assert [event[2] for event in got if event[0] == "publication"] == [2, 3, 4], got
    assert ("subscribed", True, True) in got, got

    # A token for one room, and both kinds of tokens are renewed.
    own = Heard()
    in_own = bob.new_subscription("own", events=own, get_token=of_room)
    await in_own.subscribe()
    await own.expect("subscribed", False, False)
    before, until = len(tokens), time.time() + WITHIN
    while len(tokens) < before + 2:
        assert time.time() < until, "no token was renewed"
        await asyncio.sleep(0.05)
    await in_own.publish("still")
    await own.expect("publication", "still", 1)
    assert ann.state == centrifuge.ClientState.CONNECTED, ann.state

    await in_bobs.unsubscribe()
    await bobs.expect("unsubscribed", 0)
    while (await asyncio.wait_for(red.events.get(), WITHIN)) != ("leave", "bob"):
        pass
    await ann.disconnect()
    await bob.disconnect()


asyncio.run(asyncio.wait_for(main(*sys.argv[1:]), 5 * WITHIN))
