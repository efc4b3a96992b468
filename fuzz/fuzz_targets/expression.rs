//! libFuzzer entry point of `expression`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| strait_fuzz::expression::run(bytes));
