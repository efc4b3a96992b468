"""Draws requests, sends each to both sides, and tells their outcomes apart."""

import copy
import itertools
import json
import re
import socket

import draw
from world import ISTIO, STRAIT

try:
    import h2.config
    import h2.connection
    import h2.events
except ImportError:
    h2 = None

PATHS = ["/", "/a", "/a/", "/a/b", "/ab", "/b", "/A", "/a/b/c", "/api/v1", "/api/v12", "/a/x/c", "/AB/C", "/a%2Fb",
         "/a.b", "/xyz"]
ODD_PATHS = ["/a%2fb", "/a//b", "//a", "/a/./b", "/a/../b", "/a/..", "/../a", "/%61", "/a%20b", "/a;x=1", "/a\\b",
             "/a%5Cb", "/a%2e%2e/b", "/caf\xc3\xa9", "/a\xff", "/a%00", "/a|b", "/a/b/", "/.a", "/a/.", "/a%", "/a%zz",
             "/a#f", "/a\"b<>", "/a'(b)*~", "/a^`{}[]"]
QUERIES = ["", "?", "?q", "?q=", "?q=v1", "?q=v2&q=v1", "?Q=v1", "?p=v1&q=v", "?q=v%31", "?q=a+b", "?x&&q=v1",
           "?q=v1?p=v2", "?q=/../a", "?=v1", "?q==v1", "?p=%zz&q=v12", "?q=v1#p=v1"]
HOSTS = ["a.test", "b.test", "x.a.test", "y.x.a.test", "z.a.test", "c.test", "other", "A.Test", "a.b.test",
         "127.0.0.1", "[::1]", "xa.test"]
PORTS = ["", "", "", ":80", ":8080", ":443"]
# Header lines of few requests.
RARE = [
    ("x-forwarded-for", "9.9.9.9"), ("x-forwarded-proto", "https"), ("x-forwarded-host", "f.test"),
    ("x-envoy-retry-on", "5xx"), ("x-envoy-upstream-rq-timeout-ms", "50"), ("x-envoy-attempt-count", "7"),
    ("x-envoy-original-path", "/o"), ("x-request-id", "mine"), ("x-forwarded-client-cert", "By=x"), ("te", "trailers"),
    ("te", "gzip"), ("Connection", "x-a"), ("Connection", "keep-alive"), ("x-envoy-internal", "true"),
    ("x-envoy-external-address", "8.8.8.8"), ("expect", "100-continue"), ("x-envoy-decorator-operation", "op"),
    ("x-envoy-max-retries", "3"), ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
    ("via", "1.1 p"), ("x-envoy-expected-rq-timeout-ms", "5"), ("x-forwarded-port", "9"), ("x-envoy-ip-tags", "t"),
    ("Keep-Alive", "5"), ("Proxy-Connection", "close"), ("x-envoy-hedge-on-per-try-timeout", "true"),
    ("x-envoy-is-timeout-retry", "t"), ("x-b3-sampled", "1"), ("forwarded", "for=1.1.1.1")]
MARKS = itertools.count()
ONLY_HTTP1 = ("host", "connection", "keep-alive", "proxy-connection")
# Differs on every request, or with the time that something takes.
VOLATILE = {"x-request-id", "date", "x-envoy-upstream-service-time", "content-length"}


class Request:
    """One request: method, target, and header lines, as bytes on the wire have them, and where it comes from.

    Never from 127.0.0.1, in whose place Envoy puts the address of its host.
    """

    def __init__(self, port, method, target, lines, body=b"", source="127.0.0.10", version="1.1"):
        self.port, self.method, self.target, self.lines = port, method, target, lines
        self.body, self.source, self.version = body, source, version

    def bytes(self):
        head = [f"{self.method} {self.target} HTTP/{self.version}"] + [f"{n}: {v}" for n, v in self.lines]
        return ("\r\n".join(head) + "\r\n\r\n").encode("latin-1") + self.body

    def header(self, name):
        return next((v for n, v in self.lines if n.lower() == name), None)

    def headers(self, name):
        return [v for n, v in self.lines if n.lower() == name]

    def fields(self):
        """The fields of HTTP/2, without those that only HTTP/1.1 has."""
        first = [(":method", self.method), (":scheme", "http"), (":authority", self.header("host")),
                 (":path", self.target)]
        rest = [(n.lower(), v.strip()) for n, v in self.lines
                if n.lower() not in ONLY_HTTP1 and (n, v) != ("te", "gzip")]
        return [(n.encode(), v.encode("latin-1")) for n, v in first + rest]

    def __str__(self):
        return f"port {self.port} from {self.source}: {self.bytes()!r}"


