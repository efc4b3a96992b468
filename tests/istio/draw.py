"""Draws configurations: Gateways, VirtualServices with delegates, DestinationRules and ServiceEntries."""

from world import LABELS, NAMESPACE, resource

NAMESPACES = ["shop", "blog"]
# Hosts of Gateways and VirtualServices, which overlap in every way.
HOSTS = ["a.test", "b.test", "x.a.test", "y.x.a.test", "*.a.test", "*.x.a.test", "*.test", "*", "A.b.test"]
SEGMENTS = ["/", "/a", "/a/", "/a/b", "/ab", "/b", "/A", "/a/b/c", "/api/v1", "/a%2Fb", "/a.b"]
REGEXES = ["/a.*", "/[a-b]+", "/(a|b)/.*", ".*", "/a/?b", "(?i)/a", r"/\w+(/\w+)?",
           "/a/[^/]+/c", "/.{1,3}", "/a|/b", ""]
HEADERS = ["x-a", "x-b", "x-user", "cookie", "user-agent", "accept", "host", "x-forwarded-proto"]
VALUES = ["v1", "v2", "V1", "v", "", "v1,v2", "a b", "v12"]
VALUE_REGEXES = ["v[0-9]", "v.*", ".*", "v1|v2", "(v1)", ".+"]
QUERIES = ["q", "Q", "p"]
METHODS = ["GET", "POST", "OPTIONS", "HEAD", "PUT"]
AUTHORITIES = ["a.test", "x.a.test", "a.test:8080", "b.test"]
ORIGINS = ["http://o.test", "https://p.test:8443", "http://x.o.test"]
OPERATORS = ["%PROTOCOL%", "%REQ(x-a)%", "100%%", "%REQ(:path)%-%REQ(:method)%",
             "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%", "%REQ(x-missing?x-b)%", "v3", "v4, v5",
             "%ROUTE_NAME%", "%UPSTREAM_CLUSTER%"]

# Headers that rules edit.
EDITED = {"request": ["x-a", "x-b", "x-new", "X-Up", "user-agent", "x-forwarded-proto"],
          "response": ["x-r", "x-s", "x-new", "content-type", "server", "set-cookie"]}
CORS_LISTS = (("allowMethods", ["GET", "POST", "*"]), ("allowHeaders", ["x-a", "X-B", "*"]),
              ("exposeHeaders", ["x-r", "x-s"]))
CORS_VALUES = (("maxAge", ["60s", "2m"]), ("allowCredentials", [True, False]),
               ("unmatchedPreflights", ["IGNORE", "FORWARD"]))


