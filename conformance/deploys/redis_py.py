"""Clients of redis-py that count in their own keys until stdin ends: see scripts/deploys.

    redis_py.py PORT CLIENTS FIRST

Prints a JSON object: how often they counted, what was wrong with a reply, and the errors.
"""

import json
import sys
import threading

import redis


def main(port, clients, first):
    result = {"counted": 0, "wrong": [], "errors": []}
    lock, over = threading.Lock(), threading.Event()

    def count(number):
        # The defaults of the library: RESP3, and handoffs if the server has them.
        client = redis.Redis(port=port)
        key, expected = f"python:{number}", 0
        while not over.is_set():
            try:
                reply = client.incr(key)
            except Exception as error:
                with lock:
                    result["errors"].append(f"{type(error).__name__}: {error}")
                expected = None
                continue
            expected = reply if expected is None else expected + 1
            if reply != expected:
                with lock:
                    result["wrong"].append(f"{key}: {reply} instead of {expected}")
                expected = reply
            with lock:
                result["counted"] += 1

    numbers = range(first, first + clients)
    threads = [threading.Thread(target=count, args=(number,)) for number in numbers]
    for thread in threads:
        thread.start()
    print("started", flush=True)
    sys.stdin.read()
    over.set()
    for thread in threads:
        thread.join()
    print(json.dumps(result), flush=True)


main(*(int(argument) for argument in sys.argv[1:]))
