#!/usr/bin/env python3
"""Judges rendered charts, and makes the tables of their values.

  judge.py normalize < RENDERED        documents in one order and form, without what is a file of its own
  judge.py check NAME < RENDERED       fails where a container or an object is not as every one has to be
  judge.py values VALUES               the table of docs/helm.md
  judge.py fixed OLD NEW               fails where a field differs that an upgrade cannot change
  judge.py disjoint ONE OTHER          fails where two renders have an object in common, or a selector
"""
import json, pathlib, re, sys
import yaml

root = pathlib.Path(__file__).resolve().parents[2]
VERSION = re.search(r'^version = "(.*)"', (root / "Cargo.toml").read_text(), re.MULTILINE)[1]


def rules(path):
    return next(d for d in yaml.safe_load_all((root / path).read_text()) if d["kind"] == "ClusterRole")["rules"]


def documents(text):
    found = [d for d in yaml.safe_load_all(text) if d]
    return sorted(found, key=lambda d: (d["kind"], d["metadata"].get("namespace", ""), d["metadata"]["name"]))


# What is rendered from a file of the tree: checked here, and left out of the goldens.
def known():
    status = rules("deploy/kubernetes/status/access.yaml")
    control = rules("deploy/kubernetes/control/cluster-role.yaml")
    reads = [r for r in control if "configmaps" not in r["resources"]]
    return {
        "the rules of deploy/kubernetes/control": control,
        "the rules of files/hub.yaml and of deploy/kubernetes/control, but ConfigMaps":
            rules("deploy/charts/strait/files/hub.yaml") + reads,
        "the rules of deploy/kubernetes/status": status,
        "the rules of deploy/kubernetes/status, without Secrets": [r for r in status if "secrets" not in r["resources"]],
        "the rules of deploy/kubernetes/imports": rules("deploy/kubernetes/imports/access.yaml"),
        "deploy/prometheus-alerts.yaml": yaml.safe_load((root / "deploy/prometheus-alerts.yaml").read_text()),
        "deploy/grafana-dashboard.json": json.loads((root / "deploy/grafana-dashboard.json").read_text()),
    }


def normalize(text):
    names = known()
    for document in documents(text):
        for field in ("rules", "spec", "data"):
            value = document.get(field)
            if field == "data" and "strait.json" in (value or {}):
                value = json.loads(value["strait.json"])
            document.update({field: name for name, content in names.items() if content == value})
        template = document["spec"].get("template", {}) if isinstance(document.get("spec"), dict) else {}
        for labels in (document["metadata"].get("labels", {}), template.get("metadata", {}).get("labels", {})):
            for label in ("app.kubernetes.io/version", "helm.sh/chart"):
                labels.pop(label, None)
        release(document)
        yield document


def release(document):
    """Puts VERSION in place of the version of an image: goldens stay as they are when a version is released."""
    pod = document["spec"].get("template", {}).get("spec", {}) if isinstance(document.get("spec"), dict) else {}
    for container in pod.get("containers", []):
        if container["image"].endswith(f":{VERSION}"):
            container["image"] = container["image"].removesuffix(VERSION) + "VERSION"


