"""Known differences between Istio and Strait: each with its reason, and the condition that it holds for."""

import re


class Pair:
    """One request with both outcomes, which the conditions of reasons ask."""

    def __init__(self, request, resources, istio, strait):
        self.request, self.resources, self.istio, self.strait = request, resources, istio, strait

    def host(self):
        return re.sub(r":\d*$", "", self.request.header("host") or "")


def malformed(name, a, b, pair):
    """What Envoy has besides the status, if both refuse a request before they look for its rule."""
    return pair.istio["status"] == pair.strait["status"] == "400" and (name == "body" or name.startswith("response header"))


def redirected(name, a, b, pair):
    """A server that redirects to https has a host with a namespace, which istiod takes for a part of the name."""
    servers = [s for r in pair.resources if r["kind"] == "Gateway" for s in r["spec"]["servers"] if s["port"]["number"] == pair.request.port]
    return name == "status" and b == "301" and any(
        "/" in h and not h.startswith("*/") for s in servers if "tls" in s for h in s["hosts"])


def beyond_ascii(name, a, b, pair):
    return name == "status" and a in ("400", "400 Bad Request") and not pair.request.target.isascii()


def one_cookie(name, a, b, pair):
    return name == "response header set-cookie" and a and b and list(dict.fromkeys(a)) == list(dict.fromkeys(b))


def plain(values):
    """The lines of a header as one value."""
    return ",".join(value for value in values or [] if value)


def preflight(pair):
    return pair.request.method == "OPTIONS" and pair.istio["status"] == "200" and "endpoint" not in pair.istio


def default_port(pair):
    rules = [rule for r in pair.resources if r["kind"] == "VirtualService" for rule in r["spec"]["http"]]
    return any(rule.get("redirect", {}).get("port") in (80, 443) for rule in rules)


def covered(pair):
    """Whether a destination has a name that only a wildcard of a ServiceEntry covers."""
    rules = [rule for r in pair.resources if r["kind"] == "VirtualService" for rule in r["spec"]["http"]]
    hosts = [route["destination"]["host"] for rule in rules for route in rule.get("route", [])]
    return any(host.startswith("q.wild-") for host in hosts)


def of_unknown_subset(pair):
    """Whether a destination has a subset that no DestinationRule of its host has."""
    known = {(r["spec"]["host"], s["name"]) for r in pair.resources if r["kind"] == "DestinationRule"
             for s in r["spec"].get("subsets", [])}
    rules = [rule for r in pair.resources if r["kind"] == "VirtualService" for rule in r["spec"]["http"]]
    named = [route["destination"] for rule in rules for route in rule.get("route", [])]
    return any("subset" in one and (one["host"], one["subset"]) not in known for one in named)


def closes(name, a, b, pair):
    asked = pair.request.header("proxy-connection") == "close"
    return name == "response header connection" and b is None and (pair.request.body or asked)


