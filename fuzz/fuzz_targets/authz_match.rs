//! libFuzzer entry point of `authz_match`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| strait_fuzz::authz_match::run(bytes));
