"""The processes of a comparison, Envoy and Strait, with certificates and tokens, all on loopback addresses."""

import base64
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import time
import urllib.request

import rbac
from draw import STRAIT

HCM = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
ROUTER = "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"
JWT = "type.googleapis.com/envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication"
TLS = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext"
INSPECTOR = "type.googleapis.com/envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector"
# Names of certificates of clients.
CERTIFICATES = {
    "web": "URI:spiffe://td1/ns/shop/sa/web", "web of td2": "URI:spiffe://td2/ns/shop/sa/web",
    "web of td3": "URI:spiffe://td3/ns/shop/sa/web", "web of blog": "URI:spiffe://td1/ns/blog/sa/web",
    "db": "URI:spiffe://td1/ns/shop/sa/db", "local": "URI:spiffe://cluster.local/ns/shop/sa/web",
    "web of td10": "URI:spiffe://td10/ns/shop/sa/web",
    "odd: two": "URI:spiffe://td1/ns/shop/sa/web,URI:spiffe://td3/ns/blog/sa/db", "odd: path": "URI:spiffe://td1/x",
    "odd: name": "DNS:client.test", "odd: longer": "URI:spiffe://td1/ns/shop/x/y/sa/web",
    "odd: https": "URI:https://td1/x",
}
ISSUERS = ["i", "j/a"]
TOKENS = {
    "texts": {"iss": "i", "sub": "s", "aud": "v1", "azp": "v1", "g": "v1", "n": 1, "scope": "v1 v2"},
    "lists": {"iss": "i", "sub": "s2", "aud": ["v2", "v1"], "g": ["V1", "v2"], "o": {"g": "v1"}, "n": "1"},
    "nested": {"iss": "j/a", "sub": "s", "azp": "v2", "o": {"g": ["v2", 1]}, "g": {"v1": "v1"}, "scope": ["v1"]},
    "slash": {"iss": "i", "sub": "a/s", "g": True}, "no subject": {"iss": "i", "g": "v1,v2"},
}


