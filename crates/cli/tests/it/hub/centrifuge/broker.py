"""Two users of two hubs with one broker, with centrifuge-python. The hubs have histories and presence.

    broker.py URL URL

Prints `restart` when the broker should be restarted, and lack everything.
"""

import asyncio
import sys

import centrifuge

WITHIN = 60


class Heard(centrifuge.SubscriptionEventHandler):
    def __init__(self):
        self.events = asyncio.Queue()
        self.members = asyncio.Queue()

    async def on_join(self, ctx):
        await self.members.put(("join", ctx.info.client))

    async def on_leave(self, ctx):
        await self.members.put(("leave", ctx.info.client))

    async def on_subscribed(self, ctx):
        await self.events.put(("subscribed", ctx.was_recovering, ctx.recovered))

    async def on_publication(self, ctx):
        await self.events.put(("publication", ctx.pub.data, ctx.pub.offset))

    async def next(self):
        return await asyncio.wait_for(self.events.get(), WITHIN)

    async def next_member(self):
        return await asyncio.wait_for(self.members.get(), WITHIN)

    async def expect(self, *event):
        heard = await self.next()
        assert heard == event, f"{heard} instead of {event}"


async def main(here, there):
    ann, bob = centrifuge.Client(here), centrifuge.Client(there)
    anns, bobs = Heard(), Heard()
    subs, own = [], []
    for client, heard in [(ann, anns), (bob, bobs)]:
        await client.connect()
        subs.append(client.new_subscription("red", events=heard, recoverable=True, join_leave=True))
        await subs[-1].subscribe()
        await heard.expect("subscribed", False, False)
        # Its own join, and then what changes at all hubs.
        own.append(await heard.next_member())
    assert await anns.next_member() == own[1] != own[0], own
    await subs[0].publish({"n": 1})
    for heard in [anns, bobs]:
        await heard.expect("publication", {"n": 1}, 1)
    # A hub learns of the members of another one after a moment.
    while len((await subs[0].presence()).clients) < 2 or (await subs[1].presence_stats()).num_clients < 2:
        await asyncio.sleep(0.05)
    kept = await subs[1].history(limit=10)
    assert [(one.offset, one.data) for one in kept.publications] == [(1, {"n": 1})], kept

    # The connection is cut, and something is sent meanwhile.
    await ann._conn.close()
    for n in range(2, 5):
        await subs[1].publish({"n": n})
        await bobs.expect("publication", {"n": n}, n)
    got = []
    while sum(event[0] == "publication" for event in got) < 3:
        got.append(await anns.next())
    assert [event[2] for event in got if event[0] == "publication"] == [2, 3, 4], got
    assert ("subscribed", True, True) in got, got
    again = await anns.next_member()
    assert await bobs.next_member() == ("leave", own[0][1])
    assert await bobs.next_member() == again

    # The broker has lost everything, which both learn.
    print("restart", flush=True)
    for heard in [anns, bobs]:
        await heard.expect("subscribed", True, False)
    await subs[0].publish("again")
    for heard in [anns, bobs]:
        await heard.expect("publication", "again", 1)
    await ann.disconnect()
    await bob.disconnect()


asyncio.run(asyncio.wait_for(main(*sys.argv[1:]), 5 * WITHIN))
