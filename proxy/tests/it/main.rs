//! Tests with real sockets, in one binary so that they link once.

#![allow(unreachable_pub, reason = "a test program has no users")]
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests: what fails is shown"
)]

#[path = "../support/support.rs"]
mod support;

mod access_log;
mod admin;
mod architecture;
mod authorization;
mod backend;
mod balancing;
mod checks;
mod clean_heads;
mod config_server;
mod config_servers;
mod connection_pools;
mod cors;
mod demo;
mod deployments;
mod destination_rules;
mod dns;
mod docs_yaml;
mod downgrade_corpus;
mod downstream_connections;
mod downstream_drain;
mod downstream_http2;
mod downstream_http2_frames;
mod downstream_limits;
mod downstream_uploads;
mod drain;
mod edge_headers;
mod effects;
mod ejections;
mod endpoint_changes;
mod envoy_interop;
mod envoy_paths;
mod examples;
mod failover;
mod faults;
mod forwarding;
mod fuzz_corpus;
mod gateway_api;
mod grpc;
mod grpc_web;
mod header_values;
mod health;
mod health_checks;
mod http1_corpus;
mod http1_response_corpus;
mod http2_conformance;
mod http2_floods;
mod http2_response_corpus;
mod hub;
mod identity;
mod inject;
mod istiod;
mod kubernetes;
mod kubernetes_pods;
mod listeners;
mod memory;
mod mesh_config;
mod metric_details;
mod metric_tags;
mod mirrors;
mod multicluster;
mod netns;
mod passthrough;
mod path_corpus;
mod peer_authentication;
mod pitfalls_gateways;
mod pitfalls_http;
mod process;
mod prometheus;
mod propagation;
mod protocols;
mod proxy_protocol;
mod rate_limits;
mod regexes;
mod reload;
mod reload_paths;
mod request_authentication;
mod resilience;
mod retries;
mod retry_targets;
mod routing;
mod services;
mod sidecar;
mod startup;
mod stickiness;
mod strict_messages;
mod takeover;
mod tcp;
mod telemetry;
mod timeouts;
mod tls_clients;
mod tls_names;
mod tls_reload;
mod tls_tcp;
mod tls_versions;
mod traces;
mod trailers;
mod tunnels;
mod unix_listener;
mod upgrades;
mod upstream_addresses;
mod upstream_http2;
mod upstream_http2_frames;
mod upstream_tls;
mod upstream_tls_kinds;
mod upstream_tls_material;
mod workload_identity;