def free_ports(count, address="0.0.0.0"):
    """Ports that nothing listens on; they are kept apart until all are known."""
    sockets = [socket.create_server((address, 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def encoded(data):
    data = data if isinstance(data, bytes) else json.dumps(data).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class World:
    """Both proxies. Envoy has the policies of many sets at once, each at its own address; Strait has one at a time."""

    def __init__(self, arguments):
        self.arguments, self.directory = arguments, os.path.abspath(arguments.directory)
        shutil.rmtree(self.directory, ignore_errors=True)
        os.makedirs(f"{self.directory}/keys")
        self.ports = free_ports(3)
        self.envoy_admin, *self.admins = free_ports(3, "127.0.0.1")
        self.envoy, self.straits, self.applied = None, [], {}
        self._certificates()
        self._tokens()
        for i, address in enumerate(STRAIT):
            self._start_strait(i, address)

    def stop(self):
        for process in [self.envoy, *self.straits]:
            if process:
                process.kill()
                process.wait()

    # Keys.

    def _openssl(self, *command, **options):
        return subprocess.run(["openssl", *command], cwd=f"{self.directory}/keys", check=True, capture_output=True,
                              **options).stdout

    def _certificates(self):
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30"]
        self._openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=ca")
        names = {"server": "DNS:*.test", **CERTIFICATES}
        self.certificates = {}
        for i, (name, alternative) in enumerate(names.items()):
            file = f"c{i}"
            self._openssl("req", "-x509", *key, "-CA", "ca.crt", "-CAkey", "ca.key", "-keyout", f"{file}.key", "-out",
                          f"{file}.crt", "-subj", "/CN=client", "-addext", f"subjectAltName={alternative}", "-addext",
                          "basicConstraints=critical,CA:FALSE")
            self.certificates[name] = f"{self.directory}/keys/{file}"
        self.server = self.certificates.pop("server")
        self.contexts = {}
        for name, path in [(None, None), *self.certificates.items()]:
            self.contexts[name] = context = ssl.create_default_context(cafile=f"{self.directory}/keys/ca.crt")
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            if path:
                context.load_cert_chain(f"{path}.crt", f"{path}.key")

    def _tokens(self):
        self._openssl("genrsa", "-out", "jwt.key", "2048")
        modulus = self._openssl("rsa", "-in", "jwt.key", "-noout", "-modulus").decode().strip().partition("=")[2]
        self.jwks = json.dumps({"keys": [{"kty": "RSA", "alg": "RS256", "kid": "k", "use": "sig", "e": "AQAB",
                                          "n": encoded(bytes.fromhex(modulus))}]})
        self.tokens = {}
        for name, claims in TOKENS.items():
            signed = f"{encoded({'alg': 'RS256', 'kid': 'k'})}.{encoded({**claims, 'exp': 4102444800})}"
            signature = self._openssl("dgst", "-sha256", "-sign", "jwt.key", input=signed.encode())
            self.tokens[name] = f"{signed}.{encoded(signature)}"

    # Strait.

    def _start_strait(self, hops, address):
        folder = f"{self.directory}/strait{hops}"
        os.makedirs(folder)
        tls = {"mode": "OPTIONAL_MUTUAL", "serverCertificate": f"{self.server}.crt", "privateKey": f"{self.server}.key",
               "caCertificates": f"{self.directory}/keys/ca.crt"}
        servers = [{"port": {"number": port, "name": f"p{port}", "protocol": "HTTP"}, "bind": address, "hosts": ["*"]}
                   for port in self.ports]
        servers[2]["port"]["protocol"] = "HTTPS"
        servers[2]["tls"] = tls
        rules = [{"issuer": issuer, "jwks": self.jwks} for issuer in ISSUERS]
        moved = {"match": [{"uri": {"prefix": "/moved"}}], "redirect": {"uri": "/"}}
        specs = {
            ("networking.istio.io/v1", "Gateway"): {"selector": rbac.LABELS, "servers": servers},
            ("networking.istio.io/v1", "VirtualService"): {
                "hosts": ["*"], "gateways": ["base"], "http": [moved, {"directResponse": {"status": 200}}]},
            ("security.istio.io/v1", "RequestAuthentication"): {"jwtRules": rules}}
        with open(f"{folder}/base.yaml", "w") as file:
            for (version, kind), spec in specs.items():
                document = {"apiVersion": version, "kind": kind, "spec": spec,
                            "metadata": {"name": "base", "namespace": rbac.NAMESPACE}}
                file.write(f"---\n{json.dumps(document)}\n")
        labels = ",".join(f"{name}={value}" for name, value in rbac.LABELS.items())
        domain, *aliases = rbac.TRUST_DOMAINS
        command = [self.arguments.strait, "run", "--config", folder, "--admin", f"127.0.0.1:{self.admins[hops]}",
                   "--namespace", rbac.NAMESPACE, "--root-namespace", rbac.ROOT_NAMESPACE, "--labels", labels,
                   "--trust-domain", domain, "--trust-domain-aliases", ",".join(aliases), "--trusted-hops", str(hops),
                   "--concurrency", "1", "--access-log", "off"]
        with open(f"{self.directory}/strait{hops}.log", "wb") as log:
            self.straits.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log))
        self._until("Strait serves", lambda: self._metric(hops, "strait_config_generation"))

    def _metric(self, hops, name):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admins[hops]}/stats/prometheus", timeout=2) as response:
            found = re.search(rf"^{re.escape(name)} (\S+)$", response.read().decode(), re.MULTILINE)
        return float(found[1]) if found else 0

    def apply(self, hops, policies):
        """Gives Strait a set of policies; returns those numbers of its metrics that tell whether it takes them all."""
        text = "".join(f"---\n{json.dumps(policy)}\n" for policy in policies)
        if self.applied.get(hops) != text:
            self.applied[hops] = text
            before = self._metric(hops, "strait_config_generation")
            new = f"{self.directory}/policies.new"
            with open(new, "w") as file:
                file.write(text)
            os.replace(new, f"{self.directory}/strait{hops}/policies.yaml")
            self._until("Strait applies", lambda: self._metric(hops, "strait_config_generation") > before)
        return {state: int(self._metric(hops, f'strait_authz_policies{{state="{state}"}}'))
                for state in ("enforced", "dry_run", "denying")}

    # Envoy.

    def start_envoy(self, sets, variants):
        """Starts Envoy with a list of sets, and each of them in variants of the translation."""
        listeners = [self._listener(self.address(i, j), port, drawn.hops, filters)
                     for i, drawn in enumerate(sets) for j, decisions in enumerate(variants)
                     for filters in [self._filters(self.address(i, j), drawn, decisions)] for port in self.ports]
        admin = {"address": {"socket_address": {"address": "127.0.0.1", "port_value": self.envoy_admin}}}
        # As in the bootstrap of Istio's proxies.
        layer = {"envoy.reloadable_features.http_reject_path_with_fragment": False}
        path = f"{self.directory}/envoy.json"
        with open(path, "w") as file:
            json.dump({"admin": admin, "static_resources": {"listeners": listeners},
                       "layered_runtime": {"layers": [{"name": "istio", "static_layer": layer}]}}, file)
        if self.envoy:
            self.envoy.kill()
            self.envoy.wait()
        with open(f"{self.directory}/envoy.log", "wb") as log:
            self.envoy = subprocess.Popen([self.arguments.envoy, "-c", path, "--concurrency", "1", "--log-level",
                                           "warning", "--disable-hot-restart"], stdout=log, stderr=log)
        ready = f"http://127.0.0.1:{self.envoy_admin}/ready"
        self._until("Envoy serves", lambda: urllib.request.urlopen(ready, timeout=2).status == 200)

    @staticmethod
    def address(number, variant):
        return f"127.0.{10 + variant}.{1 + number}"

    def _filters(self, address, drawn, decisions):
        space_delimited = {"space_delimited_claims": ["scope", "permission"]}
        providers = {issuer: {"issuer": issuer, "payload_in_metadata": "payload", "forward": True,
                              "normalize_payload_in_metadata": space_delimited,
                              "local_jwks": {"inline_string": self.jwks}} for issuer in ISSUERS}
        requires = [*({"provider_name": issuer} for issuer in ISSUERS), {"allow_missing": {}}]
        jwt = {"@type": JWT, "providers": providers,
               "rules": [{"match": {"prefix": "/"}, "requires": {"requires_any": {"requirements": requires}}}]}
        translation = rbac.Translation(decisions, {STRAIT[drawn.hops]: address})
        return [{"name": rbac.JWT_FILTER, "typed_config": jwt}, *translation.filters(drawn.policies),
                {"name": "envoy.filters.http.router", "typed_config": {"@type": ROUTER}}]

    def _listener(self, address, port, hops, filters):
        routes = [{"match": {"prefix": "/moved"}, "redirect": {"path_redirect": "/"}},
                  {"match": {"prefix": "/"}, "direct_response": {"status": 200}}]
        manager = {
            "@type": HCM, "stat_prefix": "p", "use_remote_address": True, "xff_num_trusted_hops": hops,
            "normalize_path": True, "http_filters": filters, "route_config": {
                "virtual_hosts": [{"name": "all", "domains": ["*"], "routes": routes}]}}
        chain = {"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}
        listener = {"address": {"socket_address": {"address": address, "port_value": port}}, "filter_chains": [chain]}
        if port == self.ports[2]:
            pair = {"certificate_chain": {"filename": f"{self.server}.crt"},
                    "private_key": {"filename": f"{self.server}.key"}}
            common = {"tls_certificates": [pair], "validation_context": {
                "trusted_ca": {"filename": f"{self.directory}/keys/ca.crt"}}}
            chain["transport_socket"] = {"name": "tls", "typed_config": {"@type": TLS, "common_tls_context": common}}
            listener["listener_filters"] = [{"name": "tls_inspector", "typed_config": {"@type": INSPECTOR}}]
        return listener

    # Requests.

    def ask(self, address, request):
        """Status of a response, or what happened instead."""
        try:
            with socket.create_connection((address, request.port), 10, (request.source, 0)) as connection:
                if request.tls:
                    connection = self.contexts[request.certificate].wrap_socket(
                        connection, server_hostname=request.server_name)
                connection.sendall(request.bytes())
                response = b""
                while b"\r\n" not in response and (chunk := connection.recv(65536)):
                    response += chunk
                connection.close()
        except OSError as error:
            return type(error).__name__
        return response.split(b" ", 2)[1].decode() if response.startswith(b"HTTP/") else "closed"

    def _until(self, what, condition, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if any(process.poll() is not None for process in [*self.straits, self.envoy] if process):
                raise RuntimeError(f"a process ended: see the logs in {self.directory}")
            try:
                if condition():
                    return
            except OSError:
                pass
            time.sleep(0.005)
        raise TimeoutError(what)
