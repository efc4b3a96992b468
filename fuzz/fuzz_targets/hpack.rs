//! libFuzzer entry point of `hpack`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| strait_fuzz::hpack::run(bytes));