# (reason, condition(name of the aspect, Istio's value, Strait's value, pair)). D: decisions of the specification; numbers: its sections.
REASONS = [
    ("D29: a trailing dot of the host is ignored",
     lambda name, a, b, pair: name == "status" and pair.host().endswith(".")),
    ("4.5: every host of a server with httpsRedirect is redirected, also one with a namespace", redirected),
    ("3.5: a cookie is generated once, not for each destination", one_cookie),
    ("docs/configuration.md: a target beyond ASCII, in UTF-8, is escaped", beyond_ascii),
    ("RFC 9110 8.6: a response without content has no content-length and no content-type",
     lambda name, a, b, pair: name in ("response header content-length", "response header content-type") and b is None
     and pair.istio["status"] == "204"),
    ("2.11: an empty list of allowed headers is left out",
     lambda name, a, b, pair: name == "response header access-control-allow-headers" and a == [""] and b is None),
    ("4.5: a redirect to https drops port 80",
     lambda name, a, b, pair: name == "response header location" and a and b and a[0].replace(":80/", "/", 1) == b[0]),
    ("8.1: the connection stays open after a local reply", closes),
    ("8.1: a response to HEAD names no transfer coding",
     lambda name, a, b, pair: name == "response header transfer-encoding" and b is None and pair.request.method == "HEAD"),
    ("8.4: the proxy answers `expect: 100-continue`, and removes it",
     lambda name, a, b, pair: name == "request header expect" and b is None),
    ("D19: `add` adds a line, also to headers that Envoy keeps as one value",
     lambda name, a, b, pair: "header" in name and a and b and len(a) < len(b) and plain(a) == plain(b)),
    ("2.6: a destination has its name even if it is not known",
     lambda name, a, b, pair: name.startswith("response header") and pair.istio["status"] == "503" and b and "outbound|" in b[-1]
     and plain(a) == plain(b[:-1])),
    ("2.11: a response to a preflight says what 2.11 lists, and credentials only to an allowed origin",
     lambda name, a, b, pair: preflight(pair) and b is None
     and name in ("response header access-control-expose-headers", "response header access-control-allow-credentials")),
    ("2.4: a fault comes before the choice of a destination: no header edits and no name of one",
     lambda name, a, b, pair: name.startswith("response header") and pair.istio.get("body") == "fault filter abort"),
    ("D28: an explicit default port in a redirect takes the port away",
     lambda name, a, b, pair: name == "response header location" and a and b and default_port(pair)
     and re.sub(r":\d+/", "/", a[0]) == re.sub(r":\d+/", "/", b[0])),
    ("3.3: unequal weights are drawn, where Envoy takes turns: the attempts that a dead endpoint costs differ",
     lambda name, a, b, pair: name == "request header x-envoy-attempt-count" and any(
         "weight" in e for r in pair.resources if r["kind"] == "ServiceEntry" for e in r["spec"].get("endpoints", []))),
    ("2.7: the port of a redirect replaces that of its authority, where Istio writes both",
     lambda name, a, b, pair: name == "response header location" and a and b and re.sub(r":\d+:", ":", a[0]) == b[0]),
    ("to be decided: a destination that a wildcard of a ServiceEntry covers is served, where Istio has no cluster",
     lambda name, a, b, pair: covered(pair) and (name in ("status", "endpoint") or pair.istio["status"] == "503" and (
         name == "body" or name.startswith("response header content-")))),
    ("8.4: all x-envoy-* request controls of outside clients are removed",
     lambda name, a, b, pair: name == "request header x-envoy-is-timeout-retry" and b is None),
    ("RFC 9110 8.6: no content-length without a body, where the client sent none",
     lambda name, a, b, pair: name == "request header content-length" and a == ["0"] and b is None),
    ("docs/configuration.md: a sidecar, too, removes x-envoy-* headers that only a proxy may set",
     lambda name, a, b, pair: name in ("request header x-envoy-decorator-operation", "request header x-envoy-original-path",
                                       "request header x-envoy-external-address")
     and b is None and pair.request.header(name.split(" ")[-1])),
    ("8.2: a rule without a name has the name of its match, without a dot",
     lambda name, a, b, pair: "header" in name and a and b and re.sub(r"(^|,)\.(?=m\d)", r"\1", plain(a)) == plain(b)),
    ("to be decided: server, content type and body of a malformed request that a rule's code refuses", malformed),
    ("3.5: a destination of an unknown subset has no cluster, and so no session cookie",
     lambda name, a, b, pair: name == "response header set-cookie" and of_unknown_subset(pair)),
]


def explain(pair, aspects):
    """The reasons for a difference, and the aspects of it that have none."""
    found, left = set(), []
    for name, a, b in aspects:
        reason = next((text for text, holds in REASONS if holds(name, a, b, pair)), None)
        if reason is None:
            left.append((name, a, b))
        else:
            found.add(reason)
    return sorted(found), left