def matching(random, match, values):
    """A value that a StringMatch is likely to accept."""
    if "exact" in match:
        return match["exact"]
    if "prefix" in match:
        return match["prefix"] + random.choice(["", "", "2", "/b"])
    return random.choice(values)


def draw_host(random, world, resources):
    """Port and host that the configuration serves most of the time, and the VirtualService behind them, if any."""
    services = [r for r in resources if r["kind"] == "VirtualService" and "hosts" in r["spec"]]
    if not services or random.random() < 0.07:
        return random.choice(world.ports), random.choice(HOSTS), None
    service = random.choice(services)
    host = random.choice(service["spec"]["hosts"])
    if world.role == "sidecar":
        names = [h for r in resources if r["kind"] == "ServiceEntry" for h in r["spec"]["hosts"]]
        if host not in names and random.random() < 0.9:
            host = random.choice([h for h in names if h.endswith(host.lstrip("*"))] or names)
        port = random.choice([*[world.ports[0]] * 6, *[world.ports[1]] * 3, world.ports[2]])
        return port, filled(random, host), service
    bound = [(g, s) for g in resources if g["kind"] == "Gateway" for s in g["spec"]["servers"]
             if any(name.split("/")[-1] == g["metadata"]["name"] for name in service["spec"]["gateways"])]
    server = random.choice(bound)[1] if bound else {"port": {"number": world.ports[0]}, "hosts": [host]}
    other = random.choice(server["hosts"]).split("/")[-1]
    if len(other) > len(host) and random.random() < 0.9:
        host = other
    return server["port"]["number"], filled(random, host), service


def filled(random, host):
    """A name for a wildcard."""
    if host == "*":
        return random.choice(HOSTS)
    return host.replace("*", random.choice(["q", "x", "y.x", "y.x", ""]) if random.random() < 0.5 else "x")


def draw_request(random, world, resources):
    """A request that has, most of the time, what some rule of the configuration asks for."""
    path = random.choice(PATHS if random.random() < 0.85 else ODD_PATHS)
    query = random.choice(QUERIES) if random.random() < 0.4 else ""
    method, lines = random.choice(["GET"] * 6 + draw.METHODS), []
    port, host, service = draw_host(random, world, resources)
    rules = service["spec"]["http"] if service else []
    names = [rule["delegate"]["name"] for rule in rules if "delegate" in rule]
    rules = rules + [rule for r in resources if r["metadata"]["name"] in names for rule in r["spec"]["http"]]
    matches = [m for rule in rules for m in rule.get("match", [])]
    if matches and random.random() < 0.85:
        match = random.choice(matches)
        if "uri" in match and random.random() < 0.9:
            path = matching(random, match["uri"], PATHS) or "/"
        for name, value in match.get("headers", {}).items():
            if name != "host" and random.random() < 0.8:
                lines.append((name, matching(random, value, draw.VALUES)))
        for name, value in match.get("queryParams", {}).items():
            if random.random() < 0.8:
                query = f"?{name}={matching(random, value, draw.VALUES)}".replace(" ", "+")
        if "method" in match and random.random() < 0.9:
            method = matching(random, match["method"], ["GET", "POST"]).replace("/b", "").replace("2", "")
        if "authority" in match and random.random() < 0.8:
            host = matching(random, match["authority"], draw.AUTHORITIES).replace("/b", "").replace("80802", "8080")
        if "port" in match and random.random() < 0.8:
            port = match["port"]
    if not path.startswith("/"):
        path = "/" + path
    if ":" not in host:
        host += random.choice(PORTS)
    lines = [("Host", host or "a.test")] + lines + more_lines(random, method)
    source = f"127.0.0.{random.randrange(10, 20)}"
    version = "2" if random.random() < 0.2 and h2 else "1.1"
    return Request(port, method, path.replace(" ", "%20") + query, lines, *body(random, method), source, version)


def body(random, method):
    return [b"hello"] if method in ("POST", "PUT") else [b""]


