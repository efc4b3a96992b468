//! libFuzzer entry point of `compile`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| strait_fuzz::compile::run(bytes));
