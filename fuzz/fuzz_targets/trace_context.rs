//! libFuzzer entry point of `trace_context`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| strait_fuzz::trace_context::run(bytes));
