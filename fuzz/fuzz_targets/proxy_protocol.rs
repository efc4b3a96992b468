//! libFuzzer entry point of `proxy_protocol`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| strait_fuzz::proxy_protocol::run(bytes));
