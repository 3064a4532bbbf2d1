"""Counts what redis-py hears of keys that expire together. Arguments: the port, and the number of keys. It writes `ready`
once it has subscribed, and `all is well` once it has heard of each key."""

import sys

import redis

port, keys = map(int, sys.argv[1:])
listener = redis.Redis(port=port).pubsub()
listener.subscribe("__keyevent@0__:expired")
assert listener.get_message(timeout=30)["type"] == "subscribe"
print("ready", flush=True)
heard = set()
while len(heard) < keys:
    message = listener.get_message(timeout=60)
    assert message is not None, f"{len(heard)} of {keys}"
    heard.add(message["data"])
print("all is well", flush=True)
