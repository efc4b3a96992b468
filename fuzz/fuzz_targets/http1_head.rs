//! libFuzzer entry point of `http1_head`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| strait_fuzz::http1_head::run(bytes));
