#!/usr/bin/env python3
"""What a server of memcached's text and meta protocols answers to bytes, whole, byte by byte and cut at random.

    tests/cachet/raw.py HOST:PORT [--tls FILE] [--only WORD] [--seed N] [--tell]

Every expectation holds for memcached 1.6.18. Needs nothing but Python. Exit code 1 if an answer differs.
"""

import argparse
import random
import re
import socket
import ssl
import sys
import time

# Each case has a name, the bytes to send, and the expected reply, a regular expression over bytes.
# {k} is a key of the case's own. After a case that ends with CLOSED, the server must close the
# connection; after any other, the connection must be in step.
CLOSED = object()
CASES = []


def case(name, send, expect, then=None, big=False):
    CASES.append((name, send, expect, then, big))


def lit(*lines):
    return b"".join(re.escape(line) + b"\r\n" for line in lines)


K250 = b"k" * 250
K251 = b"k" * 251
ERROR = lit(b"ERROR")
BAD_LINE = lit(b"CLIENT_ERROR bad command line format")
BAD_CHUNK = lit(b"CLIENT_ERROR bad data chunk")

# ---- storage ---------------------------------------------------------------------------------
case("set and get", b"set {k} 5 0 3\r\nabc\r\nget {k}\r\n", lit(b"STORED", b"VALUE {k} 5 3", b"abc", b"END"))
case("empty value", b"set {k} 0 0 0\r\n\r\nget {k}\r\n", lit(b"STORED", b"VALUE {k} 0 0", b"", b"END"))
case("value with line ends", b"set {k} 0 0 6\r\na\r\n\r\nb\r\nget {k}\r\n",
     lit(b"STORED") + rb"VALUE {k} 0 6\r\na\r\n\r\nb\r\nEND\r\n")
case("value with zero bytes", b"set {k} 0 0 3\r\n\0\xff\0\r\nget {k}\r\n",
     lit(b"STORED", b"VALUE {k} 0 3", b"\0\xff\0", b"END"))
case("flags of 32 bits", b"set {k} 4294967295 0 1\r\na\r\nget {k}\r\n",
     lit(b"STORED", b"VALUE {k} 4294967295 1", b"a", b"END"))
case("noreply", b"set {k} 0 0 1 noreply\r\na\r\nget {k}\r\n", lit(b"VALUE {k} 0 1", b"a", b"END"))
case("add", b"add {k} 0 0 1\r\na\r\nadd {k} 0 0 1\r\nb\r\nget {k}\r\n",
     lit(b"STORED", b"NOT_STORED", b"VALUE {k} 0 1", b"a", b"END"))
case("replace", b"replace {k} 0 0 1\r\na\r\nset {k} 0 0 1\r\na\r\nreplace {k} 0 0 1\r\nb\r\nget {k}\r\n",
     lit(b"NOT_STORED", b"STORED", b"STORED", b"VALUE {k} 0 1", b"b", b"END"))
case("append and prepend",
     b"append {k} 0 0 1\r\na\r\nset {k} 7 0 1\r\nb\r\nappend {k} 0 0 1\r\nc\r\nprepend {k} 0 0 1\r\na\r\nget {k}\r\n",
     lit(b"NOT_STORED", b"STORED", b"STORED", b"STORED", b"VALUE {k} 7 3", b"abc", b"END"))
case("cas that is missing", b"cas {k} 0 0 1 1\r\na\r\n", lit(b"NOT_FOUND"))
case("cas that is old", b"set {k} 0 0 1\r\na\r\ncas {k} 0 0 1 18446744073709551615\r\nb\r\n", lit(b"STORED", b"EXISTS"))
case("gets tells a number", b"set {k} 0 0 1\r\na\r\ngets {k}\r\n",
     lit(b"STORED") + rb"VALUE {k} 0 1 \d+\r\na\r\nEND\r\n")
case("several keys", b"set {k}a 0 0 1\r\n1\r\nset {k}c 0 0 1\r\n3\r\nget {k}a {k}b {k}c\r\n",
     lit(b"STORED", b"STORED", b"VALUE {k}a 0 1", b"1", b"VALUE {k}c 0 1", b"3", b"END"))
