//! Tables in `tests/corpus`: rows with columns separated by ` | `, with comments, and escapes for bytes.

/// Parses the rows of a table, each with this many columns; the last one may contain any text.
pub fn rows<const N: usize>(table: &'static str) -> impl Iterator<Item = [&'static str; N]> {
    let lines = table.lines();
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| {
        let mut columns = line.splitn(N, " | ");
        [(); N].map(|()| {
            columns
                .next()
                .unwrap_or_else(|| panic!("{N} columns: {line}"))
        })
    })
}

/// Decodes a column: `\r`, `\n`, `\t`, `\\` and `\xNN` are escapes.
pub fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'\\' => match rest.next() {
                Some(b'r') => b'\r',
                Some(b'n') => b'\n',
                Some(b't') => b'\t',
                Some(b'\\') => b'\\',
                Some(b'x') => {
                    let digits = [rest.next().unwrap(), rest.next().unwrap()];
                    let digits = std::str::from_utf8(&digits).unwrap();
                    u8::from_str_radix(digits, 16).unwrap()
                }
                other => panic!("no escape: {other:?} in {text}"),
            },
            byte => byte,
        });
    }
    bytes
}

/// Panics with all complaints about the rows of a table, if there are any.
#[track_caller]
pub fn assert_none(complaints: &[String]) {
    let (count, lines) = (complaints.len(), complaints.join("\n"));
    assert!(complaints.is_empty(), "{count}:\n{lines}");
}