def complaints(document):
    pod = document.get("spec", {}).get("template", {}).get("spec", {}) if isinstance(document.get("spec"), dict) else {}
    kind = document["kind"]
    if not kind.startswith("Cluster") and kind not in ("GatewayClass", "IngressClass", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration") and "namespace" not in document["metadata"] \
            and "helm.sh/chart" in document["metadata"].get("labels", {}):
        yield "has no namespace"
    if not pod:
        return
    security = pod.get("securityContext", {})
    if not security.get("runAsNonRoot") or security.get("seccompProfile", {}).get("type") != "RuntimeDefault":
        yield f"the pod is not restricted: {security}"
    for container in pod["containers"]:
        own = container["securityContext"]
        if own.get("allowPrivilegeEscalation") is not False or not own.get("readOnlyRootFilesystem") \
                or own.get("capabilities", {}).get("drop") != ["ALL"] or own.get("capabilities", {}).get("add"):
            yield f"container {container['name']} is not restricted: {own}"
        if not re.search(r":[0-9]|@sha256:", container["image"]):
            yield f"image without a version: {container['image']}"
        # the roles of `strait control` have no port to probe
        if container["args"][0] == "run" and not all(p in container for p in ("startupProbe", "readinessProbe", "livenessProbe")):
            yield f"container {container['name']} lacks a probe"
        names = [e["name"] for e in container.get("env", [])]
        if len(names) != len(set(names)):
            yield f"variables twice: {names}"
    mounts = {m["name"] for c in pod["containers"] for m in c.get("volumeMounts", [])}
    volumes = {v["name"] for v in pod.get("volumes", [])}
    if mounts != volumes:
        yield f"mounts {mounts}, volumes {volumes}"
    if not pod["topologySpreadConstraints"]:
        yield "is not spread"
    selector = document["spec"]["selector"]["matchLabels"]
    labels = document["spec"]["template"]["metadata"]["labels"]
    if not selector.items() <= labels.items():
        yield f"selects {selector}, and its pods have {labels}"


def check(name, text):
    found = documents(text)
    said = [f"{name}: {d['kind']} {d['metadata']['name']} {c}" for d in found for c in complaints(d)]
    pods = [d["spec"]["template"]["metadata"]["labels"] for d in found if d["kind"] in ("Deployment", "DaemonSet")]
    for document in found:
        selector = document["spec"]["selector"] if document["kind"] == "Service" else None
        if selector and not any(selector.items() <= labels.items() for labels in pods):
            said.append(f"{name}: the Service selects no pod: {selector}")
        if document["kind"] == "Service":
            ports = {p["containerPort"] for d in found if d["kind"] in ("Deployment", "DaemonSet")
                     for c in d["spec"]["template"]["spec"]["containers"] for p in c.get("ports", [])}
            said += [f"{name}: no container has port {p}" for p in document["spec"]["ports"] if p["targetPort"] not in ports]
    names = [(d["kind"], d["metadata"].get("namespace"), d["metadata"]["name"]) for d in found]
    said += [f"{name}: twice: {n}" for n in set(names) if names.count(n) > 1]
    return said


def fixed(old, new):
    """Fields that no upgrade can change, by object."""
    def of(path):
        return {(d["kind"], d["metadata"]["name"]): d["spec"]["selector"] for d in documents(pathlib.Path(path).read_text())
                if d["kind"] in ("Deployment", "DaemonSet")}
    before, after = of(old), of(new)
    return [f"{key}: selector {before[key]} became {after[key]}" for key in before.keys() & after.keys() if before[key] != after[key]]


def disjoint(one, other):
    def of(path):
        found = documents(pathlib.Path(path).read_text())
        selectors = [str(d["spec"]["selector"]) for d in found if isinstance(d.get("spec"), dict) and "selector" in d["spec"]]
        return {f"{d['kind']} {d['metadata']['name']}" for d in found} | set(selectors)

    return [f"in both: {name}" for name in of(one) & of(other)]


def values(path):
    """Rows of all values with a comment of their own, in the order of the file."""
    text = pathlib.Path(path).read_text()
    default, stack, comment = yaml.safe_load(text), [], []
    for line in text.split("\n\n", 1)[1].splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        key = re.match(r" *([A-Za-z_][\w-]*):", line)
        if line.lstrip().startswith("#"):
            comment.append(line.lstrip("# ").strip())
        elif key:
            stack = stack[:depth] + [key[1]]
            if comment:
                value = default
                for part in stack:
                    value = value[part]
                shown = json.dumps(value, ensure_ascii=False)
                yield f"| `{'.'.join(stack)}` | `{shown}` | {' '.join(comment)} |"
            comment = []


def main():
    verb = sys.argv[1]
    if verb == "normalize":
        print(yaml.safe_dump_all(normalize(sys.stdin.read()), default_flow_style=False, width=120), end="")
        return
    if verb == "values":
        print("| Value | Default | Meaning |\n|---|---|---|")
        print("\n".join(values(sys.argv[2])))
        return
    if verb == "check":
        said = check(sys.argv[2], sys.stdin.read())
    else:
        said = {"fixed": fixed, "disjoint": disjoint}[verb](*sys.argv[2:4])
    sys.exit("\n".join(said) or 0)


main()
