//! libFuzzer entry point of `certificates`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| strait_fuzz::certificates::run(bytes));
