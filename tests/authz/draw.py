"""Draws AuthorizationPolicies and requests from small alphabets, so that they match often."""

import ipaddress
import json
import re
from collections import defaultdict
from dataclasses import dataclass, field

STRAIT = ["127.0.0.3", "127.0.0.4"]
# Never 127.0.0.1, in whose place Envoy puts the address of its host.
SOURCES = ["127.1.0.1", "127.1.0.1", "127.1.0.2", "127.1.1.1", "127.2.0.1"]
RANGES = ["127.1.0.1", "127.1.0.0/16", "127.1.0.0/31", "127.1.0.9/24", "127.2.0.1/32", "0.0.0.0/0", "10.0.0.0/8",
          "10.0.0.1", "2001:db8::/32", "::/0", "10.0.0.2/31", "2001:db8::1", "::ffff:127.1.0.1", "::ffff:127.1.0.0/112",
          "::ffff:10.0.0.0/104"]
FIELDS = {
    "operation": {
        "hosts": ["a.test", "b.test", "A.Test", "*.test", "*.a.test", "a.*", "x*", "*", "a.test:80", "*:8080",
                  "a.test.", "*.", "127.0.0.1", "*t", "[::1]"],
        "methods": ["GET", "GET", "POST", "PUT", "*", "G*", "*T", "get", "OPTIONS"],
        "paths": ["/", "/a", "/a/", "/a*", "*/b", "*", "/a/b", "/A*", "*b", "/a/{*}", "/a/{*}/b", "/a/{**}", "/{*}/b",
                  "/{**}", "/a/{**}/b", "/a/{**}/", "/{*}", "*.txt", "/i/*lit", "/a%2Fb", "/a%2F*", "/%61", "/a?q",
                  "//*", "/moved", "/a;v=1", "/a/{*}/", "/a%7Cb"],
    },
    "source": {
        "ipBlocks": RANGES, "remoteIpBlocks": RANGES,
        "principals": ["td1/ns/shop/sa/web", "td2/ns/shop/sa/web", "td3/ns/shop/sa/web", "td1/ns/shop/sa/w*",
                       "cluster.local/ns/shop/sa/web", "*/ns/shop/sa/web", "*1/ns/shop/sa/web", "*/sa/web", "td1/*",
                       "*", "td*", "*b", "td1/x", "*client", "client.test"],
        "namespaces": ["shop", "blog", "*", "sh*", "*op", "s*p", "x"],
        "serviceAccounts": ["web", "shop/web", "blog/web", "shop/db"],
        "trustDomains": ["td1", "td2", "td3", "*", "td*", "*1", "cluster.local"],
        "requestPrincipals": ["*", "i/s", "i/*", "i/s*", "*/s", "*i/s", "i*", "*s", "j/a/s", "j/a/*", "i"],
    },
}
TEXTS = ["v1", "v2", "v*", "*2", "*", "V1", "v1,v2", "*v1", "v1=1"]
CONDITIONS = {
    "source.ip": RANGES, "remote.ip": RANGES, "source.principal": FIELDS["source"]["principals"],
    "source.namespace": FIELDS["source"]["namespaces"], "source.serviceAccount": FIELDS["source"]["serviceAccounts"],
    "source.trustDomain": FIELDS["source"]["trustDomains"],
    "destination.ip": [*STRAIT, "127.0.0.0/8", "10.0.0.0/8"],
    "connection.sni": ["a.test", "*.test", "b*", "*", "x.a.test"],
    "request.headers[x-a]": TEXTS, "request.headers[X-A]": TEXTS, "request.headers[x-b]": TEXTS,
    "request.headers[cookie]": TEXTS, "request.headers[user-agent]": TEXTS,
    "request.headers[x-forwarded-proto]": ["http", "https", "*", "v*"],
    "request.headers[x-forwarded-for]": ["10.0.0.1", "10.*", "*", "*127.1.0.1", "*1"],
    "request.headers[host]": ["a.test", "*", "*.test", "A.Test"],
    "request.headers[:path]": ["/a", "/a*", "*", "*q=1", "/a?q=1"],
    "request.headers[:method]": ["GET", "*", "P*"],
    "request.headers[:authority]": ["a.test", "*", "*.test", "A.Test"],
    "request.auth.principal": FIELDS["source"]["requestPrincipals"],
    "request.auth.audiences": TEXTS, "request.auth.presenter": TEXTS, "request.auth.claims[g]": TEXTS,
    "request.auth.claims[o][g]": TEXTS, "request.auth.claims[scope]": TEXTS, "request.auth.claims[n]": ["1", "*"],
}
HOSTS = ["a.test", "a.test", "b.test", "x.a.test", "A.TEST", "a.test:80", "a.test:8080", "a.test.", "a.test.:80",
         "xa.test", "other", "127.0.0.1", "[::1]:8080", "a.test:", "x.A.test.", "[::1]"]
