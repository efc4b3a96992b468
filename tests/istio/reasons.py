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
    return name == "status" and a == "400 Bad Request" and not pair.request.target.isascii()


def one_cookie(name, a, b, pair):
    return name == "response header set-cookie" and a and b and list(dict.fromkeys(a)) == list(dict.fromkeys(b))


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
    ("8.4: `expect: 100-continue` is removed, also without a body",
     lambda name, a, b, pair: name == "request header expect" and b is None and not pair.request.body),
    ("8.4: all x-envoy-* request controls of outside clients are removed",
     lambda name, a, b, pair: name == "request header x-envoy-is-timeout-retry" and b is None),
    ("RFC 9110 8.6: no content-length without a body, where the client sent none",
     lambda name, a, b, pair: name == "request header content-length" and a == ["0"] and b is None),
    ("to be merged: server, content type and body of a malformed request", malformed),
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