case("a hundred keys", b"set {k} 0 0 1\r\n1\r\nget " + b" ".join([b"{k}"] * 100) + b"\r\n",
     lit(b"STORED") + lit(b"VALUE {k} 0 1", b"1") * 100 + lit(b"END"))
case("more than a mebibyte for one command",
     b"set {k} 0 0 300000\r\n" + b"z" * 300000 + b"\r\nget" + b" {k}" * 8 + b"\r\ngat 0" + b" {k}" * 8 + b"\r\n",
     lit(b"STORED") + (lit(b"VALUE {k} 0 300000") + rb"z{300000}\r\n") * 8 + lit(b"END")
     + (lit(b"VALUE {k} 0 300000") + rb"z{300000}\r\n") * 8 + lit(b"END"), big=True)
case("a long key after more than a mebibyte",
     b"set {k} 0 0 300000\r\n" + b"z" * 300000 + b"\r\nget" + b" {k}" * 8 + b" " + K251 + b"\r\n",
     lit(b"STORED") + BAD_LINE, big=True)
case("many requests at once", b"set {k} 0 0 1\r\na\r\nget {k}\r\n" * 50,
     lit(b"STORED", b"VALUE {k} 0 1", b"a", b"END") * 50)
case("lines may end with a newline alone", b"get {k}\nversion\n", lit(b"END") + rb"VERSION [^\r\n]+\r\n")
case("spaces between words", b"get   {k}  \r\n", lit(b"END"))
case("already expired", b"set {k} 0 -1 1\r\na\r\nget {k}\r\n", lit(b"STORED", b"END"))

# ---- numbers, touch, delete ------------------------------------------------------------------
case("incr and decr", b"incr {k} 1\r\nset {k} 0 0 2\r\n10\r\nincr {k} 5\r\ndecr {k} 6\r\ndecr {k} 100\r\n",
     lit(b"NOT_FOUND", b"STORED", b"15", b"9", b"0"))
case("decr keeps the length", b"set {k} 0 0 2\r\n10\r\ndecr {k} 1\r\nget {k}\r\n",
     lit(b"STORED", b"9", b"VALUE {k} 0 2", b"9 ", b"END"))
case("incr wraps around", b"set {k} 0 0 20\r\n18446744073709551615\r\nincr {k} 2\r\n", lit(b"STORED", b"1"))
case("incr of no number", b"set {k} 0 0 1\r\na\r\nincr {k} 1\r\n",
     lit(b"STORED", b"CLIENT_ERROR cannot increment or decrement non-numeric value"))
case("incr by no number", b"set {k} 0 0 1\r\n1\r\nincr {k} a\r\nincr {k} -1\r\n",
     lit(b"STORED", b"CLIENT_ERROR invalid numeric delta argument", b"CLIENT_ERROR invalid numeric delta argument"))
case("delete", b"delete {k}\r\nset {k} 0 0 1\r\na\r\ndelete {k}\r\nget {k}\r\n",
     lit(b"NOT_FOUND", b"STORED", b"DELETED", b"END"))
case("delete with a time of zero", b"set {k} 0 0 1\r\na\r\ndelete {k} 0\r\n", lit(b"STORED", b"DELETED"))
case("delete with another time", b"delete {k} 5\r\n",
     lit(b"CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]"))
case("touch", b"touch {k} 10\r\nset {k} 0 0 1\r\na\r\ntouch {k} 10\r\ntouch {k} -1\r\nget {k}\r\n",
     lit(b"NOT_FOUND", b"STORED", b"TOUCHED", b"TOUCHED", b"END"))
case("touch of no time", b"touch {k} a\r\n", lit(b"CLIENT_ERROR invalid exptime argument"))
case("gat and gats", b"set {k} 3 0 1\r\na\r\ngat 100 {k}\r\ngats 100 {k}\r\n",
     lit(b"STORED", b"VALUE {k} 3 1", b"a", b"END") + rb"VALUE {k} 3 1 \d+\r\na\r\nEND\r\n")

