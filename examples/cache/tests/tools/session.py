"""A session of redis-py. Arguments: the version of the protocol, and the port. When it writes `restart`, the server is
to be started anew; a line of input says that it has been."""

import sys
import threading
import time

import redis

protocol, port = int(sys.argv[1]), int(sys.argv[2])
client = redis.Redis(port=port, protocol=protocol, decode_responses=True, client_name="session")

assert client.ping()
assert client.client_getname() == "session"
assert client.set("a", "1", ex=100) is True
assert client.set("a", "2", nx=True) is None
assert client.set("a", "3", xx=True, keepttl=True, get=True) == "1"
assert 0 < client.ttl("a") <= 100
assert client.getex("a", persist=True) == "3" and client.ttl("a") == -1
assert client.expire("a", 50, nx=True) and not client.expire("a", 60, nx=True)
assert client.expireat("a", int(time.time()) + 1000, gt=True)
assert client.pexpiretime("a") // 1000 == client.expiretime("a")
assert client.incrby("n", 41) == 41 and client.decr("n") == 40
assert client.mset({f"key:{i}": i for i in range(100)})
assert client.mget("key:0", "key:99", "none") == ["0", "99", None]
assert sorted(client.scan_iter("key:*", count=7)) == sorted(f"key:{i}" for i in range(100))
assert len(client.keys("key:1?")) == 10
assert client.delete(*(f"key:{i}" for i in range(100))) == 100
assert client.info("keyspace")["db0"]["keys"] == client.dbsize() == 2
assert client.info()["redis_version"].startswith("7.0")
assert client.config_get("maxmemory") == {"maxmemory": "0"}
assert client.type("a") == "string" and client.exists("a", "none") == 1
assert len(client.command()) > 40

# Binary values, and replies in order.
raw = redis.Redis(port=port, protocol=protocol)
value = bytes(range(256)) * 200
pipe = raw.pipeline(transaction=False)
for i in range(500):
    pipe.set(f"binary:{i}", value[i:]).get(f"binary:{i}").pttl(f"binary:{i}")
replies = pipe.execute()
assert all(replies[3 * i] and replies[3 * i + 1] == value[i:] and replies[3 * i + 2] == -1 for i in range(500))

try:
    client.incr("text") if client.set("text", "abc") else None
    raise AssertionError("no error")
except redis.ResponseError as error:
    assert str(error) == "value is not an integer or out of range"

# A pool of connections, used by many threads.
def count():
    for _ in range(200):
        client.incr("counter")

threads = [threading.Thread(target=count) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert client.get("counter") == "1600"

# Messages, and the expiry of keys as messages.
assert client.config_set("notify-keyspace-events", "Ex")
listener = client.pubsub()
listener.subscribe("news", "__keyevent@0__:expired")
heard = []
while len(heard) < 2:
    message = listener.get_message(timeout=30)
    assert message is not None
    heard += [message["channel"]] if message["type"] == "subscribe" else []
assert client.publish("news", "hello") == 1
client.set("short", "v", px=20)
heard = []
while len(heard) < 2:
    message = listener.get_message(timeout=30)
    assert message is not None
    heard += [(message["channel"], message["data"])] if message["type"] == "message" else []
assert heard == [("news", "hello"), ("__keyevent@0__:expired", "short")]
assert client.get("short") is None

# The same by a pattern, as most listeners subscribe.
by_pattern = client.pubsub(ignore_subscribe_messages=True)
by_pattern.psubscribe("__keyevent@*__:expired")
while client.pubsub_numpat() < 1:
    by_pattern.get_message(timeout=1)
client.set("shorter", "v", px=20)
message = None
while message is None:
    message = by_pattern.get_message(timeout=30)
assert (message["type"], message["pattern"], message["channel"], message["data"]) == (
    "pmessage", "__keyevent@*__:expired", "__keyevent@0__:expired", "shorter")
assert client.pubsub_channels("news") == ["news"] and client.pubsub_numsub("news") == [("news", 1)]

# Transactions: redis-py's pipelines by default.
assert client.pipeline().set("t", 1).incr("t").mget("t", "none").execute() == [True, 2, ["2", None]]
try:
    client.pipeline().incr("t").execute_command("NONSENSE").execute()
    raise AssertionError("no error")
except redis.ResponseError as error:
    assert "unknown command" in str(error)
assert client.get("t") == "2"

# WATCH: a change of the key by another client makes EXEC refuse; redis-py's helper tries again.
pipe = client.pipeline()
pipe.watch("t")
value = int(pipe.get("t"))
client.set("t", 10)
pipe.multi()
pipe.set("t", value + 1)
try:
    pipe.execute()
    raise AssertionError("no error")
except redis.WatchError:
    assert client.get("t") == "10"
attempts = []

def add_one(pipe):
    attempts.append(int(pipe.get("t")))
    if len(attempts) == 1:
        client.incr("t")
    pipe.multi()
    pipe.set("t", attempts[-1] + 1)

assert client.transaction(add_one, "t") == [True] and attempts == [10, 11]
assert client.get("t") == "12"
pipe.watch("t")
client.set("t", 1)
pipe.unwatch()
pipe.multi()
assert pipe.incr("t").execute() == [2]

print("restart", flush=True)
sys.stdin.readline()

# The pool connects again, and the listener subscribes again.
assert client.get("a") is None
assert client.set("a", "new") and client.get("a") == "new"
assert client.pipeline().set("t", 1).incr("t").execute() == [True, 2]
assert client.pipeline(transaction=False).get("a").get("none").execute() == ["new", None]
assert client.config_set("notify-keyspace-events", "Ex")
message = None
while message is None:
    client.set("short", "v", px=20)
    message = by_pattern.get_message(timeout=1)
assert (message["type"], message["data"]) == ("pmessage", "short")

assert client.flushall() and client.dbsize() == 0
print("all is well")
