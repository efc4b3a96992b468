//! libFuzzer entry point of `yaml_load`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| strait_fuzz::yaml_load::run(bytes));