PATHS = ["/", "/a", "/a", "/a/", "/a/b", "/a/b", "/A", "/b", "/x/b", "/a/x/b", "/a/x/y/b", "/a/x/", "/a//b", "//a",
         "//a/b", "/a/./b", "/a/../b", "/a/..", "/../a", "/%61", "/%41", "/a%2Fb", "/a%2fb", "/a%5Cb", "/a;v=1",
         "/a/;v=1", "/a\\b", "/a.txt", "/i/*lit", "/i/xlit", "/moved", "/moved/x", "/a|b", "/a%20b", "/a%", "/a%zz",
         "/a%00", "/%2561", "/x/..;/a", "/a/{*}", "/a%3Fq", "/.a", "/a/%2e%2e/b", "/a//", "/a/b/", "/a:b"]
# Segments that paths of requests, and values and templates of policies, are composed of.
SEGMENTS = ["a", "a", "b", "b", "", "A", ".", "..", "%61", "%2F", "%2f", "%2e", "%41", "a.b", "a;v=1", "a%20b", "%7E",
            "~", "...", "a\\b", "$", "&'()", "!*", "a=b", "@:", "+,", "%25", "{a}", "^", "%C3%A9", "*", "a*"]
LITERALS = ["a", "a", "b", "b", "A", "a.b", "a;v=1", "%2F", "~", "...", "$", "&'()", "!", "a=b", "@:", "+,", "%25",
            "%C3%A9"]
QUERIES = ["", "", "", "?", "?q=1", "?/b", "?x=/a/b", "?q=1?/b", "?%61"]
METHODS = ["GET"] * 12 + ["POST"] * 3 + ["POST", "PUT", "OPTIONS", "HEAD", "DELETE", "PATCH", "get"]
LINES = [("x-a", "v1"), ("x-a", "v2"), ("X-A", "v1"), ("x-a", ""), ("x-a", "V1"), ("x-a", "v1,v2"), ("x-a", "v1, v2"),
         ("x-b", "v1"), ("x-b", "av1"), ("x-b", ""), ("x_a", "v1"), ("Cookie", "v1=1"), ("cookie", "v2=2"),
         ("User-Agent", "v1"), ("user-agent", "v2"), ("x-b", "  v2\t"), ("x-forwarded-proto", "https"),
         ("x-forwarded-proto", "v1"), ("Connection", "x-a")]
FORWARDED = ["10.0.0.1", "10.0.0.1, 127.1.0.1", "10.0.0.2,10.0.0.1", "bad", "10.0.0.1:80", "::ffff:10.0.0.1",
             "2001:db8::1", "10.0.0.1,", "", "[2001:db8::1]:80", "10.0.0.1, bad"]
