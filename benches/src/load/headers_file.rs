//! File of `--headers`: headers that differ between requests.
//!
//! Blocks of `name: value` lines, separated by empty lines; requests take the blocks in turn. `:method` and `:path`
//! replace method and path, `host` names the host. Lines that begin with `#` are comments.

use http::{HeaderName, HeaderValue, Method};

/// Maximum size of the file, in bytes.
pub const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Maximum number of blocks of the file.
pub const BLOCKS_MAX: usize = 100_000;

/// Maximum number of headers of one request.
pub const HEADERS_MAX: usize = 100;

/// Connection and body headers, which the generator writes itself.
const OWN: [&str; 6] = [
    "content-length",
    "keep-alive",
    "proxy-connection",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// Values of one block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// Value of `:method`.
    pub method: Option<Method>,
    /// Value of `:path`.
    pub path: Option<String>,
    /// Value of `host`.
    pub host: Option<String>,
    /// Other headers, in the order of the file.
    pub headers: Vec<(HeaderName, HeaderValue)>,
}

impl Block {
    /// Adds a line `name: value`.
    ///
    /// # Errors
    /// When the line is not a header, or names a header that the generator writes itself.
    pub fn add(&mut self, line: &str) -> Result<(), String> {
        let pseudo = usize::from(line.starts_with(':'));
        let Some((name, value)) = line[pseudo..].split_once(':') else {
            return Err(format!("expected `name: value`, found {line:?}"));
        };
        let (name, value) = (name.trim_end(), value.trim());
        if pseudo == 1 {
            return self.set(name, value);
        }
        let header: HeaderName = name
            .parse()
            .map_err(|_| format!("{name:?} is not the name of a header"))?;
        if OWN.contains(&header.as_str()) {
            return Err(format!(
                "the generator sets `{header}` itself; remove the line"
            ));
        }
        let parsed = HeaderValue::from_str(value);
        let parsed =
            parsed.map_err(|_| format!("`{header}` has a value with control characters"))?;
        if header == http::header::HOST {
            let host: http::uri::Authority = value
                .parse()
                .map_err(|_| format!("{value:?} is not a host"))?;
            self.host = Some(host.to_string());
            return Ok(());
        }
        if self.headers.len() == HEADERS_MAX {
            return Err(format!("a request has at most {HEADERS_MAX} headers"));
        }
        self.headers.push((header, parsed));
        Ok(())
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "method" => {
                let method = value
                    .parse()
                    .map_err(|_| format!("{value:?} is not a method"))?;
                self.method = Some(method);
            }
            "path" => {
                let path: Result<http::uri::PathAndQuery, _> = value.parse();
                if !value.starts_with('/') || path.is_err() {
                    return Err(format!("{value:?} is not a path; it begins with /"));
                }
                self.path = Some(value.to_owned());
            }
            _ => {
                return Err(format!(
                    "`:{name}` is unknown; there are `:method` and `:path`"
                ));
            }
        }
        Ok(())
    }
}

/// Parses the text of a file.
///
/// # Errors
/// With the name of the file and the number of the line.
pub fn parse(file: &str, text: &str) -> Result<Vec<Block>, String> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim_end();
        if line.starts_with('#') {
            continue;
        }
        if line.is_empty() {
            blocks.extend(open.take());
            continue;
        }
        if open.is_none() && blocks.len() == BLOCKS_MAX {
            return Err(format!("{file}:{number}: more than {BLOCKS_MAX} blocks"));
        }
        let added = open.get_or_insert_default().add(line);
        added.map_err(|problem| format!("{file}:{number}: {problem}"))?;
    }
    blocks.extend(open);
    if blocks.is_empty() {
        return Err(format!(
            "{file}: no headers; write blocks of `name: value` lines, separated by empty lines"
        ));
    }
    Ok(blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_separated_by_empty_lines() {
        let text = "# two hosts\n\nhost: a.example:81\nx-user: 1\n:path: /cart?x=1\n\n\n# next\nhost: b.example\n:method: PUT\nx-empty:\n";
        let blocks = parse("f", text).unwrap();
        assert_eq!(blocks.len(), 2);
        assert_eq!(blocks[0].host.as_deref(), Some("a.example:81"));
        assert_eq!(blocks[0].path.as_deref(), Some("/cart?x=1"));
        assert_eq!(blocks[0].headers[0].0, "x-user");
        assert_eq!(blocks[1].method, Some(Method::PUT));
        assert_eq!(blocks[1].headers[0].1, "");
    }

    #[test]
    fn comment_does_not_separate_blocks() {
        assert_eq!(parse("f", "a: 1\n# b\nb: 2\n").unwrap().len(), 1);
    }

    #[test]
    fn mistakes_are_named_with_file_and_line() {
        let cases = [
            ("a: 1\n\nnonsense\n", "f:3: expected `name: value`"),
            ("a b: 1\n", "f:1: \"a b\" is not the name of a header"),
            (
                "# x\na: \u{1}x\n",
                "f:2: `a` has a value with control characters",
            ),
            (
                "content-length: 3\n",
                "f:1: the generator sets `content-length` itself",
            ),
            (":path: cart\n", "f:1: \"cart\" is not a path"),
            (":method: A B\n", "f:1: \"A B\" is not a method"),
            (":authority: a\n", "f:1: `:authority` is unknown"),
            ("host: a b\n", "f:1: \"a b\" is not a host"),
            ("# nothing\n", "f: no headers"),
        ];
        for (text, message) in cases {
            let error = parse("f", text).unwrap_err();
            assert!(error.starts_with(message), "{text:?}: {error}");
        }
    }

    #[test]
    fn headers_of_a_request_are_limited() {
        let text = "a: 1\n".repeat(HEADERS_MAX + 1);
        let error = parse("f", &text).unwrap_err();
        assert_eq!(error, "f:101: a request has at most 100 headers");
    }
}
