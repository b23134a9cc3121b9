"""Common uses of Redis, through redis-py with its default settings, or with RESP3.

Prints a line for each step, with its result or error. The lines must be the same for a server and for
the proxy.
"""

import sys
import threading
import time

import redis


def show(value):
    if isinstance(value, (set, frozenset)):
        return "set(" + ", ".join(sorted(map(show, value))) + ")"
    if isinstance(value, dict):
        pairs = sorted((show(key), show(value)) for key, value in value.items())
        return "{" + ", ".join(f"{key}: {value}" for key, value in pairs) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(show, value)) + "]"
    return repr(value)


def step(name, what):
    try:
        print(f"{name}: {show(what())}")
    except redis.RedisError as error:
        print(f"{name}: error {type(error).__name__}: {error}")


def strings(r):
    step("set", lambda: r.set("a", "1"))
    step("set with expiry", lambda: r.set("b", "x", ex=1000, nx=True))
    step("get", lambda: r.get("a"))
    step("get of a missing key", lambda: r.get("nothing"))
    step("incr", lambda: [r.incr("n"), r.incrby("n", 5), r.decr("n"), r.incrbyfloat("f", 1.5)])
    step("mset", lambda: r.mset({f"m{i}": i for i in range(20)}))
    step("mget", lambda: r.mget([f"m{i}" for i in range(20)] + ["nothing"]))
    step("append", lambda: [r.append("a", "23"), r.strlen("a"), r.getrange("a", 0, 1)])
    step("getset", lambda: [r.getset("a", "9"), r.getdel("a"), r.exists("a", "b", "m1")])
    step("delete", lambda: r.delete("m1", "m2", "m3", "nothing"))
    step("bytes", lambda: [r.set("bytes", bytes(range(256))), r.get("bytes")])
    step("type", lambda: [r.type("b"), 0 < r.ttl("b") <= 1000, r.persist("b"), r.ttl("b")])
    step("dbsize", lambda: r.dbsize())
    step("keys", lambda: sorted(r.keys("m*")))
    step("wrong type", lambda: r.lpush("b", 1))


def collections(r):
    step("hash", lambda: [r.hset("h", mapping={"a": 1, "b": 2}), r.hgetall("h"), r.hmget("h", "a", "x"), r.hincrby("h", "a", 3)])
    step("list", lambda: [r.rpush("l", 1, 2, 3), r.lrange("l", 0, -1), r.lpop("l"), r.llen("l"), r.lpop("l", 5)])
    step("set", lambda: [r.sadd("s", 1, 2, 3), r.smembers("s"), r.sismember("s", 2), r.scard("s")])
    step("sets on one node", lambda: [r.sadd("{t}1", 1, 2), r.sadd("{t}2", 2, 3), r.sinter("{t}1", "{t}2"), r.sunionstore("{t}3", "{t}1", "{t}2")])
    step("sorted set", lambda: [r.zadd("z", {"a": 1, "b": 2.5}), r.zrange("z", 0, -1, withscores=True), r.zincrby("z", 1, "a"), r.zrank("z", "b")])
    step("stream", lambda: [r.xadd("x", {"a": 1}, id="1-1"), r.xadd("x", {"b": 2}, id="2-1"), r.xlen("x"), r.xrange("x"), r.xread({"x": "0"})])
    step("group", lambda: [r.xgroup_create("x", "g", "0"), r.xreadgroup("g", "c", {"x": ">"}), r.xack("x", "g", "1-1"), r.xpending("x", "g")["pending"]])
    step("hyperloglog", lambda: [r.pfadd("p", 1, 2, 3), r.pfcount("p")])
    step("bits", lambda: [r.setbit("bits", 7, 1), r.getbit("bits", 7), r.bitcount("bits")])
    step("geo", lambda: [r.geoadd("geo", (13.36, 38.11, "a")), r.geopos("geo", "a", "x")])
    step("scan", lambda: len(set(r.scan_iter(count=7))) == r.dbsize())
    step("scan with a match", lambda: sorted(r.scan_iter(match="m*")))
    step("hscan", lambda: sorted(r.hscan_iter("h")))
    step("sort", lambda: [r.rpush("sortme", 3, 1, 2), r.sort("sortme"), r.sort("sortme", desc=True, start=0, num=2)])


