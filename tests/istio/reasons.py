"""Known differences between Istio and Strait: each with its reason, and the condition that it holds for."""

import os
import re

DOCUMENTED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/configuration.md")


def seen(entry):
    """Whether the namespace of the sidecar sees a ServiceEntry."""
    own = {"."} if entry["metadata"]["namespace"] == "shop" else set()
    return bool({"*", "shop", *own} & set(entry["spec"].get("exportTo") or ["*"]))


class Pair:
    """One request with both outcomes, which the conditions of reasons ask. The role is `gateway` or `sidecar`."""

    def __init__(self, role, request, resources, istio, strait):
        self.role, self.request, self.resources, self.istio, self.strait = role, request, resources, istio, strait

    def host(self):
        return re.sub(r":\d*$", "", self.request.header("host") or "")

    def of(self, kind):
        return [resource for resource in self.resources if resource["kind"] == kind]

    def hosts_of_port(self):
        """Hosts of the ServiceEntries that the sidecar sees and that have the port of the request."""
        return [host for entry in self.of("ServiceEntry") for host in entry["spec"]["hosts"] if seen(entry)
                and self.request.port in [port["number"] for port in entry["spec"].get("ports", [])]]

    def rules(self):
        return [rule for service in self.of("VirtualService") for rule in service["spec"].get("http", [])]

    def destinations(self):
        return [route["destination"] for rule in self.rules() for route in rule.get("route", [])
                if "host" in route.get("destination", {})]


def redirected(name, a, b, pair):
    """A server that redirects to https has a host with a namespace, which istiod takes for a part of the name."""
    servers = [server for gateway in pair.of("Gateway") for server in gateway["spec"]["servers"]
               if server["port"]["number"] == pair.request.port]
    return name == "status" and b == "301" and any(
        "/" in h and not h.startswith("*/") for s in servers if "tls" in s for h in s["hosts"])


def beyond_ascii(name, a, b, pair):
    refused = pair.istio["status"].startswith("400") or pair.strait["status"] == "StreamReset 1"
    return refused and not pair.request.target.isascii()


def fragment(name, a, b, pair):
    return "#" in pair.request.target and pair.strait["status"] in ("400", "StreamReset 1")


def one_cookie(name, a, b, pair):
    if name != "response header set-cookie" or not a or not b:
        return False
    names = [{cookie.split("=")[0] for cookie in cookies} for cookies in (a, b)]
    return set(b) <= set(a) and len(b) == len(names[1]) and names[0] == names[1]


def plain(values):
    """The lines of a header as one value."""
    return ",".join(value for value in values or [] if value)


def preflight(name, a, b, pair):
    answered = pair.request.method == "OPTIONS" and pair.istio["status"] == "200" and "endpoint" not in pair.istio
    return answered and b is None and name in (
        "response header access-control-expose-headers", "response header access-control-allow-credentials")


def default_port(name, a, b, pair):
    """A redirect to a default port, where Envoy keeps the port of the request's host."""
    asked = any(rule.get("redirect", {}).get("port") in (80, 443) for rule in pair.rules())
    return name == "response header location" and a and b and asked and without_port(a[0]) == without_port(b[0])


def without_port(location):
    return re.sub(r":\d+/", "/", location)


def two_ports(name, a, b, pair):
    return name == "response header location" and a and b and re.sub(r":\d+:", ":", a[0]) == b[0]


def covered(name, a, b, pair):
    """A destination has a name that only a wildcard of a ServiceEntry covers; it has hash keys as well."""
    asked = any(one["host"].startswith("q.wild-") for one in pair.destinations())
    return asked and (name in ("status", "endpoint") or pair.istio["status"] == "503" and (
        name == "body" or name.startswith("response header content-")))


def other_port(name, a, b, pair):
    """A destination has a port other than the sidecar's listener, which is the only one of a service in Istio."""
    if pair.role != "sidecar" or name not in ("status", "endpoint", "body", "response header content-type"):
        return False
    several = set(pair.hosts_of_port())
    short = {host.split(".")[0] for host in several}
    return pair.istio["status"] == "503" and pair.istio.get("body") == "" and any(
        one.get("port", {}).get("number", pair.request.port) != pair.request.port
        or one["host"] not in several | short for one in pair.destinations())


def of_other_namespaces(name, a, b, pair):
    """A ServiceEntry of the sidecar's namespace is exported to others only."""
    hidden = {host for entry in pair.of("ServiceEntry") if entry["metadata"]["namespace"] == "shop"
              and not seen(entry)
              for host in entry["spec"]["hosts"]}
    hidden |= {host.split(".")[0] for host in hidden}
    asked = {pair.host().lower(), *(one["host"] for one in pair.destinations())}
    return pair.role == "sidecar" and name == "status" and b.startswith("503") and bool(asked & hidden)


def closes(name, a, b, pair):
    left = pair.request.body or pair.request.header("proxy-connection") == "close" or pair.istio["status"] == "400"
    return name == "response header connection" and b is None and left


def turns(name, a, b, pair):
    """Endpoints have unequal weights: Envoy takes turns, so that a certain one follows an endpoint that is dead."""
    weighted = any("weight" in endpoint for entry in pair.of("ServiceEntry")
                   for endpoint in entry["spec"].get("endpoints", []))
    retried = all(["x-envoy-attempt-count", "1"] not in side["seen"]["headers"]
                  for side in (pair.istio, pair.strait) if side.get("seen"))
    return weighted and (name == "request header x-envoy-attempt-count" or name == "endpoint" and retried)


