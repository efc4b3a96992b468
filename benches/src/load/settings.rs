//! Validated settings of a run, from the command line and the files that it names.

use std::fs;
use std::io::Read as _;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderName;

use super::address::{Address, DEFAULT_URL};
use super::arguments::{Arguments, BODY_BYTES_MAX, LENGTH_MAX, SLOTS_MAX, Spread, TIMEOUT_MAX};
use super::dial::Tls;
use super::error::Error;
use super::headers_file::{self, Block, FILE_BYTES_MAX};
use super::outcome::Expected;
use super::protocol::Protocol;
use super::request::{Requests, SharedProperties};
use super::schedule::Arrivals;
use super::tls::{self, Trust};

/// Settings of a run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// URL under test.
    pub address: Address,
    /// Resolved address of its host.
    pub resolved: SocketAddr,
    /// Protocol.
    pub protocol: Protocol,
    /// TLS settings; `None` for plain text.
    pub tls: Option<Tls>,
    /// Prepared requests.
    pub requests: Requests,
    /// Conditions that a response must meet.
    pub expected: Expected,
    /// Requests per second.
    pub rate: u32,
    /// Distribution of the arrival times.
    pub arrivals: Arrivals,
    /// Duration of the measurement.
    pub duration: Duration,
    /// Duration of the warm-up.
    pub warm_up: Duration,
    /// Number of connections of all threads.
    pub connections: u32,
    /// Maximum number of concurrent requests per connection; 1 for HTTP/1.1.
    pub streams: u32,
    /// Number of threads.
    pub threads: u32,
    /// Timeout of a request.
    pub timeout: Duration,
    /// Header by whose value responses are counted.
    pub counted: Option<HeaderName>,
}

impl Settings {
    /// Validates the command line, and reads the files that it names.
    ///
    /// # Errors
    /// When an argument or a file is invalid, with its location and a fix.
    pub fn new(arguments: &Arguments) -> Result<Self, Error> {
        let address = Address::parse(arguments.url.as_deref().unwrap_or(DEFAULT_URL))?;
        let protocol = arguments.protocol;
        let streams = if protocol.is_http2() {
            arguments.streams
        } else {
            1
        };
        check(arguments, streams)?;
        let mut headers = Block::default();
        for header in &arguments.common {
            let added = headers.add(header);
            added.map_err(|problem| Error::Usage(format!("--header: {problem}")))?;
        }
        let body = match &arguments.body {
            Some(path) => Bytes::from(read("--body", path, BODY_BYTES_MAX)?),
            None => Bytes::new(),
        };
        let common = SharedProperties {
            method: arguments.method.clone(),
            headers,
            body,
        };
        let blocks = match &arguments.headers {
            Some(path) => blocks(path)?,
            None => Vec::new(),
        };
        let tls = address.tls.then(|| {
            let trust = match &arguments.ca {
                _ if arguments.insecure => Trust::Any,
                Some(path) => Trust::File(path),
                None => Trust::Public,
            };
            let name = arguments.server_name.as_deref().unwrap_or(&address.host);
            tls::client(protocol, trust, name)
        });
        Ok(Self {
            resolved: address.resolve()?,
            protocol,
            tls: tls.transpose()?,
            requests: Requests::new(protocol, &address, &common, &blocks)?,
            expected: Expected {
                statuses: arguments.statuses.clone(),
                body_bytes: arguments.expect_body_bytes,
                grpc: protocol == Protocol::Grpc,
            },
            rate: arguments.rate,
            arrivals: match arguments.arrivals {
                Spread::Constant => Arrivals::Constant,
                Spread::Random => Arrivals::Random(arguments.seed),
            },
            duration: arguments.duration,
            warm_up: arguments.warm_up,
            connections: arguments.connections,
            streams,
            threads: arguments.threads,
            timeout: arguments.timeout,
            counted: arguments.count_header.clone(),
            address,
        })
    }

    /// Returns the time from the first request to the last one, including the warm-up.
    pub fn length(&self) -> Duration {
        self.warm_up + self.duration
    }
}

