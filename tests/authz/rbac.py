"""Translates AuthorizationPolicies to the RBAC filters of Envoy that Istio writes for them."""

import ipaddress
import re

TRUST_DOMAINS = ["td1", "td2"]
# The workload that both proxies serve.
NAMESPACE, ROOT_NAMESPACE, LABELS = "shop", "istio-system", {"app": "proxy"}
JWT_FILTER = "envoy.filters.http.jwt_authn"
RBAC = "type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC"
TEMPLATE = "type.googleapis.com/envoy.extensions.path.match.uri_template.v3.UriTemplateMatchConfig"


def regex(expression):
    return {"safe_regex": {"regex": expression}}


def text(value, scheme=""):
    """String matcher of a value of a policy; `scheme` comes before the values of principals."""
    if value == "*":
        return regex(".+")
    if value.startswith("*"):
        return regex(f"{scheme}.*{re.escape(value[1:])}") if scheme else {"suffix": value[1:]}
    if value.endswith("*"):
        return {"prefix": scheme + value[:-1]}
    return {"exact": scheme + value}


def header(name, value, **options):
    """Header matcher of a value; unlike other values, `*` matches an empty header too."""
    if value == "*":
        return {"header": {"name": name, "present_match": True}}
    return {"header": {"name": name, "string_match": {**text(value), **options}}}


def authenticated(matcher):
    return {"authenticated": {"principal_name": matcher}}


def claim(path, value):
    segments = [{"key": "payload"}, *({"key": key} for key in path)]
    return {"metadata": {"filter": JWT_FILTER, "path": segments, "value": value}}


def any_claim(path, value):
    """Matcher of a claim that is a text, or a list with one."""
    one = {"string_match": text(value)}
    return claim(path, {"or_match": {"value_matchers": [{"list_match": {"one_of": one}}, one]}})


def request_principal(value):
    issuer, slash, subject = value.rpartition("/")
    if value == "*":
        pair = regex(".+"), regex(".+")
    elif not slash:
        pair = {"exact": value}, {"exact": ""}
        if value.startswith("*"):
            pair = regex(".+"), {"suffix": value[1:]}
        elif value.endswith("*"):
            pair = {"prefix": value[:-1]}, regex(".+")
    elif value.startswith("*"):
        pair = regex(".+") if issuer == "*" else {"suffix": issuer[1:]}, {"exact": subject}
    else:
        pair = {"exact": issuer}, text(subject)
    claims = [claim([name], {"string_match": matcher}) for name, matcher in zip(("iss", "sub"), pair)]
    return {"and_ids": {"ids": claims}}


def with_aliases(principal):
    """The principal in every trust domain of the mesh, if it is of one."""
    domain, *rest = principal.split("/")
    if len(rest) != 4 or domain == "*":
        return [principal]
    known = domain == "cluster.local" or any(matches(domain, one) for one in TRUST_DOMAINS)
    if not known:
        return [principal]
    replaced = [principal if domain.startswith("*") and one.endswith(domain[1:]) else "/".join([one, *rest])
                for one in TRUST_DOMAINS]
    return list(dict.fromkeys(replaced))


def matches(pattern, value):
    if pattern.startswith("*"):
        return value.endswith(pattern[1:])
    return value.startswith(pattern[:-1]) if pattern.endswith("*") else value == pattern


def trust_domain(value):
    if value == "*":
        return {"prefix": "spiffe://"}
    if "*" not in value:
        return {"prefix": f"spiffe://{value}/"}
    return regex(f"spiffe://{re.escape(value).replace(re.escape('*'), '[^/]*')}/.*")


def template(value):
    path = value.replace("{*}", "*").replace("{**}", "**")
    return {"uri_template": {"name": "uri-template", "typed_config": {"@type": TEMPLATE, "path_template": path}}}


