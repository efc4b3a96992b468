//! libFuzzer entry point of `xds_body`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| strait_fuzz::xds_body::run(bytes));
