//! What the fuzz targets do with their bytes.
//!
//! Each module is one target: its `run` takes any bytes and panics if a promise is broken. The targets in
//! `fuzz_targets/` call them under libFuzzer; `proxy/tests/it/fuzz_corpus.rs` includes this same file, and calls them on
//! the committed corpus with an ordinary compiler.

pub mod certificates;
pub mod client_hello;
pub mod compile;
pub mod grpc_web;
pub mod hpack;
pub mod http1_head;
pub mod http1_response;
pub mod http2_client;
pub mod http2_server;
pub mod proxy_protocol;
pub mod regex_translate;
pub mod route_match;
pub mod xds_body;
pub mod yaml_load;
