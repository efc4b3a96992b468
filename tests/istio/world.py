"""The processes of a comparison: endpoints, istiod with Envoy, and Strait, all on loopback addresses."""

import asyncio
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.request

# Both sides read the same resources. Only the address that they listen on differs.
ISTIO, STRAIT = "127.0.0.2", "127.0.0.3"
NAMESPACE = {"gateway": "istio-system", "sidecar": "shop"}
LABELS = {"app": "proxy", "tier": "edge"}
# The path that asks an endpoint for mirrored requests by their mark, and those of its process.
MIRRORED, MARKS = "/mirrored/", {}


def free_ports(count, address="127.0.0.1"):
    """Ports that nothing listens on; they are kept apart until all are known."""
    sockets = [socket.create_server((address, 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def get(url, timeout=2):
    with urllib.request.urlopen(url, timeout=timeout) as response:
        return response.read()


class Endpoints:
    """A child process that serves HTTP/1.1 on every port and answers with the request that it got.

    `mirror` is the port of mirrored requests, which `mirrored` returns.
    """

    def __init__(self, count):
        self.sockets = [socket.create_server(("127.0.0.1", 0), backlog=128) for _ in range(count + 1)]
        *self.ports, self.mirror = [s.getsockname()[1] for s in self.sockets]
        self.dead = free_ports(1)[0]
        self.pid = os.fork()
        if self.pid == 0:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            try:
                asyncio.run(self._serve())
            finally:
                os._exit(0)
        for s in self.sockets:
            s.close()

    async def _serve(self):
        for s in self.sockets:
            await asyncio.start_server(lambda r, w: answer(r, w, self.mirror), sock=s, limit=1 << 20)
        parent = os.getppid()
        while os.getppid() == parent:
            await asyncio.sleep(1)

    def mirrored(self, mark, seconds):
        """Mirrored requests with a mark; waits that long for the first."""
        end = time.monotonic() + seconds
        while True:
            found = json.loads(get(f"http://127.0.0.1:{self.mirror}{MIRRORED}{mark}"))
            if found or time.monotonic() > end:
                return found
            time.sleep(0.005)

    def stop(self):
        os.kill(self.pid, signal.SIGTERM)
        os.waitpid(self.pid, 0)


async def read_body(reader, headers):
    if "chunked" in headers.get("transfer-encoding", ""):
        body = b""
        while size := int((await reader.readline()).split(b";")[0], 16):
            body += await reader.readexactly(size)
            await reader.readline()
        while (await reader.readline()).strip():
            pass
        return body
    return await reader.readexactly(int(headers.get("content-length", 0)))


async def answer(reader, writer, mirror):
    """Answers the requests of one connection. `x-status`, `x-fails` and `x-delay` of a request ask for failures."""
    port = writer.get_extra_info("sockname")[1]
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            lines = [line.split(":", 1) for line in head[1:] if line]
            lines = [[name.lower(), value.strip()] for name, value in lines]
            headers = dict(lines)
            body = await read_body(reader, headers)
            await asyncio.sleep(float(headers.get("x-delay", 0)))
            status = headers.get("x-status", "200")
            if int(headers.get("x-envoy-attempt-count", 1)) > int(headers.get("x-fails", 99)):
                status = "200"
            method, target, version = head[0].split(" ", 2)
            seen = {"port": port, "method": method, "target": target, "version": version, "headers": lines}
            seen["body"] = body.decode("latin-1")
            if target.startswith(MIRRORED):
                seen = MARKS.pop(target.removeprefix(MIRRORED), [])
            elif port == mirror and "x-mark" in headers:
                MARKS.setdefault(headers["x-mark"], []).append(seen)
            text = json.dumps(seen).encode()
            writer.write(
                f"HTTP/1.1 {status} Any\r\nserver: endpoint\r\nx-r: one\r\nX-R: two\r\nx-s: endpoint\r\n"
                f"access-control-allow-origin: http://endpoint\r\nset-cookie: c=1; Path=/\r\nset-cookie: d=2\r\n"
                f"content-type: application/json\r\nx-endpoint: {port}\r\ncontent-length: {len(text)}\r\n\r\n".encode()
                + (b"" if method == "HEAD" else text)
            )
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError, ValueError):
        pass
    finally:
        writer.close()


class World:
    """All processes, by role (`gateway` or `sidecar`). `apply` gives both sides a configuration."""

    def __init__(self, arguments, role):
        self.arguments, self.role = arguments, role
        self.directory = os.path.abspath(arguments.directory)
        for name in ("istio", "strait", "run"):
            shutil.rmtree(f"{self.directory}/{name}", ignore_errors=True)
            os.makedirs(f"{self.directory}/{name}")
        self.ports = free_ports(3, ISTIO)
        self.admin, self.envoy_admin, self.xds, http, monitoring = free_ports(5)
        self.processes, self.written = [], 0
        self.endpoints = Endpoints(8)
        self._start_istiod(http, monitoring)
        self.apply([], wait=False)
        self._start_envoy()
        self._start_strait()

    def _start(self, name, command, **environment):
        log = open(f"{self.directory}/run/{name}.log", "wb")
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, **environment},
            cwd=f"{self.directory}/run",
        )
        self.processes.append((name, process))

    def _start_istiod(self, http, monitoring):
        run = f"{self.directory}/run"
        with open(f"{run}/mesh.yaml", "w") as file:
            file.write("enableAutoMtls: false\nenableTracing: false\n")
        # Off: filters that only Istio's build of Envoy has, what needs Kubernetes, the CA, and the check of clients.
        off = dict.fromkeys(
            ["PILOT_ENABLE_METADATA_EXCHANGE", "PILOT_ENABLE_ALPN_FILTER", "PILOT_ENABLE_GATEWAY_API",
             "ENABLE_CA_SERVER", "XDS_AUTH", "ENABLE_LEADER_ELECTION",
             "PILOT_ENABLE_WORKLOAD_ENTRY_AUTOREGISTRATION"], "false")
        self._start(
            "istiod",
            [self.arguments.istiod, "files", "--configDir", f"{self.directory}/istio", "--meshConfig",
             f"{run}/mesh.yaml", "--networksConfig", f"{run}/none", "--grpcAddr", f"127.0.0.1:{self.xds}",
             "--httpAddr", f"127.0.0.1:{http}", "--monitoringAddr", f"127.0.0.1:{monitoring}"],
            **off, PILOT_CERT_PROVIDER="none", POD_NAME="istiod", POD_NAMESPACE="istio-system", GOMAXPROCS="2",
            PILOT_DEBOUNCE_AFTER="20ms")
        self._until("istiod serves", lambda: socket.create_connection(("127.0.0.1", self.xds), 1).close() or True)

    def _start_envoy(self):
        kind = {"gateway": "router", "sidecar": "sidecar"}[self.role]
        namespace = NAMESPACE[self.role]
        metadata = {"NAME": "proxy", "NAMESPACE": namespace, "LABELS": LABELS, "CLUSTER_ID": "Kubernetes",
                    "ISTIO_VERSION": "1.32.0", "PROXY_CONFIG": {}}
        if self.role == "sidecar":
            metadata["INTERCEPTION_MODE"] = "NONE"
        http2 = {"@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
                 "explicit_http_config": {"http2_protocol_options": {}}}
        address = {"socket_address": {"address": "127.0.0.1", "port_value": self.xds}}
        cluster = {
            "name": "xds-grpc", "type": "STATIC", "connect_timeout": "1s",
            "typed_extension_protocol_options": {"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": http2},
            "load_assignment": {"cluster_name": "xds-grpc",
                                "endpoints": [{"lb_endpoints": [{"endpoint": {"address": address}}]}]}}
        ads = {"ads": {}, "initial_fetch_timeout": "0s", "resource_api_version": "V3"}
        bootstrap = {
            "node": {"id": f"{kind}~127.0.0.6~proxy.{namespace}~{namespace}.svc.cluster.local", "cluster": "proxy",
                     "metadata": metadata},
            "admin": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": self.envoy_admin}}},
            "dynamic_resources": {
                "lds_config": ads, "cds_config": ads,
                "ads_config": {"api_type": "DELTA_GRPC", "set_node_on_first_message_only": True,
                               "transport_api_version": "V3",
                               "grpc_services": [{"envoy_grpc": {"cluster_name": "xds-grpc"}}]}},
            "static_resources": {"clusters": [cluster]},
            # As in the bootstrap of Istio's proxies.
            "layered_runtime": {"layers": [{"name": "istio", "static_layer": {
                "envoy.reloadable_features.http_reject_path_with_fragment": False,
                "envoy.reloadable_features.no_extension_lookup_by_name": False,
                "re2.max_program_size.error_level": 32768}}]}}
        with open(f"{self.directory}/run/envoy.json", "w") as file:
            json.dump(bootstrap, file)
        self._start("envoy", [self.arguments.envoy, "-c", f"{self.directory}/run/envoy.json", "--concurrency", "1",
                              "--log-level", "warning", "--disable-hot-restart"])

    def _start_strait(self):
        command = [self.arguments.strait, "run", "--config", f"{self.directory}/strait", "--admin",
                   f"127.0.0.1:{self.admin}", "--namespace", NAMESPACE[self.role], "--mode", self.role, "--labels",
                   ",".join(f"{k}={v}" for k, v in LABELS.items()), "--concurrency", "1", "--access-log", "off",
                   "--http10", "refuse"]
        if self.role == "sidecar":
            command += ["--outbound-listener", "off", "--inbound-listener", "off"]
        self._start("strait", command)

    def _until(self, what, condition, seconds=30):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for name, process in self.processes:
                if process.poll() is not None:
                    raise RuntimeError(f"{name} ended with {process.returncode}: see {self.directory}/run/{name}.log")
            try:
                if condition():
                    return
            except OSError:
                pass
            time.sleep(0.02)
        raise TimeoutError(what)

    def _marker(self):
        """Resources that answer `marker.test` with the number of this configuration, on every port."""
        meta = {"namespace": NAMESPACE[self.role], "creationTimestamp": "2030-01-01T00:00:00Z"}
        ports = [{"number": p, "name": f"http-{p}", "protocol": "HTTP"} for p in self.ports]
        rule = {"directResponse": {"status": 200, "body": {"string": f"marker {self.written}"}}}
        gateway = "marker" if self.role == "gateway" else "mesh"
        service = {"hosts": ["marker.test"], "gateways": [gateway], "http": [rule]}
        yield resource("VirtualService", {**meta, "name": "marker"}, service)
        if self.role == "gateway":
            servers = [{"port": port, "bind": "BIND", "hosts": ["*/marker.test"]} for port in ports]
            yield resource("Gateway", {**meta, "name": "marker"}, {"selector": LABELS, "servers": servers})
            return
        entry = {"hosts": ["marker.test"], "resolution": "STATIC", "ports": ports,
                 "endpoints": [{"address": "127.0.0.1"}]}
        yield resource("ServiceEntry", {**meta, "name": "marker"}, entry)
        egress = [{"port": p, "bind": "BIND", "captureMode": "NONE", "hosts": ["*/*"]} for p in ports]
        yield resource("Sidecar", {**meta, "name": "marker"}, {"egress": egress})

    def apply(self, resources, seconds=15, wait=True):
        """Gives both sides the resources, and returns once both serve them.

        Raises `TimeoutError` with the side that does not: its control plane or data plane rejects something.
        """
        self.written += 1
        documents = [*resources, *self._marker()]
        for side, address in (("istio", ISTIO), ("strait", STRAIT)):
            text = "\n---\n".join(json.dumps(d, indent=1) for d in documents)
            path = f"{self.directory}/{side}/all.yaml"
            with open(path + ".part", "w") as file:
                file.write(text.replace('"BIND"', f'"{address}"'))
            os.rename(path + ".part", path)
        if not wait:
            return
        expected = f"marker {self.written}".encode()
        for side, address in (("strait", STRAIT), ("istio", ISTIO)):
            for port in self.ports:
                self._until(side, lambda: marker(address, port) == expected, seconds)
        self._until("warming", lambda: b"configs" not in get(
            f"http://127.0.0.1:{self.envoy_admin}/config_dump?resource=dynamic_warming_clusters"))

    def rejected(self):
        """Resources that Strait rejects, with the reasons."""
        return json.loads(get(f"http://127.0.0.1:{self.admin}/config_dump")).get("rejected")

    def stop(self):
        for _, process in reversed(self.processes):
            process.kill()
            process.wait()
        self.endpoints.stop()


def resource(kind, metadata, spec):
    return {"apiVersion": "networking.istio.io/v1", "kind": kind, "metadata": metadata, "spec": spec}


def marker(address, port):
    # Not to the end of the connection, which Envoy closes a second later.
    connection = http.client.HTTPConnection(address, port, timeout=1)
    try:
        connection.request("GET", "/", headers={"Host": "marker.test"})
        return connection.getresponse().read()
    except http.client.HTTPException:
        return None
    finally:
        connection.close()