# Values of fields, each with what a request just has of it, or just not: a text, or the name of a certificate or token.
OF_CERTIFICATES = {
    "principals": [("td1/ns/shop/sa/web", "web of td2"), ("cluster.local/ns/shop/sa/web", "local"),
                   ("cluster.local/ns/shop/sa/web", "web"), ("*1/ns/shop/sa/web", "web of td2"),
                   ("td1/*", "web of td10"), ("td1*", "web of td10"), ("*/sa/web", "web of blog")],
    "namespaces": [("shop*", "web"), ("*shop", "web"), ("sh*op", "web"), ("*", "web of blog"), ("sho", "web")],
    "serviceAccounts": [("web", "web of blog"), ("web", "web of td3"), ("shop/web", "web of blog"),
                        ("blog/web", "web")],
    "trustDomains": [("td1", "web of td10"), ("*1", "web"), ("*0", "web of td10"), ("td1", "web of td2"),
                     ("td1*", "web of td10")],
}
OF_TOKENS = {
    "requestPrincipals": [("*/s", "lists"), ("*/s", "nested"), ("*i/s", "slash"), ("*s", "slash"), ("*2", "texts"),
                          ("i/s*", "lists"), ("i*", "nested"), ("*", "no subject"), ("i", "texts")],
    "request.auth.audiences": [("v1", "lists"), ("v*", "lists"), ("*2", "lists"), ("v1", "texts")],
    "request.auth.claims[g]": [("v2", "lists"), ("*", "lists"), ("v1", "nested"), ("v1", "no subject")],
    "request.auth.claims[o][g]": [("v2", "nested"), ("v1", "lists"), ("v*", "nested")],
    "request.auth.claims[scope]": [("v1", "texts"), ("v2", "texts"), ("v1", "nested"), ("v1 v2", "texts")],
}
OF_HEADERS = [("*", ""), ("*", "v1"), ("v*", "v"), ("*2", "2"), ("v1", "v1,v2"), ("v1", "V1")]
EDGES = {
    **OF_CERTIFICATES, **OF_TOKENS, "request.auth.principal": OF_TOKENS["requestPrincipals"],
    "hosts": [("a.test", "A.TEST"), ("*.test", "x.A.TEST"), ("a.*", "A.test"), ("A.Test", "a.test"),
              ("a.test", "a.test:80")],
    "paths": [("/a/{**}", "/a/"), ("/{**}", "/"), ("/a/{**}/", "/a//"), ("/a/{**}", "/a"), ("/a/{*}/b", "/a//b"),
              ("/{*}", "/"), ("/{*}/b", "//b"), ("/a/{*}", "/a/"), ("/a*", "/a"), ("/a*", "/ab"), ("*/b", "/b"),
              ("*", "/")],
    "methods": [("G*", "GET"), ("*T", "POST"), ("*", "PUT"), ("GET", "HEAD")],
    "connection.sni": [("*.test", "a.test"), ("b*", "b.test"), ("*", "a.test"), ("a.test", "A.test"), ("*", None)],
    **{f"request.headers[{name}]": OF_HEADERS for name in ("x-a", "X-A", "x-b")},
}
SERVER_NAMES = ["a.test", "b.test", "x.a.test", "A.test", None]
NAME = re.compile(r"[A-Za-z0-9]+(\.[A-Za-z0-9]+)*")
HOST = re.compile(rf"{NAME.pattern}\.?(:[0-9]+)?")
# Fields of which a condition compares the same.
SAME = {"source.ip": "ipBlocks", "remote.ip": "remoteIpBlocks", "source.principal": "principals",
        "source.namespace": "namespaces", "source.serviceAccount": "serviceAccounts",
        "source.trustDomain": "trustDomains", "request.headers[:method]": "methods", "destination.port": "ports",
        "request.headers[:authority]": "hosts", "request.headers[host]": "hosts",
        "request.headers[x-forwarded-for]": "", "request.headers[:path]": ""}


@dataclass
class Request:
    """One request, and the connection that it is sent on. `certificate` and `token` are names."""

    port: int
    method: str
    target: str
    lines: list
    source: str
    tls: bool = False
    server_name: str | None = None
    certificate: str | None = None
    token: str | None = None
    signed: dict = field(default_factory=dict, repr=False)

    def bytes(self):
        lines = [*self.lines, ("Connection", "close")]
        if self.token:
            lines.append(("Authorization", f"Bearer {self.signed[self.token]}"))
        head = [f"{self.method} {self.target} HTTP/1.1", *(f"{name}: {value}" for name, value in lines)]
        return ("\r\n".join(head) + "\r\n\r\n").encode("latin-1")

    def header(self, name):
        return [value for key, value in self.lines if key.lower() == name]


