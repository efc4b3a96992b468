//! The binary `strait`.

fn main() {}
