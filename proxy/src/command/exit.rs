//! Exit codes and messages of commands.

/// Done.
pub const EXIT_DONE: u8 = 0;

/// The input is wrong: configuration, a path, an address.
pub const EXIT_INPUT: u8 = 1;

/// The usage is wrong: unknown flags, missing arguments.
pub const EXIT_USAGE: u8 = 2;

/// An internal error.
pub const EXIT_INTERNAL: u8 = 70;

/// Renders a count with its noun, such as `1 error` or `2 errors`.
pub(super) fn counted(count: usize, thing: &str) -> String {
    match count {
        1 => format!("1 {thing}"),
        _ => format!("{count} {thing}s"),
    }
}

/// Prints the reason why the command failed to standard error.
pub(super) fn report(error: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr().lock(), "strait: {error}");
}

/// Prints an output to standard output; returns the exit code.
pub(super) fn print(text: &str) -> u8 {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => EXIT_DONE,
        Err(_) => EXIT_INTERNAL, // the reader went away
    }
}

/// Prints a line to standard output.
pub(super) fn show(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}
