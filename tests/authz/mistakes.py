"""Mistakes to plant in the translation of policies: the comparison has to find each of them."""

import contextlib
import re

import rbac


def of_values(names, matcher):
    """A mistake about values of these fields; `matcher` may return None for a value without it."""

    def replaced(original):
        def value_of(self, name, value, namespace, denies):
            side = "permission" if name in ("connection.sni", "ports", "destination.port") else "principal"
            found = matcher(value) if name in names else None
            return (side, found) if found else original(self, name, value, namespace, denies)

        return value_of

    return rbac.Translation, "_value", replaced


def of_function(name, replaced):
    return rbac, name, replaced


def of_templates(one, rest):
    def template(value):
        expression = re.escape(value).replace(re.escape("{**}"), rest).replace(re.escape("{*}"), one)
        return {"url_path": {"path": rbac.regex(expression)}}

    return of_function("template", lambda _: template)


def header_with_a_value(name, value, **options):
    options = {} if value == "*" else options
    return {"header": {"name": name, "string_match": {**rbac.text(value), **options}}}


def prefix_as_exact(original):
    def text(value, scheme=""):
        is_prefix = value.endswith("*") and not value.startswith("*")
        return {"exact": scheme + value[:-1]} if is_prefix else original(value, scheme)

    return text


# What is replaced, and by what, given the original.
MISTAKES = {
    "no aliases of trust domains": of_function("with_aliases", lambda _: lambda principal: [principal]),
    "any value of a header needs one character": of_function("header", lambda _: header_with_a_value),
    "hosts are compared with their case": (
        rbac.Translation, "_host", lambda _: lambda self, value, denies: rbac.header(":authority", value)),
    "the rest of a template needs one character": of_templates("[^/]+", ".+"),
    "a segment of a template may be empty": of_templates("[^/]*", ".*"),
    "the remote address is the direct one": of_values(
        ("remoteIpBlocks", "remote.ip"), lambda value: {"direct_remote_ip": rbac.Translation()._range(value)}),
    "a service account is one of any namespace": of_values(
        ("serviceAccounts", "source.serviceAccount"),
        lambda value: None if "/" in value else rbac.authenticated(rbac.regex(f".*/sa/{value}"))),
    "lists of claims do not match": of_function(
        "any_claim", lambda _: lambda path, value: rbac.claim(path, {"string_match": rbac.text(value)})),
    "a request principal with a star first is any": of_function(
        "request_principal", lambda original: lambda value: original("*" if value.startswith("*") else value)),
    "a trust domain is the beginning of one": of_function(
        "trust_domain", lambda _: lambda value: {"prefix": f"spiffe://{value.replace('*', '')}"}),
    "a star in a namespace needs one character": of_values(
        ("namespaces", "source.namespace"),
        lambda value: rbac.authenticated(rbac.regex(f".*/ns/{value.replace('*', '.+')}/.*"))),
    "server names have no patterns": of_values(
        ("connection.sni",), lambda value: {"requested_server_name": {"exact": value}}),
    "a prefix is the whole text": of_function("text", prefix_as_exact),
    "ports are not compared": of_values(("ports", "destination.port"), lambda value: {"any": True}),
}


@contextlib.contextmanager
def planted(name):
    owner, attribute, replaced = MISTAKES[name]
    original = getattr(owner, attribute)
    setattr(owner, attribute, replaced(original))
    try:
        yield
    finally:
        setattr(owner, attribute, original)
