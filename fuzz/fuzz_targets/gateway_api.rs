//! libFuzzer entry point of `gateway_api`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| strait_fuzz::gateway_api::run(bytes));
