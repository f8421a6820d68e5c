"""Sets and gets values of random sizes over several connections and checks each that comes back:
values.py redis|memcached SOCKET SECONDS."""

import random
import socket
import sys
import threading
import time

server, path, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
faults = []


def value_of(key):
    source = random.Random(key)
    size = source.choice([10, 100, 1000, 10_000, 100_000])
    return bytes([source.randrange(256)]) * source.randrange(size)


class Connection:
    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.stream = self.socket.makefile("rwb")

    def ask(self, request):
        self.stream.write(request)
        self.stream.flush()
        return self.stream.readline()

    def rest(self, size):
        data = self.stream.read(size)
        self.stream.read(2)
        return data


def redis_set(connection, key, value):
    head = f"*3\r\n$3\r\nSET\r\n${len(key)}\r\n{key}\r\n${len(value)}\r\n".encode()
    return connection.ask(head + value + b"\r\n") == b"+OK\r\n"


def redis_get(connection, key):
    line = connection.ask(f"*2\r\n$3\r\nGET\r\n${len(key)}\r\n{key}\r\n".encode())
    return None if line == b"$-1\r\n" else connection.rest(int(line[1:]))


def memcached_set(connection, key, value):
    head = f"set {key} 0 0 {len(value)}\r\n".encode()
    return connection.ask(head + value + b"\r\n") == b"STORED\r\n"


def memcached_get(connection, key):
    line = connection.ask(f"get {key}\r\n".encode())
    if line == b"END\r\n":
        return None
    data = connection.rest(int(line.split()[3]))
    connection.stream.readline()
    return data


SET, GET = (redis_set, redis_get) if server == "redis" else (memcached_set, memcached_get)


def life(seed):
    source = random.Random(seed)
    connection = Connection()
    end = time.monotonic() + seconds
    count = 0
    while time.monotonic() < end:
        if count % 500 == 499:
            # Connections are opened and closed.
            connection = Connection()
        count += 1
        key = f"key{source.randrange(5000)}"
        if source.random() < 0.5:
            if not SET(connection, key, value_of(key)):
                faults.append(f"{key} was not set")
                return
        else:
            found = GET(connection, key)
            if found is not None and found != value_of(key):
                faults.append(f"{key} has another value")
                return


threads = [threading.Thread(target=life, args=(seed,)) for seed in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("\n".join(faults) if faults else "all values are right")
sys.exit(1 if faults else 0)
