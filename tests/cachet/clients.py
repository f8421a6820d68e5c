#!/usr/bin/env python3
"""Clients from PyPI against a server of memcached's protocols: tests/cachet/clients.py HOST:PORT

What is expected holds for memcached 1.6.18. Exit code 1 if something differs.
"""

import sys
import threading
import time
import uuid

from pymemcache.client.base import Client, PooledClient
from pymemcache.client.hash import HashClient
from pymemcache.exceptions import MemcacheClientError, MemcacheError, MemcacheIllegalInputError
from pymemcache.serde import pickle_serde

CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


def key(name="k"):
    return f"{name}-{uuid.uuid4().hex}"


def raises(kind, function, *arguments, **options):
    try:
        function(*arguments, **options)
    except kind:
        return True
    return False


@check
def values_and_flags(client):
    k = key()
    assert client.get(k) is None and client.get(k, "nothing") == "nothing"
    assert client.set(k, b"value", flags=42)
    assert client.get(k) == b"value"
    assert client.set(k, b"")
    assert client.get(k) == b""
    assert client.set(k, bytes(range(256)) * 100)
    assert client.get(k) == bytes(range(256)) * 100


@check
def add_replace_append_prepend(client):
    k = key()
    assert not client.replace(k, b"x") and not client.append(k, b"x") and not client.prepend(k, b"x")
    assert client.add(k, b"b") and not client.add(k, b"x")
    assert client.append(k, b"c") and client.prepend(k, b"a")
    assert client.get(k) == b"abc"
    assert client.replace(k, b"new") and client.get(k) == b"new"


@check
def many_at_once(client):
    values = {key(f"m{i}"): str(i).encode() for i in range(300)}
    assert client.set_many(values) == []
    missing = [key() for _ in range(10)]
    assert client.get_many(list(values) + missing) == values
    some = list(values)[:100]
    assert client.delete_many(some)
    assert len(client.get_many(list(values))) == 200
    numbers = client.gets_many(list(values)[100:110])
    assert len({cas for _, cas in numbers.values()}) == 10


@check
def compare_and_swap(client):
    k = key()
    assert client.cas(k, b"x", b"1") is None
    client.set(k, b"one")
    value, cas = client.gets(k)
    assert value == b"one"
    assert client.cas(k, b"two", cas) is True
    assert client.cas(k, b"three", cas) is False
    assert client.get(k) == b"two"
    client.touch(k, 100)
    _, cas = client.gets(k)
    assert client.cas(k, b"four", cas) is True