def more_lines(random, method):
    lines = []
    for name in ["x-a", "x-b", "x-user", "user-agent", "accept", "X-New"]:
        for _ in range(random.choice([0, 0, 0, 1, 1, 2])):
            lines.append((name, random.choice(draw.VALUES + ["caf\xc3\xa9", "\xff", "v1;v2", " v1 ", "\tv1"])))
    if random.random() < 0.3:
        lines.append(("Cookie", random.choice([
            "user=alice", "user=bob; c=1", "c=1;user=carol", 'user="dave"', "user=", "xuser=e", "user=a; user=b"])))
    if random.random() < 0.25 or method == "OPTIONS":
        lines.append(("Origin", random.choice(draw.ORIGINS)))
        if random.random() < 0.6:
            lines.append(("Access-Control-Request-Method", random.choice(["GET", "PUT"])))
        if random.random() < 0.4:
            lines.append(("Access-Control-Request-Headers", "x-a,x-c"))
    lines += random.sample(RARE, random.choice([0, 0, 1, 2]))
    if random.random() < 0.12:
        lines.append(("x-status", random.choice(["503", "500", "404", "409", "418", "301", "502"])))
        if random.random() < 0.6:
            lines.append(("x-fails", random.choice(["1", "2"])))
    if random.random() < 0.01:
        lines.append(("x-delay", "0.3"))
    if method in ("POST", "PUT"):
        lines.append(("Content-Length", "5"))
    random.shuffle(lines)
    return lines


def send(address, request, seconds=8):
    """Sends one request on a connection of its own; returns the outcome as a dictionary."""
    try:
        with socket.create_connection((address, request.port), seconds, (request.source, 0)) as s:
            s.settimeout(seconds)
            if request.version == "2":
                return http2_outcome(s, request)
            s.sendall(request.bytes())
            return http1_outcome(s.makefile("rb"), request.method)
    except (OSError, ValueError, IndexError) as error:
        return {"status": f"{type(error).__name__}"}


def http2_outcome(s, request):
    config = h2.config.H2Configuration(header_encoding=None, validate_outbound_headers=False)
    connection = h2.connection.H2Connection(config)
    connection.initiate_connection()
    connection.send_headers(1, request.fields(), end_stream=not request.body)
    if request.body:
        connection.send_data(1, request.body, end_stream=True)
    interim, head, data = [], [], b""
    while True:
        s.sendall(connection.data_to_send())
        received = s.recv(1 << 16)
        if not received:
            return {"status": "closed"}
        for event in connection.receive_data(received):
            if isinstance(event, h2.events.InformationalResponseReceived):
                interim.append(dict(event.headers)[b":status"].decode())
            elif isinstance(event, h2.events.ResponseReceived):
                head = [(n.decode(), v.decode("latin-1")) for n, v in event.headers]
            elif isinstance(event, h2.events.DataReceived):
                data += event.data
            elif isinstance(event, h2.events.StreamEnded):
                return outcome(head[0][1], interim, head[1:], data)
            elif isinstance(event, (h2.events.StreamReset, h2.events.ConnectionTerminated)):
                return {"status": f"{type(event).__name__} {int(event.error_code)}"}


def http1_outcome(stream, method):
    interim = []
    while True:
        line = stream.readline()
        if not line:
            return {"status": "closed"}
        status = line.split(b" ")[1].decode()
        lines = []
        while (header := stream.readline().strip(b"\r\n")) != b"":
            name, _, value = header.partition(b":")
            lines.append((name.decode("latin-1").lower(), value.strip().decode("latin-1")))
        if status[0] != "1" or status == "101":
            break
        interim.append(status)
    data = b"" if method == "HEAD" or status in ("204", "304") else response_body(stream, by_name(lines))
    return outcome(status, interim, lines, data)


def outcome(status, interim, lines, data):
    headers = by_name(lines)
    result = {"status": status, "interim": interim, "headers": headers}
    if "x-endpoint" in headers:
        result["endpoint"] = headers.pop("x-endpoint")[0]
        try:
            result["seen"] = json.loads(data) if data else None
        except ValueError:
            result["body"] = data.decode("latin-1")
    else:
        result["body"] = data.decode("latin-1")
    return result


def response_body(stream, headers):
    if "content-length" in headers:
        return stream.read(int(headers["content-length"][0]))
    if "transfer-encoding" not in headers:
        return stream.read()
    data = b""
    while size := int(stream.readline().split(b";")[0], 16):
        data += stream.read(size)
        stream.readline()
    stream.readline()
    return data


def aspects(a, b):
    """How two outcomes differ: a list of (name, Istio's value, Strait's value); empty if they do not."""
    found = []
    differs = (a["status"] != b["status"] or (a.get("seen") is None) != (b.get("seen") is None)
               or ("endpoint" in a) != ("endpoint" in b))
    if differs:
        return [("status", brief(a), brief(b))]
    for key in ("interim", "body", "endpoint"):
        if a.get(key) != b.get(key):
            found.append((key, a.get(key), b.get(key)))
    found += header_aspects("response", a.get("headers", {}), b.get("headers", {}))
    if len(a.get("mirrored", [])) != len(b.get("mirrored", [])):
        found.append(("mirrored", len(a.get("mirrored", [])), len(b.get("mirrored", []))))
    seen = [("request", a.get("seen"), b.get("seen"))]
    seen += [("mirrored request", *both) for both in zip(a.get("mirrored", []), b.get("mirrored", []))]
    for side, x, y in seen:
        if x and y:
            found += [(f"{side} {key}", x[key], y[key])
                      for key in ("method", "target", "version", "body") if x[key] != y[key]]
            found += header_aspects(side, by_name(x["headers"]), by_name(y["headers"]))
    return found


