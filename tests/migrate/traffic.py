"""Backends, requests and load for the scripts of this folder.

    traffic.py backends PORT=NAME...        serves until it is stopped; a response says what the backend got
    traffic.py compare ONE OTHER FILE       sends the requests of a file to two addresses, and compares the responses
    traffic.py load NAMES RATE OUT          sends requests to the addresses in the file NAMES, `WEIGHT ADDRESS HOST PATH` a line,
                                            until it is stopped; OUT gets the failures, and then their number
"""

import asyncio
import json
import random
import signal
import sys
import time

# Headers that both sides have, whatever they are.
COMPARED = ["access-control-allow-credentials", "access-control-allow-headers", "access-control-allow-methods",
            "access-control-allow-origin", "access-control-max-age", "location", "set-cookie", "www-authenticate", "x-frame-options"]
SEEN = ["x-forwarded-prefix", "x-user"]


async def answer(name, reader, writer):
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            method, target, _ = head[0].split(" ")
            headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:] if line)}
            body = await reader.readexactly(int(headers.get("content-length") or 0))
            status, more = "200 OK", ""
            if name == "auth":
                status = {"good": "200 OK", "": "401 Unauthorized"}.get(headers.get("x-token", ""), "403 Forbidden")
                more = "x-user: alice\r\nwww-authenticate: Basic\r\n"
            seen = {"service": name, "method": method, "target": target, "host": headers.get("host"), "body": len(body)}
            seen |= {key: headers[key] for key in SEEN if key in headers}
            text = json.dumps(seen).encode()
            writer.write(f"HTTP/1.1 {status}\r\n{more}content-length: {len(text)}\r\n\r\n".encode())
            writer.write(b"" if method == "HEAD" else text)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def backends(services):
    servers = []
    for service in services:
        port, name = service.split("=")
        handler = lambda r, w, name=name: answer(name, r, w)
        servers.append(await asyncio.start_server(handler, "127.0.0.1", int(port)))
    await asyncio.gather(*(server.serve_forever() for server in servers))


async def request(address, host, target, method="GET", headers=(), body=""):
    ip, port = address.rsplit(":", 1)
    reader, writer = await asyncio.open_connection(ip, int(port))
    try:
        lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", "Connection: close", *headers]
        if body:
            lines.append(f"Content-Length: {len(body)}")
        writer.write(("\r\n".join(lines) + "\r\n\r\n" + body).encode())
        await writer.drain()
        whole = await reader.read()
    finally:
        writer.close()
    head, _, rest = whole.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    found = {}
    for line in lines[1:]:
        key, _, value = line.partition(":")
        found.setdefault(key.lower(), []).append(value.strip())
    return int(lines[0].split(" ")[1]), found, rest


def summary(response):
    status, headers, body = response
    compared = {key: headers[key] for key in COMPARED if key in headers}
    # of a response of the proxy itself, the page does not count
    start = body.find(b"{")
    seen = json.loads(body[start:body.rfind(b"}") + 1]) if b'"service"' in body else None
    return {"status": status, "headers": compared, "backend": seen}


async def compare(one, other, path):
    count = differ = 0
    with open(path) as lines:
        for line in lines:
            parts = line.split("#")[0].strip()
            if not parts:
                continue
            method, host, target, *more = parts.split(" ", 3)
            headers = [header for header in (more[0].split("; ") if more else []) if not header.startswith("body=")]
            size = [int(header[5:]) for header in (more[0].split("; ") if more else []) if header.startswith("body=")]
            body = "x" * size[0] if size else ""
            both = [summary(await request(address, host, target, method, headers, body)) for address in (one, other)]
            count += 1
            if both[0] != both[1]:
                differ += 1
                print(f"{parts}\n  {one}: {both[0]}\n  {other}: {both[1]}")
    print(f"{count} requests, {differ} answered otherwise")
    return 1 if differ else 0


async def load(names, rate, out):
    stopped = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stopped.set)
    failures, sent, tasks = [], 0, set()

    async def one(address, host, target):
        try:
            status, _, _ = await asyncio.wait_for(request(address, host, target), 10)
            if status != 200:
                failures.append(f"{address} {host}{target}: {status}")
        except Exception as error:
            failures.append(f"{address} {host}{target}: {error!r}")

    start = time.monotonic()
    while not stopped.is_set():
        with open(names) as lines:
            rows = [line.split() for line in lines if line.strip()]
        _, address, host, target = random.choices(rows, [int(row[0]) for row in rows])[0]
        task = asyncio.create_task(one(address, host, target))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        sent += 1
        try:
            await asyncio.wait_for(stopped.wait(), max(0, start + sent / rate - time.monotonic()))
        except asyncio.TimeoutError:
            pass
    await asyncio.gather(*tasks)
    with open(out, "w") as result:
        result.writelines(f"{failure}\n" for failure in failures)
        result.write(f"{sent} requests, {len(failures)} failed\n")


match sys.argv[1:]:
    case ["backends", *services]:
        asyncio.run(backends(services))
    case ["compare", one, other, path]:
        sys.exit(asyncio.run(compare(one, other, path)))
    case ["load", names, rate, out]:
        asyncio.run(load(names, float(rate), out))
    case _:
        sys.exit(__doc__)
