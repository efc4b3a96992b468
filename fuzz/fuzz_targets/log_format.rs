//! libFuzzer entry point of `log_format`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| strait_fuzz::log_format::run(bytes));