def by_name(lines):
    headers = {}
    for name, value in lines:
        headers.setdefault(name, []).append(value)
    if headers.get("x-envoy-attempt-count", ["1"]) != ["1"] and "x-envoy-expected-rq-timeout-ms" in headers:
        headers["x-envoy-expected-rq-timeout-ms"] = ["LEFT"]  # of the time that earlier attempts took
    return headers


def header_aspects(side, a, b):
    found = []
    for name in sorted(a.keys() | b.keys()):
        x, y = a.get(name), b.get(name)
        if name in VOLATILE and x and y and len(x) == len(y):
            continue
        x, y = neutral(x), neutral(y)
        if x != y:
            found.append((f"{side} header {name}", x, y))
    return found


def neutral(values):
    """Values without what has to differ: addresses of the two sides, generated cookies, which depend on the
    client's port, and the semicolon that istiod ends names of clusters with."""
    if values is None:
        return None
    values = [value.replace(ISTIO, "PROXY").replace(STRAIT, "PROXY") for value in values]
    values = [re.sub('^user="[0-9a-f]+"', 'user="GENERATED"', value) for value in values]
    return [re.sub("(outbound[|][^;, ]*);", r"\1", value) for value in values]


def brief(result):
    """Status, and for a local reply its body: what tells outcomes of different rules apart."""
    if "endpoint" in result:
        return f"{result['status']} of an endpoint"
    return f"{result['status']} {result.get('body', '')[:80]}".strip()


def key(result):
    """Equal for outcomes that do not differ."""
    seen = [{**seen, "headers": stable(by_name(seen["headers"]))} for seen in
            [*filter(None, [result.get("seen")]), *result.get("mirrored", [])]]
    rest = {"headers": stable(result.get("headers", {})), "seen": seen, "mirrored": len(result.get("mirrored", []))}
    return json.dumps({**result, **rest}, sort_keys=True)


def stable(headers):
    return {n: len(v) if n in VOLATILE else neutral(v) for n, v in headers.items()}


def send_marked(address, request, endpoints):
    """Sends a request; if its rule mirrors it to the endpoint that keeps requests, the outcome has what that got."""
    mark = next(MARKS)
    marked = copy.copy(request)
    marked.lines = request.lines + [("x-mark", f"{mark:09}")]
    result = send(address, marked)
    if "x-mirrors" in result.get("headers", {}):
        result["mirrored"] = endpoints.mirrored(f"{mark:09}", 0.2)
    for seen in [result.get("seen"), *result.get("mirrored", [])]:
        if seen:
            seen["headers"] = [[n, "MARK" if n == "x-mark" else v] for n, v in seen["headers"]]
    return result


def compare(request, endpoints, repeats=100):
    """Sends a request to both sides until their outcomes are told apart or turn out the same.

    Weights and balancers draw: outcomes are the same if, of many requests, both sides have the same set, apart from
    rare ones. Returns Istio's first status, and None or the outcomes of both sides that are nearest to each other, with
    how they differ.
    """
    istio, strait = {}, {}
    for i in range(repeats):
        for address, side in ((ISTIO, istio), (STRAIT, strait)):
            result = send_marked(address, request, endpoints)
            side.setdefault(key(result), []).append(result)
        if istio.keys() == strait.keys():
            return first(istio), None
        if i == 11 and len(istio) == 1 and len(strait) == 1:
            break
    rare = 2 if repeats > 50 and len(istio) + len(strait) > 2 else 0
    left = [found[0] for k, found in istio.items() if k not in strait and len(found) > rare]
    right = [found[0] for k, found in strait.items() if k not in istio and len(found) > rare]
    if not left and not right:
        return first(istio), None
    left, right = left or [found[0] for found in istio.values()], right or [found[0] for found in strait.values()]
    nearest = min(((a, b, aspects(a, b)) for a in left for b in right),
                  key=lambda t: (len(t[2]), t[2][0][0] == "status"))
    return first(istio), nearest


def first(outcomes):
    result = next(iter(outcomes.values()))[0]
    if "endpoint" in result:
        return f"{result['status']} of an endpoint"
    return f"{result['status']} {re.sub('direct .*|marker.*', 'direct', result.get('body', ''))[:50]}"