@check
def cas_of_many_threads_loses_nothing(client):
    k, host = key(), client.server
    client.set(k, b"0")

    def add_up():
        own = Client(host, default_noreply=False, no_delay=True)
        for _ in range(50):
            while True:
                value, cas = own.gets(k)
                if own.cas(k, str(int(value) + 1).encode(), cas):
                    break
        own.close()

    threads = [threading.Thread(target=add_up) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert client.get(k) == b"300"


@check
def numbers(client):
    k = key()
    assert client.incr(k, 1) is None and client.decr(k, 1) is None
    client.set(k, b"10")
    assert client.incr(k, 5) == 15 and client.decr(k, 20) == 0
    client.set(k, b"18446744073709551615")
    assert client.incr(k, 1) == 0
    client.set(k, b"no number")
    assert raises(MemcacheClientError, client.incr, k, 1)
    assert client.get(k) == b"no number"


@check
def expiry(client):
    k, kept = key(), key()
    client.set(k, b"x", expire=1)
    client.set(kept, b"y", expire=100)
    assert client.get(k) == b"x"
    # By the server's clock, which ticks once a second.
    until = time.monotonic() + 10
    while client.get(k) is not None:
        assert time.monotonic() < until
        time.sleep(0.1)
    assert client.get(kept) == b"y"
    assert client.touch(kept, -1) and client.get(kept) is None
    assert not client.touch(kept, 10)
    later = int(time.time()) + 1000
    client.set(k, b"z", expire=later)
    assert client.get(k) == b"z"
    client.set(k, b"z", expire=int(time.time()) - 1000)
    assert client.get(k) is None


@check
def get_and_touch(client):
    # The library has no method for these.
    k = key()
    assert client.raw_command(f"gat 10 {k}", b"END\r\n") == b""
    client.set(k, b"x", expire=2)
    assert client.raw_command(f"gat 1000 {k}", b"END\r\n") == f"VALUE {k} 0 1\r\nx\r\n".encode()
    assert client.raw_command(f"gats 1000 {k}", b"END\r\n").startswith(f"VALUE {k} 0 1 ".encode())


@check
def deletion_and_flush(client):
    k = key()
    assert not client.delete(k)
    client.set(k, b"x")
    assert client.delete(k) and client.get(k) is None
    client.set(k, b"x")
    assert client.flush_all() and client.get(k) is None


@check
def without_replies(client):
    k = key()
    quiet = Client(client.server, default_noreply=True, no_delay=True)
    for i in range(100):
        quiet.set(k, str(i).encode())
    quiet.append(k, b"!")
    assert quiet.get(k) == b"99!"
    quiet.delete(k)
    assert quiet.get(k) is None
    quiet.close()


@check
def limits(client):
    assert client.set("k" * 250, b"x") and client.get("k" * 250) == b"x"
    assert raises(MemcacheIllegalInputError, client.set, "k" * 251, b"x")
    big = b"x" * (1024 * 1024 - 1024)
    k = key()
    assert client.set(k, big) and client.get(k) == big
    assert raises(MemcacheError, client.set, k, b"x" * (2 * 1024 * 1024))
    client.close()
    assert client.get(key()) is None


@check
def statistics_and_version(client):
    stats = client.stats()
    for name in (b"pid", b"uptime", b"curr_connections", b"cmd_get", b"cmd_set", b"get_hits", b"get_misses",
                 b"curr_items", b"bytes", b"limit_maxbytes", b"evictions", b"threads", b"version"):
        assert name in stats, name
    before = stats[b"cmd_set"]
    client.set(key(), b"x")
    assert int(client.stats()[b"cmd_set"]) > int(before)
    assert b"item_size_max" in client.stats("settings")
    assert client.version()


@check
def objects_and_pools(client):
    pooled = PooledClient(client.server, serde=pickle_serde, max_pool_size=4, default_noreply=False)
    value = {"a": [1, 2.5, "text", None], "b": (b"bytes", "ü")}
    k = key()
    assert pooled.set(k, value) and pooled.get(k) == value
    hashed = HashClient([client.server], serde=pickle_serde, default_noreply=False)
    assert hashed.get(k) == value
    pooled.close()
    hashed.close()


@check
def another_library(client):
    try:
        import memcache
    except ImportError:
        print("skipped: python-memcached is not there")
        return
    host, port = client.server
    other = memcache.Client([f"{host}:{port}"])
    k = key()
    assert other.set(k, {"a": 1}) and other.get(k) == {"a": 1}
    assert other.set(k, 5) and other.incr(k) == 6 and other.decr(k, 10) == 0
    keys = {key(): i for i in range(50)}
    assert other.set_multi(keys) == [] and other.get_multi(list(keys)) == keys
    assert other.gets(k) is not None and other.cas(k, 7) and other.get(k) == 7
    assert other.touch(k, 100) and other.delete(k) and other.get(k) is None
    text = "x" * 100_000
    assert other.set(k, text, min_compress_len=1000) and other.get(k) == text
    assert other.append(k, "y") in (0, True) and other.get_stats()


def main():
    host, _, port = sys.argv[1].rpartition(":")
    failed = 0
    for function in CHECKS:
        client = Client((host, int(port)), default_noreply=False, no_delay=True, timeout=10)
        try:
            function(client)
        except Exception as error:  # Whatever it is, it differs from what is expected.
            failed += 1
            place = error.__traceback__
            while place.tb_next is not None and place.tb_next.tb_frame.f_code.co_filename == __file__:
                place = place.tb_next
            print(f"differs: {function.__name__}, line {place.tb_lineno}: {type(error).__name__} {error}")
        finally:
            client.close()
    print(f"{len(CHECKS) - failed} of {len(CHECKS)} as expected by clients, at {sys.argv[1]}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
