//! libFuzzer entry point of `mesh_config`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| strait_fuzz::mesh_config::run(bytes));
