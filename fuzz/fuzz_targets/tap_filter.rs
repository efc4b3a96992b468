//! libFuzzer entry point of `tap_filter`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| strait_fuzz::tap_filter::run(bytes));
