//! libFuzzer entry point of `route_match`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| strait_fuzz::route_match::run(bytes));