fn check(arguments: &Arguments, streams: u32) -> Result<(), Error> {
    let wrong = |problem: String| Err(Error::Usage(problem));
    let length = arguments.duration.saturating_add(arguments.warm_up);
    if arguments.duration.is_zero() {
        return wrong("--duration: must be longer than 0".to_owned());
    }
    if length > LENGTH_MAX {
        return wrong(format!(
            "--duration and --warm-up: {length:?} together, at most {LENGTH_MAX:?}"
        ));
    }
    if arguments.timeout.is_zero() || arguments.timeout > TIMEOUT_MAX {
        return wrong(format!(
            "--timeout: must be longer than 0 and at most {TIMEOUT_MAX:?}"
        ));
    }
    if arguments.connections < arguments.threads {
        let (connections, threads) = (arguments.connections, arguments.threads);
        return wrong(format!(
            "--threads: {threads} threads need more than {connections} connections"
        ));
    }
    let slots = u64::from(arguments.connections) * u64::from(streams);
    if slots > SLOTS_MAX {
        return wrong(format!(
            "--connections times --streams: {slots}, at most {SLOTS_MAX}"
        ));
    }
    Ok(())
}

fn blocks(path: &Path) -> Result<Vec<Block>, Error> {
    let bytes = read("--headers", path, FILE_BYTES_MAX)?;
    let name = path.display().to_string();
    let text = String::from_utf8(bytes).map_err(|_| Error::Usage(format!("{name}: not UTF-8")))?;
    headers_file::parse(&name, &text).map_err(Error::Usage)
}

fn read(flag: &str, path: &Path, bytes_max: u64) -> Result<Vec<u8>, Error> {
    let wrong = |problem: String| Error::Usage(format!("{flag} {}: {problem}", path.display()));
    let file = fs::File::open(path).map_err(|error| wrong(error.to_string()))?;
    let mut bytes = Vec::new();
    file.take(bytes_max + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| wrong(error.to_string()))?;
    if bytes.len() as u64 > bytes_max {
        return Err(wrong(format!("more than {bytes_max} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    fn settings(line: &[&str]) -> Result<Settings, String> {
        let line = ["load"].iter().chain(line);
        Settings::new(&Arguments::parse_from(line)).map_err(|error| error.to_string())
    }

    #[test]
    fn run_is_bounded() {
        for (line, problem) in [
            (
                &["--duration", "0s"][..],
                "--duration: must be longer than 0",
            ),
            (
                &["--duration", "59m", "--warm-up", "61s"],
                "together, at most 3600s",
            ),
            (
                &["--timeout", "61s"],
                "--timeout: must be longer than 0 and at most 60s",
            ),
            (
                &["--threads", "3", "--connections", "2"],
                "3 threads need more than 2",
            ),
            (
                &[
                    "--protocol",
                    "http2",
                    "--connections",
                    "1000",
                    "--streams",
                    "101",
                ],
                "101000, at most 100000",
            ),
        ] {
            let error = settings(line).unwrap_err();
            assert!(error.contains(problem), "{line:?}: {error}");
        }
        // streams are those of HTTP/2 only
        assert!(settings(&["--connections", "1000", "--streams", "101"]).is_ok());
    }

    #[test]
    fn mistake_in_a_file_is_named_with_its_line() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        std::io::Write::write_all(&mut file, b"host: a\n\nhost a\n").unwrap();
        let path = file.path().to_str().unwrap();
        let error = settings(&["--headers", path]).unwrap_err();
        assert!(
            error.starts_with(&format!("{path}:3: expected `name: value`")),
            "{error}"
        );
    }

    #[test]
    fn missing_files_are_named() {
        for flag in ["--headers", "--body", "--ca"] {
            let line = ["https://127.0.0.1/", flag, "/nowhere"];
            let error = settings(&line).unwrap_err();
            assert!(error.starts_with(&format!("{flag} /nowhere: ")), "{error}");
        }
    }

    #[test]
    fn without_a_url_this_machine_is_measured() {
        let settings = settings(&[]).unwrap();
        assert_eq!(settings.resolved, "127.0.0.1:15001".parse().unwrap());
    }
}
