// A request with a span of the OpenTelemetry SDK: node client.mjs URL HOST COLLECTOR w3c|b3
import http from "node:http";
import { context, propagation, SpanKind, trace } from "@opentelemetry/api";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { B3InjectEncoding, B3Propagator } from "@opentelemetry/propagator-b3";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { NodeTracerProvider, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-node";

const [url, host, collector, form] = process.argv.slice(2);
const exporter = new OTLPTraceExporter({ url: `${collector}/v1/traces` });
const provider = new NodeTracerProvider({
  resource: resourceFromAttributes({ "service.name": "client" }),
  spanProcessors: [new SimpleSpanProcessor(exporter)],
});
const b3 = new B3Propagator({ injectEncoding: B3InjectEncoding.MULTI_HEADER });
provider.register({ propagator: form === "b3" ? b3 : new W3CTraceContextPropagator() });

const span = trace.getTracer("client").startSpan("GET", { kind: SpanKind.CLIENT });
const headers = { host };
propagation.inject(trace.setSpan(context.active(), span), headers);
const status = await new Promise((resolve, reject) => {
  http.get(url, { headers }, (reply) => reply.resume().on("end", () => resolve(reply.statusCode))).on("error", reject);
});
span.end();
await provider.shutdown();
if (status !== 200) throw new Error(`status ${status}`);
