//! Fuzz targets of the proxy.
//!
//! Each module is one target: its `run` takes arbitrary bytes and panics if an invariant is violated. The programs in
//! `fuzz_targets/` call the targets under libFuzzer; `proxy/tests/it/fuzz_corpus.rs` includes this file and runs them
//! on the committed corpus with an ordinary compiler.

pub mod authz_match;
pub mod certificates;
pub mod client_hello;
pub mod compile;
pub mod expression;
pub mod gateway_api;
pub mod grpc_web;
pub mod hpack;
pub mod http1_head;
pub mod http1_response;
pub mod http2_client;
pub mod http2_server;
pub mod jwt_keys;
pub mod jwt_token;
pub mod log_format;
pub mod mesh_config;
pub mod proxy_protocol;
pub mod regex_translate;
pub mod route_match;
pub mod tap_filter;
pub mod trace_context;
pub mod xds_body;
pub mod yaml_load;
