//! How a command ends: its exit code, and what a person at the terminal reads.

/// Done.
pub const EXIT_DONE: u8 = 0;

/// The input is wrong: configuration, a path, an address.
pub const EXIT_INPUT: u8 = 1;

/// The usage is wrong: unknown flags, missing arguments.
pub const EXIT_USAGE: u8 = 2;

/// An internal error.
pub const EXIT_INTERNAL: u8 = 70;

/// A number of things, such as `1 error` or `2 errors`.
pub(super) fn counted(count: usize, thing: &str) -> String {
    match count {
        1 => format!("1 {thing}"),
        _ => format!("{count} {thing}s"),
    }
}

/// Tells a person at the terminal why the command ended.
pub(super) fn report(error: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr().lock(), "strait: {error}");
}

/// Prints a line that was asked for.
pub(super) fn show(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}