# ---- other commands --------------------------------------------------------------------------
case("version", b"version\r\n", rb"VERSION [^\r\n]+\r\n")
case("verbosity", b"verbosity 0\r\nverbosity\r\nverbosity 0 noreply\r\n", lit(b"OK") + ERROR)
case("stats", b"stats\r\n", rb"(STAT \S+ [^\r\n]*\r\n){20,}END\r\n")
case("quit", b"quit\r\n", CLOSED)
case("quit in the middle", b"set {k} 0 0 1\r\na\r\nquit\r\nget {k}\r\n", lit(b"STORED"), then=CLOSED)
case("cache_memlimit of nothing", b"cache_memlimit\r\n", ERROR)
case("cache_memlimit of too little", b"cache_memlimit 7\r\n",
     lit(b"MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m"))
case("cache_memlimit in bytes", b"cache_memlimit 1073741824\r\n",
     lit(b"MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes"))
case("a crawl of no class", b"lru_crawler crawl 999\r\n", lit(b"BADCLASS invalid class id"))

# ---- malformed -------------------------------------------------------------------------------
case("no command", b"\r\n", ERROR)
case("an unknown command", b"nothing {k}\r\nget {k}\r\n", ERROR + lit(b"END"))
case("case matters", b"GET {k}\r\n", ERROR)
case("get of nothing", b"get\r\nget \r\n", ERROR + ERROR)
case("a key of 250", b"set " + K250 + b" 0 0 1\r\na\r\nget " + K250 + b"\r\ndelete " + K250 + b"\r\n",
     lit(b"STORED", b"VALUE " + K250 + b" 0 1", b"a", b"END", b"DELETED"))
case("a key of 251", b"get " + K251 + b"\r\n", BAD_LINE)
case("a key of 251 to write", b"set " + K251 + b" 0 0 1\r\na\r\n", BAD_LINE + ERROR)
case("one long key of many", b"get {k} " + K251 + b"\r\n", BAD_LINE)
case("set without a size", b"set {k} 0 0\r\n", ERROR)
case("set with a size that is none", b"set {k} 0 0 x\r\n", BAD_LINE)
case("set with a size below zero", b"set {k} 0 0 -1\r\n", BAD_LINE)
case("set with flags that are none", b"set {k} x 0 1\r\na\r\n", BAD_LINE + ERROR)
case("a value longer than told", b"set {k} 0 0 1\r\nabc\r\n", BAD_CHUNK + ERROR)
case("a value shorter than told", b"set {k} 0 0 3\r\na\r\nversion\r\n", BAD_CHUNK + ERROR)
case("a bad value is not stored", b"set {k} 0 0 1\r\nabc\r\nget {k}\r\n", BAD_CHUNK + ERROR + lit(b"END"))
case("a bad value replaces none", b"set {k} 0 0 1\r\na\r\nset {k} 0 0 1\r\nbcd\r\nget {k}\r\n",
     lit(b"STORED") + BAD_CHUNK + ERROR + lit(b"VALUE {k} 0 1", b"a", b"END"))
case("a value too large", b"set {k} 0 0 2000000\r\n" + b"x" * 2000000 + b"\r\nget {k}\r\n",
     lit(b"SERVER_ERROR object too large for cache", b"END"), big=True)
case("a value of a size beyond numbers", b"set {k} 0 0 99999999999999999999999\r\n", BAD_LINE)
case("a mebibyte less a kilobyte", b"set {k} 0 0 1000000\r\n" + b"y" * 1000000 + b"\r\nget {k}\r\n",
     lit(b"STORED") + rb"VALUE {k} 0 1000000\r\ny{1000000}\r\nEND\r\n", big=True)
case("a line without an end", b"a" * 3000, CLOSED, big=True)

# ---- meta ------------------------------------------------------------------------------------
case("mn", b"mn\r\n", lit(b"MN"))
case("ms and mg", b"ms {k} 2\r\nhi\r\nmg {k} v\r\nmg {k}\r\nmg {k}x v\r\n",
     lit(b"HD", b"VA 2", b"hi", b"HD", b"EN"))
