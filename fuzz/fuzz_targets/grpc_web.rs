//! libFuzzer entry point of `grpc_web`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| strait_fuzz::grpc_web::run(bytes));
