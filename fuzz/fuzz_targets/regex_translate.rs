//! libFuzzer entry point of `regex_translate`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| strait_fuzz::regex_translate::run(bytes));
