//! libFuzzer entry point of `jwt_token`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| strait_fuzz::jwt_token::run(bytes));
