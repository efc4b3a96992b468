//! libFuzzer entry point of `http2_client`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| strait_fuzz::http2_client::run(bytes));
