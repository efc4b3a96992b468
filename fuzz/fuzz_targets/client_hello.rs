//! libFuzzer entry point of `client_hello`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| strait_fuzz::client_hello::run(bytes));
