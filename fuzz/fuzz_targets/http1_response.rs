//! libFuzzer entry point of `http1_response`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| strait_fuzz::http1_response::run(bytes));
