//! libFuzzer entry point of `http2_server`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| strait_fuzz::http2_server::run(bytes));
