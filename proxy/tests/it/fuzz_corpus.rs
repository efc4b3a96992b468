//! Fuzz targets, run on their committed corpus without a fuzzer.

use std::fs;
use std::path::{Path, PathBuf};

#[path = "../../../fuzz/src/lib.rs"]
mod targets;

#[test]
fn authz_match_target_passes_on_its_corpus() {
    run_corpus("authz_match", targets::authz_match::run);
}

#[test]
fn certificates_target_passes_on_its_corpus() {
    run_corpus("certificates", targets::certificates::run);
}

#[test]
fn client_hello_target_passes_on_its_corpus() {
    run_corpus("client_hello", targets::client_hello::run);
}

#[test]
fn compile_target_passes_on_its_corpus() {
    run_corpus("compile", targets::compile::run);
}

#[test]
fn expression_target_passes_on_its_corpus() {
    run_corpus("expression", targets::expression::run);
}

#[test]
fn gateway_api_target_passes_on_its_corpus() {
    run_corpus("gateway_api", targets::gateway_api::run);
}

#[test]
fn grpc_web_target_passes_on_its_corpus() {
    run_corpus("grpc_web", targets::grpc_web::run);
}

#[test]
fn hpack_target_passes_on_its_corpus() {
    run_corpus("hpack", targets::hpack::run);
}

#[test]
fn http1_head_target_passes_on_its_corpus() {
    run_corpus("http1_head", targets::http1_head::run);
}

#[test]
fn http1_response_target_passes_on_its_corpus() {
    run_corpus("http1_response", targets::http1_response::run);
}

#[test]
fn http2_client_target_passes_on_its_corpus() {
    run_corpus("http2_client", targets::http2_client::run);
}

#[test]
fn http2_server_target_passes_on_its_corpus() {
    run_corpus("http2_server", targets::http2_server::run);
}

#[test]
fn jwt_keys_target_passes_on_its_corpus() {
    run_corpus("jwt_keys", targets::jwt_keys::run);
}

#[test]
fn jwt_token_target_passes_on_its_corpus() {
    run_corpus("jwt_token", targets::jwt_token::run);
}

#[test]
fn log_format_target_passes_on_its_corpus() {
    run_corpus("log_format", targets::log_format::run);
}

#[test]
fn mesh_config_target_passes_on_its_corpus() {
    run_corpus("mesh_config", targets::mesh_config::run);
}

#[test]
fn proxy_protocol_target_passes_on_its_corpus() {
    run_corpus("proxy_protocol", targets::proxy_protocol::run);
}

#[test]
fn regex_translate_target_passes_on_its_corpus() {
    run_corpus("regex_translate", targets::regex_translate::run);
}

#[test]
fn route_match_target_passes_on_its_corpus() {
    run_corpus("route_match", targets::route_match::run);
}

#[test]
fn tap_filter_target_passes_on_its_corpus() {
    run_corpus("tap_filter", targets::tap_filter::run);
}

#[test]
fn trace_context_target_passes_on_its_corpus() {
    run_corpus("trace_context", targets::trace_context::run);
}

#[test]
fn xds_body_target_passes_on_its_corpus() {
    run_corpus("xds_body", targets::xds_body::run);
}

#[test]
fn yaml_load_target_passes_on_its_corpus() {
    run_corpus("yaml_load", targets::yaml_load::run);
}

#[test]
fn every_target_has_a_corpus_and_a_test() {
    let mut corpora = names(&fuzz().join("corpus"));
    corpora.sort();
    let mut programs = names(&fuzz().join("fuzz_targets"));
    programs.sort();
    assert_eq!(corpora, programs);
    let tests = include_str!("fuzz_corpus.rs");
    for name in corpora {
        assert!(
            tests.contains(&format!("run_corpus(\"{name}\"")),
            "no test runs the corpus of {name}"
        );
    }
}

/// Runs a target on its corpus, and names the failing input, which the panic itself does not.
fn run_corpus(target: &str, run: fn(&[u8])) {
    let directory = fuzz().join("corpus").join(target);
    let entries = fs::read_dir(&directory).expect("the corpus is committed");
    let mut inputs: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    inputs.sort();
    assert!(!inputs.is_empty(), "{} is empty", directory.display());
    for input in inputs {
        let bytes = fs::read(&input).unwrap();
        let outcome = std::panic::catch_unwind(|| run(&bytes));
        assert!(
            outcome.is_ok(),
            "target {target} fails on {}",
            input.display()
        );
    }
}

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz")
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("the fuzz folder is beside the crates");
    let stem = |path: PathBuf| path.file_stem().unwrap().to_string_lossy().into_owned();
    entries.map(|entry| stem(entry.unwrap().path())).collect()
}
