"""A server whose requests have spans of the OpenTelemetry SDK: server.py PORT COLLECTOR w3c|b3."""

import http.server
import sys

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.propagators.b3 import B3MultiFormat
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

port, collector, form = int(sys.argv[1]), sys.argv[2], sys.argv[3]
provider = TracerProvider(resource=Resource.create({"service.name": "server"}))
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(endpoint=f"{collector}/v1/traces")))
tracer = provider.get_tracer("server")
propagator = B3MultiFormat() if form == "b3" else TraceContextTextMapPropagator()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        context = propagator.extract({name.lower(): value for name, value in self.headers.items()})
        with tracer.start_as_current_span("GET", context=context, kind=trace.SpanKind.SERVER):
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