class Translation:
    """Filters for the policies of one listener.

    `decisions` are names of differences between the proxies: their policies are translated to what Strait does.
    `addresses` maps addresses of Strait's listeners to those of Envoy's.
    """

    def __init__(self, decisions=(), addresses=None):
        self.decisions, self.addresses = decisions, addresses or {}

    def filters(self, policies):
        """Filters in the order in which Istio has them."""
        found = []
        for action, name in (("AUDIT", "LOG"), ("DENY", "DENY"), ("ALLOW", "ALLOW")):
            of_action = [p for p in policies if p["spec"].get("action", "ALLOW") == action and selects(p)]
            config = {"@type": RBAC}
            for policy in of_action:
                key = "shadow_rules" if dry_run(policy) else "rules"
                rules = config.setdefault(key, {"action": name, "policies": {}})["policies"]
                rules.update(self._policy(policy, action))
            if of_action:
                found.append({"name": f"rbac-{action.lower()}", "typed_config": config})
        return found

    def _policy(self, policy, action):
        metadata = policy["metadata"]
        name = f"ns[{metadata['namespace']}]-policy[{metadata['name']}]"
        rules = policy["spec"].get("rules") or []
        if not rules:
            return {f"{name}-rule[0]": {"permissions": [{"not_rule": {"any": True}}],
                                        "principals": [{"not_id": {"any": True}}]}}
        return {f"{name}-rule[{i}]": self._rule(rule, metadata["namespace"], action) for i, rule in enumerate(rules)}

    def _rule(self, rule, namespace, action):
        sides = {"permission": [], "principal": []}
        for condition in rule.get("when", []):
            side, matchers = self._field(condition["key"], condition, "values", "notValues", namespace, action)
            sides[side] += matchers
        built = {}
        for side, key, inner, junction in (("permission", "to", "operation", ("and_rules", "rules")),
                                           ("principal", "from", "source", ("and_ids", "ids"))):
            built[f"{side}s"] = []
            for element in rule.get(key) or [{inner: {}}]:
                fields = {name[3:4].lower() + name[4:] if name.startswith("not") else name for name in element[inner]}
                found = list(sides[side])
                for name in sorted(fields):
                    negative = f"not{name[0].upper()}{name[1:]}"
                    found += self._field(name, element[inner], name, negative, namespace, action)[1]
                built[f"{side}s"].append({junction[0]: {junction[1]: found or [{"any": True}]}})
        return built

    def _field(self, name, element, positive, negative, namespace, action):
        """Matchers of one field or condition, and whether they are permissions or principals."""
        found, side = [], "principal"
        for key in (positive, negative):
            values = element.get(key) or []
            if name in ("principals", "source.principal"):
                values = [alias for value in values for alias in with_aliases(value)]
            if name in ("trustDomains", "source.trustDomain"):
                values = [one for v in values for one in (TRUST_DOMAINS if v in TRUST_DOMAINS else [v])]
            denies = action == "DENY" and key == positive
            pairs = [self._value(name, value, namespace, denies) for value in values]
            if not pairs:
                continue
            side = pairs[0][0]
            inner, no = ("rules", "not_rule") if side == "permission" else ("ids", "not_id")
            either = {f"or_{inner}": {inner: [matcher for _, matcher in pairs]}}
            found.append(either if key == positive else {no: either})
        return side, found

    def _value(self, name, value, namespace, denies):
        match name:
            case "hosts":
                return "permission", self._host(value, denies)
            case "paths":
                return "permission", template(value) if "{" in value else {"url_path": {"path": text(value)}}
            case "methods":
                odd = "methods" in self.decisions and value == "get"
                return "permission", header(":method", "TRACE" if odd else value)
            case "ports" | "destination.port":
                return "permission", {"destination_port": int(value)}
            case "destination.ip":
                return "permission", {"destination_ip": self._range(self.addresses.get(value, value))}
            case "connection.sni":
                return "permission", {"requested_server_name": text(value)}
            case "ipBlocks" | "source.ip":
                return "principal", {"direct_remote_ip": self._range(value)}
            case "remoteIpBlocks" | "remote.ip":
                return "principal", {"remote_ip": self._range(value)}
            case "principals" | "source.principal":
                return "principal", authenticated(text(value, "spiffe://"))
            case "namespaces" | "source.namespace":
                parts = ".*".join(re.escape(part) for part in value.split("*"))
                return "principal", authenticated(regex(f".*/ns/{parts}/.*"))
            case "serviceAccounts" | "source.serviceAccount":
                own, _, account = value.rpartition("/")
                account, own = re.escape(account), re.escape(own or namespace)
                return "principal", authenticated(regex(f"spiffe://.+/ns/{own}/(.+/|)sa/{account}(/.+)?"))
            case "trustDomains" | "source.trustDomain":
                return "principal", authenticated(trust_domain(value))
            case "requestPrincipals" | "request.auth.principal":
                return "principal", request_principal(value)
            case "request.auth.audiences":
                return "principal", any_claim(["aud"], value)
            case "request.auth.presenter":
                return "principal", any_claim(["azp"], value)
        if name.startswith("request.auth.claims"):
            return "principal", any_claim(re.findall(r"\[([^]]*)\]", name), value)
        return "principal", header(re.fullmatch(r"request\.headers\[(.*)\]", name)[1], value)

    def _host(self, value, denies):
        exact = header(":authority", value, ignore_case=True)
        if "hosts" not in self.decisions or not denies or ":" in value or value.endswith("*"):
            return exact
        before = ".*" if value.startswith("*") else ""
        bare = f"(?i){before}{re.escape(value.removeprefix('*'))}[.]?(:[0-9]*)?"
        return {"or_rules": {"rules": [exact, {"header": {"name": ":authority", "string_match": regex(bare)}}]}}

    def _range(self, value):
        network = ipaddress.ip_network(value, strict=False)
        mapped = getattr(network.network_address, "ipv4_mapped", None)
        if "mapped addresses" in self.decisions and mapped and network.prefixlen >= 96:
            return {"address_prefix": str(mapped), "prefix_len": network.prefixlen - 96}
        return {"address_prefix": str(network.network_address), "prefix_len": network.prefixlen}


def dry_run(policy):
    return policy["metadata"].get("annotations", {}).get("istio.io/dry-run") == "true"


def selects(policy):
    """Whether the policy applies to the workload."""
    labels = policy["spec"].get("selector", {}).get("matchLabels", {})
    return policy["metadata"]["namespace"] in (NAMESPACE, ROOT_NAMESPACE) and labels.items() <= LABELS.items()