case("mg tells what is asked", b"ms {k} 2 F5 T0\r\nhi\r\nmg {k} f s t v k O77 \r\n",
     lit(b"HD", b"VA 2 f5 s2 t-1 k{k} O77", b"hi"))
case("mg of a number of its own", b"ms {k} 2\r\nhi\r\nmg {k} c\r\n", lit(b"HD") + rb"HD c\d+\r\n")
case("mg is quiet about nothing", b"mg {k} v q\r\nmn\r\n", lit(b"MN"))
case("mg tells of a first read", b"ms {k} 1\r\na\r\nmg {k} h\r\nmg {k} h\r\n", lit(b"HD", b"HD h0", b"HD h1"))
case("mg makes what is not there", b"mg {k} N30 v\r\nmg {k} N30 v\r\n",
     lit(b"VA 0 W", b"", b"VA 0 Z", b""))
case("ms in modes", b"ms {k} 1 MR\r\na\r\nms {k} 1 ME\r\nb\r\nms {k} 1 ME\r\nc\r\nms {k} 1 MA\r\nd\r\nms {k} 1 MP\r\na\r\nmg {k} v\r\n",
     lit(b"NS", b"HD", b"NS", b"HD", b"HD", b"VA 3", b"abd"))
case("ms with an old number", b"ms {k} 1\r\na\r\nms {k} 1 C1\r\nb\r\n", lit(b"HD", b"EX"))
case("ms is quiet about success", b"ms {k} 1 q\r\na\r\nmn\r\n", lit(b"MN"))
case("md", b"md {k}\r\nms {k} 1\r\na\r\nmd {k}\r\nmg {k}\r\n", lit(b"NF", b"HD", b"HD", b"EN"))
case("md makes stale", b"ms {k} 1\r\na\r\nmd {k} I T30\r\nmg {k} v\r\nmg {k} v\r\n",
     lit(b"HD", b"HD", b"VA 1 X W", b"a", b"VA 1 Z X", b"a"))
case("ma", b"ma {k}\r\nma {k} N0 J13 v\r\nma {k} v\r\nma {k} D5 v\r\nma {k} MD D100 v\r\n",
     lit(b"NF", b"VA 2", b"13", b"VA 2", b"14", b"VA 2", b"19", b"VA 1", b"0"))
case("ma of no number", b"ms {k} 1\r\na\r\nma {k}\r\n",
     lit(b"HD", b"CLIENT_ERROR cannot increment or decrement non-numeric value"))
case("me of nothing", b"me {k}\r\n", lit(b"EN"))
case("keys in base64", b"ms Zm9v{h} 1 b\r\na\r\nmg Zm9v{h} b v k\r\n", lit(b"HD") + rb"VA 1 kZm9v{h} b\r\na\r\n")
case("mg of a key of 251", b"mg " + K251 + b" v\r\n", BAD_LINE)
case("ms without a size", b"ms {k}\r\n", rb"CLIENT_ERROR [^\r\n]+\r\n")
case("ms with a size that is none", b"ms {k} x\r\n", rb"CLIENT_ERROR [^\r\n]+\r\n")
case("ms with a bad value", b"ms {k} 1\r\nabc\r\n", BAD_CHUNK + ERROR)
case("an unknown flag", b"mg {k} !\r\n", lit(b"CLIENT_ERROR invalid flag"))
case("a flag twice", b"mg {k} v v\r\n", lit(b"CLIENT_ERROR duplicate flag"))


class Answer(Exception):
    pass


def receive(sock, pattern, seconds=5.0):
    """Bytes until they are the whole pattern; None instead of a pattern until the end."""
    compiled = None if pattern is None else re.compile(pattern, re.DOTALL)
    got, until = b"", time.monotonic() + seconds
    while compiled is None or not compiled.fullmatch(got):
        sock.settimeout(max(0.01, until - time.monotonic()))
        try:
            more = sock.recv(1 << 20)
        except socket.timeout:
            raise Answer(f"still waits after {got[-300:]!r}") from None
        except (ConnectionError, ssl.SSLEOFError):
            more = b""
        if not more:
            if compiled is None:
                return got
            raise Answer(f"ends after {got[-300:]!r}")
        got += more
    return got