class Draw:
    """One random configuration; `self.resources` has it."""

    def __init__(self, random, world, number):
        self.random, self.world, self.number = random, world, number
        self.resources, self.age = [], 0
        sidecar = world.role == "sidecar"
        self.service_ports = world.ports[:2] if sidecar else [80, 8080]
        self.gateways = []
        self._services()
        if not sidecar:
            for i in range(random.randint(1, 3)):
                self._gateway(i)
        for i in range(random.randint(1, 4)):
            self._virtual_service(i)

    def chance(self, probability):
        return self.random.random() < probability

    def some(self, choices, low, high):
        return self.random.sample(choices, min(len(choices), self.random.randint(low, high)))

    def add(self, kind, name, namespace, spec):
        # Few different ages, so that ties are common.
        stamp = f"2024-01-01T00:00:{self.random.randrange(6):02}Z"
        self.resources.append(resource(kind, {"name": name, "namespace": namespace, "creationTimestamp": stamp}, spec))

    # Services.

    def _services(self):
        self.services = []
        for i in range(4):
            namespace = self.random.choice(NAMESPACES)
            host = f"s{i}-{self.number}.{namespace}.svc.cluster.local"
            if i == 3:
                host = self.random.choice(["ext-{}.example", "*.wild-{}.example", "s3-{}.test"]).format(self.number)
            self._service(i, namespace, host)
        self.mirror = f"mirror-{self.number}.test"
        self.add("ServiceEntry", "mirror", "shop", {
            "hosts": [self.mirror], "resolution": "STATIC",
            "ports": [{"number": port, "name": f"http-{port}", "protocol": "HTTP"} for port in self.service_ports],
            "endpoints": [{"address": "127.0.0.1", "ports": {
                f"http-{port}": self.world.endpoints.mirror for port in self.service_ports}}]})

    def _service(self, i, namespace, host):
        world, random = self.world, self.random
        own = world.endpoints.ports[i * 2:i * 2 + 2]
        ports = [{"number": self.service_ports[0], "name": "http", "protocol": "HTTP"}]
        if self.chance(0.4 if world.role == "gateway" else 0.8):
            ports.append({"number": self.service_ports[1], "name": "http-alt", "protocol": "HTTP"})
        endpoints = []
        for _ in range(random.choice([1, 1, 2, 3, 3])):
            if self.chance(0.03):
                port = world.endpoints.dead
            else:
                port = random.choice(own if self.chance(0.8) else world.endpoints.ports)
            if any(e["ports"]["http"] == port for e in endpoints):
                continue
            endpoint = {"address": "127.0.0.1", "ports": {p["name"]: port for p in ports},
                        "labels": {"version": random.choice(["v1", "v2"])}}
            if self.chance(0.2):
                endpoint["weight"] = random.randint(1, 3)
            endpoints.append(endpoint)
        spec = {"hosts": [host], "resolution": "STATIC", "ports": ports, "endpoints": endpoints,
                "location": random.choice(["MESH_INTERNAL", "MESH_EXTERNAL"])}
        if self.chance(0.05):
            spec["exportTo"] = [random.choice([".", "blog", "shop", "istio-system"])]
        self.add("ServiceEntry", f"e{i}", namespace, spec)
        self.services.append((host, namespace, len(ports)))
        if self.chance(0.7):
            self._destination_rule(i, host, namespace)

    def _destination_rule(self, i, host, namespace):
        spec = {"host": host}
        if self.chance(0.7):
            spec["trafficPolicy"] = self._policy()
        if self.chance(0.8):
            spec["subsets"] = []
            for name in ["v1", "v2", "none"]:
                subset = {"name": name, "labels": {"version": name}}
                if self.chance(0.2):
                    subset["trafficPolicy"] = self._policy()
                spec["subsets"].append(subset)
        if self.chance(0.1):
            namespace = self.random.choice([*NAMESPACES, NAMESPACE[self.world.role]])
        if self.chance(0.1):
            spec["exportTo"] = [self.random.choice([".", "*", "blog"])]
        self.add("DestinationRule", f"d{i}", namespace, spec)

    def _policy(self):
        random = self.random
        if self.chance(0.3):
            return {"loadBalancer": {"simple": random.choice(["ROUND_ROBIN", "RANDOM", "LEAST_REQUEST"])}}
        balance = random.choice([
            {"httpHeaderName": random.choice(["x-user", "x-a"])}, {"httpQueryParameterName": random.choice(QUERIES)},
            {"useSourceIp": True}, {"httpCookie": {"name": "user"}},
            {"httpCookie": {"name": "user", "ttl": random.choice(["0s", "60s"]), "path": "/p"}}])
        algorithm = random.choice([{}, {"ringHash": {"minimumRingSize": random.choice([1, 64, 1024])}},
                                   {"maglev": {"tableSize": random.choice([11, 1031, 65537])}}])
        return {"loadBalancer": {"consistentHash": {**balance, **algorithm}}}

    # Gateways.

    def _gateway(self, i):
        random = self.random
        namespace = random.choice([*NAMESPACES, "istio-system"])
        servers = []
        for j in range(random.randint(1, 3)):
            port = {"number": random.choice(self.world.ports), "name": f"http-{j}",
                    "protocol": random.choice(["HTTP", "HTTP", "HTTP2", "GRPC"])}
            hosts = self.some([*HOSTS, "*", "*.test"], 1, 3)
            if self.chance(0.15):
                # Not `*/*`: istiod ends at it, beside other hosts.
                hosts = [h if h == "*" else f"{random.choice(['*', '.', *NAMESPACES])}/{h}" for h in hosts]
            server = {"port": port, "bind": "BIND", "hosts": hosts}
            if self.chance(0.06):
                server["tls"] = {"httpsRedirect": True}
            servers.append(server)
        selector = {"app": "proxy"} if self.chance(0.95) else {"app": "other"}
        self.add("Gateway", f"g{i}", namespace, {"selector": selector, "servers": servers})
        self.gateways.append((f"g{i}", namespace))

    def _gateway_names(self, namespace):
        names = [name if ns == namespace and self.chance(0.5) else f"{ns}/{name}"
                 for name, ns in self.some(self.gateways, 1, 2)]
        return [*names, "mesh"] if self.chance(0.1) else names

    # VirtualServices.

    def _virtual_service(self, i):
        random, namespace = self.random, self.random.choice(NAMESPACES)
        spec = {}
        if self.world.role == "sidecar":
            services = [host for host, ns, _ in self.services if "*" not in host]
            wildcards = ["*.shop.svc.cluster.local", "*.svc.cluster.local", "*.example", "*.test"]
            hosts = self.some([*services * 3, *wildcards, *HOSTS[:3]], 1, 2)
            if self.chance(0.15):
                spec["gateways"] = random.choice([["mesh"], ["mesh", "shop/g0"], ["shop/g0"]])
        else:
            hosts = self.some(HOSTS, 1, 2)
            spec["gateways"] = self._gateway_names(namespace)
        if len(hosts) == 2 and overlap(*hosts):
            hosts = hosts[:1]
        if "mesh" in spec.get("gateways", ["mesh"]):
            hosts = ["b.test" if h == "*" else h for h in hosts]
        spec["hosts"] = hosts
        if self.chance(0.12):
            spec["exportTo"] = [random.choice([".", "*", "shop", NAMESPACE[self.world.role]])]
        spec["http"] = [self._rule(namespace, f"{i}-{j}", True) for j in range(random.randint(1, 4))]
        if self.chance(0.6):
            spec["http"][-1].pop("match", None)
        self.add("VirtualService", f"v{i}", namespace, spec)

    def _rule(self, namespace, name, root):
        rule = {}
        if self.chance(0.3):
            rule["name"] = f"rule-{name}"
        if self.chance(0.85):
            rule["match"] = [self._match() for _ in range(self.random.choice([1, 1, 2]))]
        kind = self.random.random()
        if root and kind < 0.1:
            target = self.random.choice(NAMESPACES)
            rule["delegate"] = {"name": f"t{name}", "namespace": target}
            rules = [self._rule(target, f"{name}-{k}", False) for k in range(self.random.randint(1, 2))]
            self.add("VirtualService", f"t{name}", target if self.chance(0.95) else "blog", {"http": rules})
        elif kind < 0.22:
            rule["redirect"] = self._redirect()
        elif kind < 0.34:
            rule["directResponse"] = {"status": self.random.choice([200, 204, 404, 503, 418])}
            if self.chance(0.7):
                rule["directResponse"]["body"] = {"string": f"direct {name}"}
        else:
            self._route(rule, namespace)
        if self.chance(0.2) and "delegate" not in rule:
            rule["corsPolicy"] = self._cors()
        if self.chance(0.3) and "headers" not in rule:
            rule["headers"] = self._headers("route" in rule)
        return rule

    def _string_match(self, values, regexes):
        form = self.random.choice(["exact", "exact", "prefix", "prefix", "regex"])
        value = self.random.choice(regexes if form == "regex" else values)
        if form != "exact" and value == "":
            value = "/a" if values is SEGMENTS else "v1"
        return {form: value}

    def _match(self):
        random, match = self.random, {}
        if self.chance(0.75):
            match["uri"] = self._string_match(SEGMENTS, REGEXES)
            if self.chance(0.2):
                match["ignoreUriCase"] = True
        fields = (("headers", 0.3, HEADERS), ("withoutHeaders", 0.12, HEADERS), ("queryParams", 0.15, QUERIES))
        for field, probability, names in fields:
            if self.chance(probability):
                match[field] = {n: {} if self.chance(0.2) else self._string_match(VALUES, VALUE_REGEXES)
                                for n in self.some(names, 1, 2)}
        if self.chance(0.15):
            match["method"] = self._string_match(METHODS, ["GET|POST", "P.*"])
        if self.chance(0.1):
            match["authority"] = self._string_match(AUTHORITIES, [r"a\.test(:\d+)?", r".*\.test"])
        if self.chance(0.04):
            match["scheme"] = self._string_match(["http", "https"], ["https?"])
        if self.chance(0.08):
            match["port"] = random.choice(self.world.ports)
        if self.chance(0.08):
            match["sourceLabels"] = random.choice([{"app": "proxy"}, {"app": "other"}, LABELS])
        if self.chance(0.05):
            match["sourceNamespace"] = random.choice([*NAMESPACES, "istio-system"])
        if self.chance(0.08):
            match["gateways"] = [random.choice(["mesh", "shop/g0", "blog/g0", "istio-system/g0", "g1"])]
        if self.chance(0.1):
            match["name"] = f"m{random.randrange(3)}"
        return match

    def _redirect(self):
        redirect = {}
        for field, values in (("uri", ["/new", "/new?q=z", "/"]), ("authority", ["r.test", "r.test:81"]),
                              ("scheme", ["http", "https"]), ("redirectCode", [301, 302, 303, 307, 308])):
            if self.chance(0.4):
                redirect[field] = self.random.choice(values)
        if self.chance(0.3):
            redirect.update(self.random.choice([
                {"port": 80}, {"port": 443}, {"port": 8443}, {"derivePort": "FROM_REQUEST_PORT"},
                {"derivePort": "FROM_PROTOCOL_DEFAULT"}]))
        return redirect if redirect.keys() - {"redirectCode", "derivePort"} else {**redirect, "uri": "/only"}

    def _route(self, rule, namespace):
        random = self.random
        count = random.choice([1, 1, 1, 2, 3])
        rule["route"] = [self._destination(namespace) for _ in range(count)]
        if count > 1:
            for i, route in enumerate(rule["route"]):
                route["weight"] = random.choice([0, 1, 2]) if i else random.choice([1, 2])
        if self.chance(0.25):
            rule["rewrite"] = random.choice([
                {"uri": "/w"}, {"uri": "/"}, {"uri": "/w/"}, {"authority": "w.test"},
                {"uri": "/w", "authority": "w.test"}, {"uriRegexRewrite": {"match": "/a(.*)", "rewrite": r"/z\1"}},
                {"uriRegexRewrite": {"match": "b", "rewrite": "y"}}])
        if self.chance(0.15):
            rule["timeout"] = random.choice(["3s", "3s", "80ms"])
        if self.chance(0.2):
            retries = {"attempts": random.choice([0, 1, 2])}
            if retries["attempts"] and self.chance(0.7):
                retries["retryOn"] = random.choice([
                    "5xx", "503", "gateway-error", "retriable-4xx,connect-failure", "connect-failure", "reset,418"])
            if retries["attempts"] and self.chance(0.3):
                retries["perTryTimeout"] = "2s"
            rule["retries"] = retries
        if self.chance(0.08):
            rule["fault"] = {"abort": {"httpStatus": random.choice([400, 503]),
                                       "percentage": {"value": random.choice([0, 100])}}}
        if self.chance(0.04):
            rule["mirror"] = self._destination(namespace)["destination"]
        elif self.chance(0.08):
            self._mirror(rule)

    def _mirror(self, rule):
        """Mirrors requests to the endpoint that keeps them, and says so in a header of the response."""
        mirror = {"host": self.mirror, "port": {"number": self.random.choice(self.service_ports)}}
        percentage = {"value": self.random.choice([0, 100])}
        if self.chance(0.3):
            rule["mirrors"] = [{"destination": mirror}, {"destination": mirror, "percentage": percentage}]
        elif self.chance(0.3):
            rule.update(mirror=mirror, mirrorPercentage=percentage)
        else:
            rule["mirror"] = mirror
        rule["headers"] = {"response": {"set": {"x-mirrors": "yes"}}}

    def _destination(self, namespace):
        host, service_namespace, ports = self.random.choice(self.services)
        host = host.replace("*", "q")
        destination = {"host": host}
        if service_namespace == namespace and ".svc." in host and self.chance(0.5):
            destination["host"] = host.split(".")[0]
        if self.chance(0.03):
            destination["host"] = "missing.shop.svc.cluster.local"
        if self.chance(0.35):
            destination["subset"] = self.random.choice(["v1", "v2"] * 4 + ["none", "nope"])
        if ports == 2 or self.chance(0.3):
            destination["port"] = {"number": self.random.choice(self.service_ports[:ports])}
        route = {"destination": destination}
        if self.chance(0.2):
            route["headers"] = self._headers(True)
        return route

    def _headers(self, request):
        edits = {}
        for side in ["request", "response"] if request else ["response"]:
            if self.chance(0.6):
                names = EDITED[side]
                edit = {}
                if self.chance(0.5):
                    edit["set"] = {n: self.random.choice(OPERATORS) for n in self.some(names, 1, 2)}
                if self.chance(0.5):
                    edit["add"] = {n: self.random.choice(OPERATORS) for n in self.some(names, 1, 2)}
                if self.chance(0.4):
                    edit["remove"] = self.some(names, 1, 2)
                edits[side] = edit
        return edits

    def _cors(self):
        cors = {}
        if self.chance(0.9):
            cors["allowOrigins"] = [self.random.choice([
                {"exact": "*"}, {"exact": ORIGINS[0]}, {"prefix": "https://"}, {"regex": r"http://.*\.test"}])]
        for field, values in CORS_LISTS:
            if self.chance(0.4):
                cors[field] = self.some(values, 1, 2)
        for field, values in CORS_VALUES:
            if self.chance(0.3):
                cors[field] = self.random.choice(values)
        return cors


def overlap(a, b):
    """Whether two hosts of one VirtualService overlap, which Istio refuses."""
    a, b = a.lower(), b.lower()
    if not a.startswith("*"):
        a, b = b, a
    if not a.startswith("*"):
        return a == b
    return b.lstrip("*").endswith(a[1:]) or b.startswith("*") and a[1:].endswith(b[1:])
