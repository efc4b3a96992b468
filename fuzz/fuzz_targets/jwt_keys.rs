//! libFuzzer entry point of `jwt_keys`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| strait_fuzz::jwt_keys::run(bytes));
