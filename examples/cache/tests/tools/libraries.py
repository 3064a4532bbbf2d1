"""Sessions of cache libraries, by their defaults. Argument: the port."""

import asyncio
import sys
import time

port = int(sys.argv[1])
url = f"redis://127.0.0.1:{port}/0"


def with_cachelib():
    from cachelib import RedisCache

    cache = RedisCache(host="127.0.0.1", port=port, key_prefix="cachelib:")
    assert cache.set("a", {"x": 1}) and cache.get("a") == {"x": 1}
    assert not cache.add("a", 2) and cache.add("b", 2) and cache.get("b") == 2
    assert cache.set_many({"c": 3, "d": 4}) and cache.get_many("c", "d", "none") == [3, 4, None]
    assert cache.get_dict("c", "d") == {"c": 3, "d": 4}
    assert cache.has("a") and not cache.has("none")
    assert cache.inc("n") == 1 and cache.inc("n", 4) == 5 and cache.dec("n") == 4
    assert cache.delete("a") and cache.get("a") is None
    assert sorted(cache.delete_many("b", "c")) == ["b", "c"]
    assert cache.set("short", 1, timeout=1)
    time.sleep(1.1)
    assert cache.get("short") is None
    assert cache.clear() and cache.get("d") is None


def with_flask_caching():
    from flask import Flask
    from flask_caching import Cache

    app = Flask("test")
    cache = Cache(app, config={"CACHE_TYPE": "RedisCache", "CACHE_REDIS_URL": url})
    calls = []

    @app.route("/")
    @cache.cached(timeout=60)
    def page():
        calls.append("page")
        return "page"

    @cache.memoize(60)
    def add(a, b):
        calls.append("add")
        return a + b

    client = app.test_client()
    assert [client.get("/").data for _ in range(3)] == [b"page"] * 3
    with app.app_context():
        assert [add(1, 2), add(1, 2), add(1, 3)] == [3, 3, 4]
        cache.delete_memoized(add)
        assert add(1, 2) == 3 and calls == ["page", "add", "add", "add"]
        assert cache.set_many({"x": 1, "y": 2}) and cache.get_many("x", "y") == [1, 2]
        assert cache.add("z", 1) and not cache.add("z", 2) and cache.delete_many("x", "y")
        assert cache.clear() and cache.get("z") is None


def with_flask_session():
    import redis
    from flask import Flask, session
    from flask_session import Session

    app = Flask("test")
    app.config.update(SESSION_TYPE="redis", SESSION_REDIS=redis.Redis(port=port), SECRET_KEY="x")
    Session(app)

    @app.route("/")
    def count():
        session["n"] = session.get("n", 0) + 1
        return str(session["n"])

    client = app.test_client()
    assert [client.get("/").data for _ in range(3)] == [b"1", b"2", b"3"]


def with_django():
    from django.conf import settings

    backend = "django.core.cache.backends.redis.RedisCache"
    settings.configure(CACHES={"default": {"BACKEND": backend, "LOCATION": url}})
    from django.core.cache import cache

    cache.set("a", [1, 2])
    assert cache.get("a") == [1, 2] and cache.get("none", "default") == "default"
    assert not cache.add("a", 1) and cache.add("b", 1)
    assert cache.get_or_set("c", lambda: 3, 100) == 3
    assert cache.set_many({"d": 4, "e": 5}) == []
    assert cache.get_many(["d", "e", "none"]) == {"d": 4, "e": 5}
    cache.set("n", 1)
    assert cache.incr("n") == 2 and cache.decr("n", 2) == 0
    try:
        cache.incr("none")
        raise AssertionError("no error")
    except ValueError:
        pass
    assert cache.touch("a", 100) and not cache.touch("none")
    assert cache.has_key("a") and "none" not in cache
    cache.set("v", 1, version=2)
    assert cache.get("v") is None and cache.incr_version("v", version=2) == 3 and cache.get("v", version=3) == 1
    assert cache.delete("a") and not cache.delete("a")
    cache.delete_many(["b", "c"])
    cache.set("gone", 1, timeout=0)
    assert cache.get("gone") is None and cache.get("b") is None
    cache.clear()
    assert cache.get("d") is None
    cache.close()


async def with_aiocache():
    from aiocache import Cache

    async with Cache(Cache.REDIS, endpoint="127.0.0.1", port=port, namespace="aio") as cache:
        assert await cache.set("a", "1") and await cache.get("a") == "1"
        try:
            await cache.add("a", "2")
            raise AssertionError("no error")
        except ValueError:
            pass
        assert await cache.multi_set([["b", "2"], ["c", "3"]], ttl=100)
        assert await cache.multi_get(["b", "c", "none"]) == ["2", "3", None]
        assert await cache.exists("a") and await cache.delete("a")
        assert await cache.increment("n", 2) == 2
        assert await cache.expire("b", 1)
        assert await cache.clear(namespace="aio")


with_cachelib()
with_flask_caching()
with_flask_session()
with_django()
asyncio.run(with_aiocache())
print("all is well")