class Draw:
    """Draws the policies and the requests of one set from a seed.

    Two of three sets have one field only, which decides: each field in its turn. Requests have values that those of the
    policies match, or nearly do.
    """

    def __init__(self, random, world, number):
        self.random, self.world, self.number = random, world, number
        ports = [str(port) for port in world.ports]
        self.fields = {**FIELDS, "operation": {**FIELDS["operation"], "ports": [*ports, f"0{ports[0]}", "80"]}}
        self.conditions = {**CONDITIONS, "destination.port": ports}
        self.hops, self.used, self.edge = random.randrange(2), defaultdict(list), None
        fields = [(inner, name) for inner, names in sorted(self.fields.items()) for name in sorted(names)]
        fields += [("when", key) for key in sorted(self.conditions) if key not in SAME]
        self.single = fields[(number - number // 3) % len(fields)] if number % 3 else None
        edges = EDGES.get(self.single and self.single[1])
        if edges and self.chance(0.7):
            self.edge = random.choice(edges)
        self.policies = [self._policy(i) for i in range(1 if self.single else random.randint(1, 4))]
        self.text = json.dumps([policy["spec"] for policy in self.policies])

    def chance(self, probability):
        return self.random.random() < probability

    def _policy(self, i):
        random = self.random
        action = random.choice(["DENY", "DENY", "ALLOW", "ALLOW"] + ["AUDIT"] * (not self.single))
        spec = {"action": action} if action != "ALLOW" or self.chance(0.5) else {}
        if action == "DENY" or self.chance(0.95):
            spec["rules"] = [self._rule() for _ in range(self._count(3))]
        if self.chance(0.3) and not self.single:
            spec["selector"] = {"matchLabels": {"app": random.choice(["proxy", "proxy", "other"])}}
        namespaces = ["shop"] * 3 + ["istio-system"] + ["blog"] * (not self.single)
        metadata = {"name": f"p{self.number}-{i}", "namespace": random.choice(namespaces)}
        if self.chance(0.07):
            metadata["annotations"] = {"istio.io/dry-run": random.choice(["true", "false"])}
        return {"apiVersion": "security.istio.io/v1", "kind": "AuthorizationPolicy", "metadata": metadata, "spec": spec}

    def _count(self, most):
        return 1 if self.single else self.random.choice([1, *range(1, most + 1)])

    def _rule(self):
        if self.single:
            inner, name = self.single
            if inner == "when":
                return {"when": [self._condition(name)]}
            return {"from" if inner == "source" else "to": [{inner: self._element(inner, [name])}]}
        rule = {}
        for key, inner, probability in (("from", "source", 0.5), ("to", "operation", 0.65)):
            if self.chance(probability):
                names = self.random.sample(sorted(self.fields[inner]), self._count(3))
                rule[key] = [{inner: self._element(inner, names)} for _ in range(self._count(2))]
        if self.chance(0.45):
            keys = self.random.choices(sorted(self.conditions), k=self._count(2))
            rule["when"] = [self._condition(key) for key in keys]
        return rule if rule or self.chance(0.05) else self._rule()

    def _element(self, inner, names):
        if "serviceAccounts" in names:
            names = [name for name in names if name not in ("principals", "namespaces")]
        element = {}
        for name in names:
            negative = f"not{name[0].upper()}{name[1:]}"
            element.update(self._values(name, self.fields[inner][name], name, negative))
        return element

    def _condition(self, key):
        return {"key": key, **self._values(SAME.get(key, key), self.conditions[key], "values", "notValues")}

    def _values(self, name, alphabet, positive, negative):
        keys = self.random.choice([[positive]] * 6 + [[negative]] * 3 + [[positive, negative]])
        if self.edge:
            alphabet = [self.edge[0]]
        elif positive == "paths":
            alphabet = [*alphabet, *(self._path_value() for _ in range(len(alphabet) // 2))]
        found = {key: self.random.sample(alphabet, min(len(alphabet), self.random.choice([1, 1, 2]))) for key in keys}
        self.used[name] += sum(found.values(), [])
        return found

    def _path(self):
        return "/" + "/".join(self.random.choices(SEGMENTS, k=self.random.choice([1, 2, 2, 3, 4])))

    def _path_value(self):
        """A value of `paths`: a composed path, its beginning or end, or a template."""
        random, path = self.random, self._path()
        if self.chance(0.5):
            end = random.choice([[], [], ["{**}"], ["{**}", *random.choices(LITERALS, k=random.randrange(3))]])
            path = "/" + "/".join([*random.choices([*LITERALS, *["{*}"] * 9], k=random.randrange(1, 4)), *end])
            return path if "{" in path else f"{path}/{{*}}"
        path = path.replace("*", "").replace("{", "").replace("}", "")
        cut = random.randrange(len(path))
        return random.choice([path, f"{path[:cut]}*", f"*{path[cut:]}"])

    def _similar_path(self):
        """A path that a value of the policies may match."""
        random, path = self.random, self.random.choice(self.used["paths"])
        for operator, texts in (("{**}", ["", "a", "a/b", "/", "a//b"]), ("{*}", ["a", "a", "", "a/b", "%2F", "a;v=1"]),
                                ("*", ["", "a", "/a", "/"])):
            path = path.replace(operator, random.choice(texts))
        return path if path.startswith("/") else f"/{path}"

    def _similar(self, name, parts):
        """A text that a value of a field matches, or nearly does; `parts` are in the place of `*`. Or None."""
        random = self.random
        if not self.used[name] or self.chance(0.25):
            return None
        text = random.choice(self.used[name]).replace("*", random.choice(parts))
        if self.chance(0.2):
            text = random.choice([text.swapcase(), f"{text}{parts[-1]}", f"{parts[-1]}{text}"])
        return text

    def _similar_address(self, name, fits):
        """An address at an edge of a network of a field, or just beyond it. Or None."""
        if not self.used[name] or self.chance(0.25):
            return None
        network = ipaddress.ip_network(self.random.choice(self.used[name]), strict=False)
        first, last = (int(network[i]) for i in (0, -1))
        values = (first, first + 1, last, last + 1, first - 1)
        values = [value for value in values if 0 <= value < 1 << network.max_prefixlen]
        found = [address for address in map(type(network[0]), values) if fits(address)]
        address = self.random.choice(found) if found else None
        mapped = getattr(address, "ipv4_mapped", None)
        return f"::ffff:{mapped}" if mapped else address and str(address)

    def _about(self, *names):
        """Whether the policies have a field or a condition of these names."""
        return any(name in self.text for name in names)

    def request(self):
        random, world = self.random, self.world
        port = random.choice(world.ports)
        identity = self._about("rincipals", "amespaces", "erviceAccounts", "rustDomains", "source.", "sni")
        if identity and self.chance(0.85):
            port = world.ports[2]
        method, path = random.choice(METHODS), random.choice(PATHS) if self.chance(0.6) else self._path()
        if self.used["methods"] and self.chance(0.6):
            method = random.choice(sorted(set(METHODS)))
        if self.used["paths"] and self.chance(0.6):
            path = self._similar_path()
        path += random.choice(QUERIES)
        host = self._similar("hosts", ["a.test", "x", "x.a", ".test"])
        if not host or not HOST.fullmatch(host):
            host = random.choice(HOSTS)
        lines = random.choices(LINES, k=random.choice([0, 1, 1, 2, 3]))
        for key in [key for key in self.used if key.startswith("request.headers[")]:
            value = self._similar(key, ["", "v", "1"])
            if value is not None:
                lines.insert(random.randrange(len(lines) + 1), (key[len("request.headers["):-1], value))
        # Not `OPTIONS *`, nor a port that is empty: Envoy refuses such targets before its filters.
        if self.chance(0.03):
            path = f"http://{random.choice(HOSTS).removesuffix(':')}{path}"
        for _ in range(random.choice([1, 1, 2] if self._about("emoteIp", "remote.ip") else [0, 0, 0, 1, 1, 2])):
            address = self._similar_address("remoteIpBlocks", lambda _: True)
            lines.append(("x-forwarded-for", address or random.choice(FORWARDED)))
        source = self._similar_address("ipBlocks", lambda address: int(address) >> 16 in range(0x7F01, 0x7FFF))
        request = Request(port, method, path, [("Host", host), *lines], source or random.choice(SOURCES),
                          signed=world.tokens)
        if self.chance(0.8 if self._about("equestPrincipals", "request.auth") else 0.2):
            request.token = random.choice(sorted(world.tokens))
        if port == world.ports[2]:
            name = self._similar("connection.sni", ["", "x", "x.a"])
            request.tls = True
            request.server_name = name if name and NAME.fullmatch(name) else random.choice(SERVER_NAMES)
            names = list(world.certificates)
            request.certificate = random.choice([*(names[:5] if self.chance(0.6) else names), None])
        if self.edge and self.chance(0.5):
            self._to_edge(request)
        return request

    def _to_edge(self, request):
        """Gives a request what the value of the policy just matches, or just not."""
        name, text = self.single[1], self.edge[1]
        if name in OF_CERTIFICATES or name == "connection.sni":
            request.port, request.tls = self.world.ports[2], True
            if name == "connection.sni":
                request.server_name = text
            else:
                request.certificate = text
        elif name in OF_TOKENS or name == "request.auth.principal":
            request.token = text
        elif name == "methods":
            request.method = text
        elif name == "paths":
            request.target = text
        elif name == "hosts":
            request.lines = [("Host", text), *(line for line in request.lines if line[0] != "Host")]
        else:
            header = name[len("request.headers["):-1]
            request.lines = [line for line in request.lines if line[0].lower() != header.lower()]
            request.lines.append((header, text))