def hashed_retry(name, a, b, pair):
    """Envoy's retry found no endpoint that was not tried among the next entries of the ring."""
    hashed = "consistentHash" in str([rule["spec"] for rule in pair.of("DestinationRule")])
    failed = a == "503" and pair.request.method == "HEAD" or str(a).startswith("503 upstream connect error")
    return hashed and name == "status" and failed and b.endswith("of an endpoint")


def of_fault(name, a, b, pair):
    aborted = (pair.istio.get("body") == "fault filter abort" or pair.request.method == "HEAD"
               and pair.istio["headers"].get("content-length") == [str(len("fault filter abort"))])
    return name.startswith("response header") and aborted


def of_unknown(name, a, b, pair):
    return (name.startswith("response header") and pair.istio["status"] == "503" and b and "outbound|" in b[-1]
            and plain(a) == plain(b[:-1]))


def only_proxies(name, a, b, pair):
    headers = ("x-envoy-decorator-operation", "x-envoy-original-path", "x-envoy-external-address")
    return b is None and any(name == f"request header {h}" and pair.request.header(h) for h in headers)


def scheme_of_http2(name, a, b, pair):
    """A sidecar got `:scheme` and `x-forwarded-proto`, which differ."""
    told = pair.role == "sidecar" and pair.request.version == "2" and pair.request.header("x-forwarded-proto")
    matched = any("scheme" in match for rule in pair.rules() for match in rule.get("match", []))
    return told and (name == "status" and matched or name == "response header location"
                     and without_port(a[0]).split("://")[1:] == without_port(b[0]).split("://")[1:])


def empty_scheme(name, a, b, pair):
    return (pair.role == "sidecar" and name == "status" and a.startswith("404")
            and "" in [value.strip() for value in pair.request.headers("x-forwarded-proto")])


# Headers by which Envoy's mirrored requests differ from what they copy.
OF_MIRRORS = ("mirrored request header x-forwarded-for", "mirrored request header x-envoy-internal",
              "mirrored request header x-envoy-expected-rq-timeout-ms")
# (reason, condition(name of the aspect, Istio's value, Strait's value, pair)). A reason is a row of the table of
# differences in docs/configuration.md, by its first column.
REASONS = [
    ("a host with a trailing dot", lambda name, a, b, pair: name == "status" and pair.host().endswith(".")),
    ("`httpsRedirect` of a server whose host has a namespace", redirected),
    ("a generated cookie, several destinations", one_cookie),
    ("a target beyond ASCII", beyond_ascii),
    ("a target with a fragment", fragment),
    ("a response with status 204",
     lambda name, a, b, pair: pair.istio["status"] == "204" and not b
     and name in ("response header content-length", "response header content-type", "body")),
    ("a mirrored request", lambda name, a, b, pair: name in OF_MIRRORS and (a or [])[-1:] != (b or [])[-1:]),
    ("a preflight, no `allowHeaders`",
     lambda name, a, b, pair: name == "response header access-control-allow-headers" and a == [""] and b is None),
    ("a redirect to https, `Host` with port 80",
     lambda name, a, b, pair: name == "response header location" and a and b and a[0].replace(":80/", "/", 1) == b[0]),
    ("a local reply with status 400, or before the end of the request", closes),
    ("a response to HEAD",
     lambda name, a, b, pair: name == "response header transfer-encoding" and b is None
     and pair.request.method == "HEAD"),
    ("`Expect: 100-continue`", lambda name, a, b, pair: name == "request header expect" and b is None),
    ("`headers.add` for `user-agent`, `content-type` or `x-forwarded-proto`",
     lambda name, a, b, pair: "header" in name and a and b and len(a) < len(b) and plain(a) == plain(b)),
    ("`%UPSTREAM_CLUSTER%`, a destination that is not known", of_unknown),
    ("a preflight, `exposeHeaders` and `allowCredentials`", preflight),
    ("an aborted request", of_fault),
    ("`redirect.port`, the default of the scheme", default_port),
    ("endpoints with unequal weights", turns),
    ("retries by a consistent hash that avoid tried endpoints", hashed_retry),
    ("`redirect.port` beside an `authority` with a port", two_ports),
    ("a destination that only a wildcard of a ServiceEntry covers", covered),
    ("`x-envoy-is-timeout-retry` of a client",
     lambda name, a, b, pair: name == "request header x-envoy-is-timeout-retry" and b is None),
    ("a request without a body",
     lambda name, a, b, pair: name == "request header content-length" and a == ["0"] and b is None),
    ("`x-envoy-` headers that only a proxy sets, at a sidecar", only_proxies),
    ("an empty `x-forwarded-proto` at a sidecar", empty_scheme),
    ("`x-forwarded-proto` over HTTP/2 at a sidecar", scheme_of_http2),
    ("`%ROUTE_NAME%`, a rule without a name whose match has one",
     lambda name, a, b, pair: "header" in name and a and b and re.sub(r"(^|,)\.(?=m\d)", r"\1", plain(a)) == plain(b)),
    ("a destination on another port than the sidecar's listener", other_port),
    ("a host of the sidecar's namespace that is exported to others only", of_other_namespaces),
]


def undocumented():
    """Reasons that the table of differences does not have."""
    with open(DOCUMENTED, encoding="utf-8") as file:
        rows = {line.split(" | ")[0].removeprefix("| ") for line in file if line.startswith("| ")}
    return [reason for reason, _ in REASONS if reason not in rows]


def explain(pair, aspects):
    """The reasons for a difference, and the aspects of it that have none."""
    found, left = set(), []
    for name, a, b in aspects:
        # What holds for a request holds for its mirror.
        of = name if name in OF_MIRRORS else name.removeprefix("mirrored ")
        reason = next((text for text, holds in REASONS if holds(of, a, b, pair)), None)
        if reason is None:
            left.append((name, a, b))
        else:
            found.add(reason)
    return sorted(found), left