# How connections are encrypted; None if they are not.
ENCRYPTION = None


def connect(address):
    sock = socket.create_connection(address, timeout=5)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return ENCRYPTION.wrap_socket(sock, server_hostname="localhost") if ENCRYPTION else sock


def pieces(data, way, chance):
    if way == "whole":
        return [data]
    if way == "bytes":
        return [data[i : i + 1] for i in range(len(data))]
    cuts = sorted(chance.sample(range(1, len(data)), min(3, len(data) - 1)))
    return [data[a:b] for a, b in zip([0] + cuts, cuts + [len(data)])]


def attempt(address, number, one, way, chance):
    name, send, expect, then, _ = one
    key = b"c%d%s" % (number, way[:1].encode())
    # Four digits, so that base64 accepts it.
    tag = b"%04x" % (number * 3 + "wbc".index(way[0]))

    def fill(data):
        return data.replace(b"{k}", key).replace(rb"\{k\}", key).replace(b"{h}", tag).replace(rb"\{h\}", tag)

    with connect(address) as sock:
        try:
            parts = pieces(fill(send), way, chance)
            for part in parts:
                sock.sendall(part)
                if way == "cut":
                    time.sleep(0.002)
        except (ConnectionError, ssl.SSLEOFError):
            pass
        if expect is CLOSED:
            rest = receive(sock, None)
            if rest:
                raise Answer(f"answers {rest!r} before it ends")
            return
        receive(sock, fill(expect))
        if then is CLOSED:
            rest = receive(sock, None)
            if rest:
                raise Answer(f"goes on with {rest[:300]!r}")
            return
        # The connection is in step: the next reply belongs to the next request.
        sock.sendall(b"mn\r\n")
        receive(sock, rb"MN\r\n")


def noise(address, chance, rounds):
    """Bytes without a meaning, never encrypted: whatever is answered, the server goes on serving."""
    for _ in range(rounds):
        data = bytes(chance.randrange(256) for _ in range(chance.randrange(1, 3000)))
        with socket.create_connection(address, timeout=5) as sock:
            try:
                sock.sendall(data)
                sock.settimeout(0.02)
                while sock.recv(65536):
                    pass
            except (socket.timeout, ConnectionError):
                pass
        with connect(address) as sock:
            sock.sendall(b"version\r\n")
            receive(sock, rb"VERSION [^\r\n]+\r\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("server", help="HOST:PORT")
    parser.add_argument("--tls", metavar="FILE", help="the server's certificate, for localhost: encrypt by it")
    parser.add_argument("--only", help="cases whose name has this in it")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tell", action="store_true", help="every case, not only what differs")
    options = parser.parse_args()
    if options.tls:
        global ENCRYPTION
        ENCRYPTION = ssl.create_default_context(cafile=options.tls)
    host, _, port = options.server.rpartition(":")
    address = (host, int(port))
    try:
        socket.create_connection(address, timeout=5).close()
    except OSError as error:
        print(f"cannot connect to {options.server}: {error}; start the server there first")
        return 3
    chance = random.Random(options.seed)
    failed = passed = 0
    for number, one in enumerate(CASES):
        if options.only and options.only not in one[0]:
            continue
        for way in ("whole", "bytes", "cut"):
            if way == "bytes" and one[4]:
                continue
            try:
                attempt(address, number, one, way, chance)
                passed += 1
                if options.tell:
                    print(f"ok: {one[0]} ({way})")
            except (Answer, OSError) as error:
                failed += 1
                print(f"differs: {one[0]} ({way}): {error}")
    if not options.only:
        try:
            noise(address, chance, 50)
            passed += 1
        except (Answer, OSError) as error:
            failed += 1
            print(f"differs: noise: {error}")
    print(f"{passed} of {passed + failed} answers as expected, at {options.server}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
