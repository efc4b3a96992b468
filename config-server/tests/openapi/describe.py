#!/usr/bin/env python3
"""Writes the descriptions of fields for `kubectl explain`: the first sentence of what Istio and Kubernetes say of each field that
docs/fields.md lists.

usage: describe.py ISTIO_API KUBERNETES_API > config-server/src/api/openapi/descriptions.tsv
       ISTIO_API and KUBERNETES_API are the Go modules istio.io/api and k8s.io/api, such as ~/go/pkg/mod/k8s.io/api@v0.36.3
"""
import re
import sys

import yaml

LENGTH_MAX = 240


def first_sentence(text):
    text = " ".join(text.split())
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("+optional", "").strip()
    end = re.search(r"(?<!e\.g)(?<!i\.e)(?<!etc)\.(\s|$)", text)
    text = text[: end.start() + 1] if end else text
    return text if len(text) <= LENGTH_MAX else text[: LENGTH_MAX - 3].rsplit(" ", 1)[0] + "..."


def listed():
    """The fields and what they are in, by kind."""
    kinds, kind = {}, None
    for line in open("docs/fields.md"):
        if line.startswith("## "):
            kind = line[3:].strip()
        elif kind and (found := re.match(r"\| `([^`]+)` \|", line)):
            parts = found[1].replace("[]", "").split(".")
            names = kinds.setdefault(kind, set())
            names.update(".".join(parts[:end]) for end in range(1, len(parts) + 1))
    return kinds


def of_schema(schema, path, found):
    if path and schema.get("description"):
        found.setdefault(path, first_sentence(schema["description"]))
    for name, field in schema.get("properties", {}).items():
        of_schema(field, f"{path}.{name}" if path else name, found)
    if "items" in schema:
        of_schema(schema["items"], path, found)
    if isinstance(schema.get("additionalProperties"), dict):
        of_schema(schema["additionalProperties"], f"{path}.*", found)


def of_istio(directory):
    kinds = {}
    text = open(f"{directory}/kubernetes/customresourcedefinitions.gen.yaml")
    for definition in filter(None, yaml.safe_load_all(text)):
        spec = definition["spec"]
        if spec["group"] in ("networking.istio.io", "security.istio.io", "telemetry.istio.io"):
            found = kinds.setdefault(spec["names"]["kind"], {})
            of_schema(spec["versions"][-1]["schema"]["openAPIV3Schema"], "", found)
    return kinds


def of_kubernetes(directory):
    """The types of Go with their descriptions, and the types of their fields."""
    descriptions, types = {}, {}
    for group in ("core/v1", "discovery/v1"):
        text = open(f"{directory}/{group}/types_swagger_doc_generated.go").read()
        for name, body in re.findall(r"var map_(\w+) = map\[string\]string\{(.*?)\n\}", text, re.S):
            pairs = re.findall(r'"(\w*)":\s+"((?:[^"\\]|\\.)*)"', body)
            descriptions[name] = {key: first_sentence(value.replace("\\n", " ").replace('\\"', '"')) for key, value in pairs}
        text = open(f"{directory}/{group}/types.go").read()
        for name, body in re.findall(r"\ntype (\w+) struct \{(.*?)\n\}", text, re.S):
            fields = re.findall(r"^\t\w*\s*(?:\[\]|\*|map\[string\])*(?:\w+\.)?(\w+)\s+`json:\"(\w+)", body, re.M)
            types[name] = {field: of for of, field in fields}

    def walk(of, path, found, depth):
        for field, text in descriptions.get(of, {}).items():
            if field and field != "metadata":
                at = f"{path}.{field}" if path else field
                found[at] = text
                if depth < 6:
                    walk(types.get(of, {}).get(field), at, found, depth + 1)

    kinds = {}
    for kind in ("EndpointSlice", "Secret", "Service"):
        walk(kind, "", kinds.setdefault(kind, {}), 0)
    return kinds


def main():
    istio, kubernetes = sys.argv[1:]
    known = of_istio(istio) | of_kubernetes(kubernetes)
    for kind, fields in sorted(listed().items()):
        for field in sorted(fields):
            if text := known.get(kind, {}).get(field):
                print(f"{kind}\t{field}\t{text}")


main()
