#!/usr/bin/env python3
"""What the binary is made of, from cargo metadata: crates that are linked into it on Linux.

  materials.py sbom VERSION       CycloneDX 1.5, JSON
  materials.py notices VERSION    the licence texts of all crates
"""
import json, pathlib, re, subprocess, sys, tomllib

TARGETS = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"]
LICENCE = re.compile(r"^(licen[cs]e|copying|notice|copyright)", re.IGNORECASE)


def metadata():
    command = ["cargo", "metadata", "--locked", "--offline", "--format-version", "1"]
    for target in TARGETS:
        command += ["--filter-platform", target]
    return json.loads(subprocess.check_output(command))


def linked(data):
    """Packages that the binary links, and their direct dependencies, by id."""
    nodes = {node["id"]: node for node in data["resolve"]["nodes"]}
    root = next(p["id"] for p in data["packages"] if p["name"] == "proxy")
    macros = {p["id"] for p in data["packages"] if any("proc-macro" in t["kind"] for t in p["targets"])}
    found, waiting = {}, [root]
    while waiting:
        at = waiting.pop()
        if at in found:
            continue
        # neither tests, build scripts nor macros: their crates are not in the binary
        found[at] = sorted(d["pkg"] for d in nodes[at]["deps"] if d["pkg"] not in macros and any(k["kind"] is None for k in d["dep_kinds"]))
        waiting += found[at]
    return root, found


def sbom(version, data):
    root, found = linked(data)
    lock = tomllib.loads(pathlib.Path("Cargo.lock").read_text())
    sums = {(p["name"], p["version"]): p.get("checksum") for p in lock["package"]}
    packages = {p["id"]: p for p in data["packages"]}
    purl = {at: f"pkg:cargo/{packages[at]['name']}@{packages[at]['version']}" for at in found}
    components = []
    for at in sorted(found, key=purl.get):
        package = packages[at]
        component = {"type": "library", "bom-ref": purl[at], "name": package["name"], "version": package["version"], "purl": purl[at]}
        if package["license"]:
            component["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
        if checksum := sums.get((package["name"], package["version"])):
            component["hashes"] = [{"alg": "SHA-256", "content": checksum}]
        if package["repository"]:
            component["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
        components.append(component)
    strait = {"type": "application", "bom-ref": "strait", "name": "strait", "version": version,
              "licenses": [{"expression": "Apache-2.0"}]}
    depends = [{"ref": purl[at], "dependsOn": sorted(purl[d] for d in found[at])} for at in sorted(found, key=purl.get)]
    return {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "metadata": {"component": strait},
            "components": components, "dependencies": [{"ref": "strait", "dependsOn": [purl[root]]}, *depends]}


def notices(version, data):
    _, found = linked(data)
    print(f"Third-party code in strait {version}\n")
    without = []
    for package in sorted((p for p in data["packages"] if p["id"] in found and p["source"]), key=lambda p: p["name"]):
        folder = pathlib.Path(package["manifest_path"]).parent
        texts = sorted(f for f in folder.iterdir() if f.is_file() and LICENCE.match(f.name))
        print("=" * 80 + f"\n{package['name']} {package['version']}: {package['license']}\n{package['repository'] or ''}\n")
        for text in texts:
            print(f"--- {text.name}\n\n{text.read_text(errors='replace').rstrip()}\n")
        if not texts:
            without.append(package["name"])
    print("=" * 80 + f"\nThese crates have no licence file; the identifiers above are what they declare: {', '.join(without)}")


def main():
    verb, version = sys.argv[1:]
    data = metadata()
    if verb == "sbom":
        json.dump(sbom(version, data), sys.stdout, indent=1)
        print()
    else:
        notices(version, data)


main()