def pipelines(r):
    def many():
        pipe = r.pipeline(transaction=False)
        for i in range(500):
            pipe.set(f"p{i}", i)
            pipe.get(f"p{i}")
        return pipe.execute()

    step("pipeline", many)

    def with_error():
        pipe = r.pipeline(transaction=False)
        pipe.set("b", "text").incr("b").get("b")
        return [str(one) for one in pipe.execute(raise_on_error=False)]

    step("pipeline with an error", with_error)

    def transaction():
        pipe = r.pipeline()
        pipe.set("{t}a", 1).incr("{t}a").get("{t}a").ping()
        return pipe.execute()

    step("transaction", transaction)

    def watched():
        def change(pipe):
            current = int(pipe.get("{t}a"))
            pipe.multi()
            pipe.set("{t}a", current + 1)

        return [r.transaction(change, "{t}a"), r.get("{t}a")]

    step("watch", watched)

    def beaten():
        with r.pipeline() as pipe:
            pipe.watch("{t}a")
            r.set("{t}a", 100)
            pipe.multi()
            pipe.set("{t}a", 5)
            try:
                return pipe.execute()
            except redis.WatchError:
                return ["beaten", r.get("{t}a")]

    step("watched key changed", beaten)
    step("lock", lambda: lock(r))


def lock(r):
    with r.lock("lock", timeout=10):
        return r.exists("lock")


def blocking(r):
    step("blpop of an existing list", lambda: [r.rpush("q", 1), r.blpop("q", 1)])
    step("blpop of a missing list", lambda: r.blpop("nothing", 0.1))

    def pushed():
        other = redis.Redis(port=r.connection_pool.connection_kwargs["port"])
        threading.Timer(0.1, lambda: other.rpush("later", "x")).start()
        return r.blpop("later", 5)

    step("blpop of a later push", pushed)
    step("bzpopmin", lambda: [r.zadd("bz", {"a": 1}), r.bzpopmin("bz", 1)])
    step("xread that blocks", lambda: r.xread({"x": "$"}, block=50))


def published(r):
    def run():
        heard = []
        pubsub = r.pubsub()
        pubsub.subscribe("news", "sport")
        pubsub.psubscribe("w*")
        confirmed = 0
        while confirmed < 3:
            message = pubsub.get_message(timeout=5)
            confirmed += message is not None and message["type"].endswith("subscribe")
        counts = [r.publish("news", "a"), r.publish("sport", "b"), r.publish("other", "c"), r.publish("weather", "d")]
        deadline = time.monotonic() + 5
        while len(heard) < 3 and time.monotonic() < deadline:
            message = pubsub.get_message(timeout=0.2)
            if message:
                heard.append((message["type"], message["channel"], message["data"]))
        pubsub.unsubscribe()
        pubsub.close()
        return [counts, sorted(heard)]

    step("publish and subscribe", run)


def scripts(r):
    step("eval", lambda: r.eval("return {KEYS[1], ARGV[1], redis.call('incr', KEYS[1])}", 1, "script", "x"))
    double = r.register_script("local v = redis.call('get', KEYS[1]) or 1; redis.call('set', KEYS[1], v * 2); return v * 2")
    step("registered script", lambda: [double(keys=["doubled"]), double(keys=["doubled"])])


def connections(r):
    step("ping", lambda: r.ping())
    step("echo", lambda: r.echo("hello"))
    step("database", lambda: other_database(r))
    step("no such command", lambda: r.execute_command("NONSENSE", 1))
    step("client name", lambda: [r.client_setname("me"), r.client_getname()])


def other_database(r):
    other = redis.Redis(port=r.connection_pool.connection_kwargs["port"], db=2)
    return [other.set("a", "two"), other.get("a"), r.get("a"), other.flushdb()]


def main():
    port, protocol = int(sys.argv[1]), int(sys.argv[2])
    options = {"protocol": 3} if protocol == 3 else {}
    r = redis.Redis(port=port, **options)
    r.flushall()
    for part in (strings, collections, pipelines, blocking, published, scripts, connections):
        part(r)


main()
