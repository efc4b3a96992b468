//! Load generators: their command lines and their reports.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::compare::failure::{Failure, context};
use crate::compare::generator::{Span, Tally};
use crate::compare::process::CommandLine;
use crate::compare::tls::{self, Credentials};
use crate::compare::tool::{Tool, Tools};
use crate::compare::upstream::{bulk, grpc};

/// Kind of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// HTTP/1.1 by wrk, over this many keep-alive connections.
    Http1 {
        /// Connections open at once.
        connections: u32,
    },
    /// HTTP/2 by h2load; without TLS by prior knowledge.
    Http2 {
        /// Connections open at once.
        connections: u32,
        /// Requests in flight on each of them.
        streams: u32,
    },
    /// Unary gRPC calls by h2load.
    Grpc {
        /// Connections open at once.
        connections: u32,
        /// Calls in flight on each of them.
        streams: u32,
    },
    /// New connections with TLS and a request on each, by this program.
    Handshakes {
        /// Connections open at once.
        connections: u32,
        /// Whether sessions are resumed.
        resumed: bool,
    },
    /// HTTP/1.1 by this program, over many keep-alive connections in turn.
    Rotation {
        /// Connections open at once.
        connections: u32,
        /// Requests in flight at once.
        in_flight: u32,
    },
    /// Bytes through TCP connections, both ways at once, by this program.
    Bulk {
        /// Connections open at once.
        connections: u32,
    },
}

/// Server that a load is sent to.
#[derive(Clone, Copy, Debug)]
pub struct Aim<'a> {
    /// Port of 127.0.0.1.
    pub port: u16,
    /// Request path.
    pub path: &'a str,
    /// Whether the port speaks TLS.
    pub tls: bool,
    /// Whether the server is an upstream that speaks HTTP/1.1 only.
    pub http1_only: bool,
    /// Request headers; only for HTTP/1.1 by wrk.
    pub headers: &'a [(&'a str, &'a str)],
    /// Process ID of the server.
    pub pid: u32,
}

/// Files that load generators read.
#[derive(Clone, Debug)]
pub struct Material {
    /// Certificate that proxies present.
    pub credentials: Credentials,
    /// gRPC message with its length prefix.
    message: PathBuf,
    /// OpenSSL configuration that restricts what clients offer.
    openssl: PathBuf,
}

impl Material {
    /// Returns the paths of the files below a directory.
    fn below(directory: &Path) -> Self {
        Self {
            credentials: Credentials::below(directory),
            message: directory.join("message.grpc"),
            openssl: directory.join("openssl.cnf"),
        }
    }

    /// Writes the files, with a new certificate.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn make(directory: &Path) -> Result<Self, Failure> {
        let material = Self::below(directory);
        Credentials::make(directory)?;
        fs::write(&material.message, grpc::framed_message())
            .map_err(context(material.message.display()))?;
        fs::write(&material.openssl, tls::openssl_settings())
            .map_err(context(material.openssl.display()))?;
        Ok(material)
    }
}

/// Counts from the report of a load generator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Responses received, or connections that completed their work.
    pub requests: u64,
    /// Responses other than 2xx and 3xx.
    pub bad_statuses: u64,
    /// Connections or requests that failed or timed out.
    pub failures: u64,
    /// Bytes that were read, including at least the bodies.
    pub bytes: u64,
    /// Reason of the first failure, if the load generator reports it.
    pub reason: Option<String>,
    /// Part of the load that counts, if that is not all of it.
    pub span: Option<Span>,
}

impl Load {
    /// Returns the program that makes this load; `None` if it is this program.
    pub fn tool(self) -> Option<Tool> {
        match self {
            Self::Http1 { .. } => Some(Tool::Wrk),
            Self::Http2 { .. } | Self::Grpc { .. } => Some(Tool::H2load),
            Self::Handshakes { .. } | Self::Rotation { .. } | Self::Bulk { .. } => None,
        }
    }

    /// Returns the command line of the load generator.
    ///
    /// # Errors
    /// When the program is not installed.
    pub fn command(
        self,
        tools: &Tools,
        material: &Material,
        aim: &Aim<'_>,
        turn: Duration,
    ) -> Result<CommandLine, Failure> {
        let seconds = turn.as_secs().max(1);
        let program = match self.tool() {
            Some(tool) => tools.get(tool).map(|found| found.path.clone()),
            None => std::env::current_exe().ok(),
        };
        let program = program.ok_or_else(|| Failure::new("the load generator is missing"))?;
        let arguments = match self {
            Self::Http1 { connections } => words(["-t1"])
                .chain([format!("-c{connections}").into()])
                .chain(aim.header_arguments())
                .chain([format!("-d{seconds}s").into(), aim.url().into()])
                .collect(),
            Self::Http2 {
                connections,
                streams,
            } => h2load(aim, connections, streams, seconds, &[]),
            Self::Grpc {
                connections,
                streams,
            } => {
                let mut call: Vec<OsString> = vec!["-d".into(), material.message.clone().into()];
                call.extend(words(["-H", "content-type: application/grpc"]));
                call.extend(words(["-H", "te: trailers"]));
                h2load(aim, connections, streams, seconds, &call)
            }
            Self::Handshakes {
                connections,
                resumed,
            } => {
                let work = if resumed { "resumed" } else { "full" };
                let certificate = material.credentials.certificate.clone();
                let mut arguments = generate(work, aim, connections, seconds);
                arguments.extend(["--certificate".into(), certificate.into()]);
                arguments
            }
            Self::Rotation {
                connections,
                in_flight,
            } => {
                let mut arguments = generate("rotation", aim, connections, seconds);
                arguments.extend(words(["--in-flight", &in_flight.to_string()]));
                arguments.extend(words(["--pid", &aim.pid.to_string(), "--path", aim.path]));
                arguments
            }
            Self::Bulk { connections } => generate("bulk", aim, connections, seconds),
        };
        if !aim.tls || self.tool().is_none() {
            return Ok(CommandLine::new(&program, arguments));
        }
        // Programs that use OpenSSL are told by a file what to offer.
        let mut settings = OsString::from("OPENSSL_CONF=");
        settings.push(&material.openssl);
        let words = [settings, program.into()].into_iter().chain(arguments);
        Ok(CommandLine::new(Path::new("env"), words))
    }

    /// Parses the output of the program; `None` if it is not a report.
    pub fn parse(self, output: &str) -> Option<Counts> {
        match self {
            Self::Http1 { .. } => parse_wrk(output),
            Self::Http2 { .. } | Self::Grpc { .. } => parse_h2load(output),
            Self::Handshakes { .. } | Self::Rotation { .. } | Self::Bulk { .. } => {
                let tally = Tally::parse(output)?;
                Some(Counts {
                    requests: tally.done,
                    failures: tally.failures,
                    bytes: tally.done * self.bytes_each(0),
                    reason: tally.reason,
                    span: tally.span,
                    ..Counts::default()
                })
            }
        }
    }

    /// Returns the minimum number of bytes read per counted request, if bodies have `body_bytes`.
    pub fn bytes_each(self, body_bytes: usize) -> u64 {
        let bytes = match self {
            Self::Http1 { .. } | Self::Http2 { .. } => body_bytes,
            Self::Grpc { .. } => grpc::FRAMED_BYTES,
            // Looks at every response itself.
            Self::Handshakes { .. } | Self::Rotation { .. } => 0,
            Self::Bulk { .. } => 2 * bulk::SESSION_BYTES,
        };
        bytes as u64
    }
}

impl Aim<'_> {
    fn header_arguments(&self) -> impl Iterator<Item = OsString> {
        let arguments = |(name, value): &(&str, &str)| words(["-H", &format!("{name}: {value}")]);
        self.headers.iter().flat_map(arguments)
    }

    fn url(&self) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        format!("{scheme}://127.0.0.1:{}{}", self.port, self.path)
    }
}

/// Returns the command line of h2load. With TLS, ALPN offers only HTTP/2, so that a proxy without HTTP/2 fails.
fn h2load(
    aim: &Aim<'_>,
    connections: u32,
    streams: u32,
    seconds: u64,
    call: &[OsString],
) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = words(["-t1", "-c", &connections.to_string()])
        .chain(words(["-m", &streams.to_string()]))
        .chain(words(["-D", &seconds.to_string()]))
        .collect();
    if aim.http1_only {
        arguments.push("--h1".into());
    } else if aim.tls {
        let suite = format!("--tls13-ciphers={}", tls::CIPHER_SUITE);
        arguments.extend(words(["--npn-list=h2", &suite]));
    }
    arguments.extend_from_slice(call);
    arguments.push(aim.url().into());
    arguments
}

fn generate(work: &str, aim: &Aim<'_>, connections: u32, seconds: u64) -> Vec<OsString> {
    words(["generate", work])
        .chain(words(["--port", &aim.port.to_string()]))
        .chain(words(["--connections", &connections.to_string()]))
        .chain(words(["--seconds", &seconds.to_string()]))
        .collect()
}

fn words<const N: usize>(words: [&str; N]) -> impl Iterator<Item = OsString> + use<N> {
    words.map(OsString::from).into_iter()
}

/// Parses the report of wrk.
fn parse_wrk(output: &str) -> Option<Counts> {
    let mut counts = Counts::default();
    let mut complete = false;
    for line in output.lines().map(str::trim) {
        if let Some((requests, rest)) = line.split_once(" requests in ") {
            counts.requests = requests.trim().parse().ok()?;
            counts.bytes = bytes(rest.split_once(", ")?.1.strip_suffix(" read")?)?;
            complete = true;
        } else if let Some(errors) = line.strip_prefix("Socket errors:") {
            counts.failures = numbers(errors).sum();
        } else if let Some(statuses) = line.strip_prefix("Non-2xx or 3xx responses:") {
            counts.bad_statuses = statuses.trim().parse().ok()?;
        }
    }
    complete.then_some(counts)
}

/// Parses a size as wrk prints it, such as `8.55MB`; rounds up, since wrk has rounded it.
fn bytes(size: &str) -> Option<u64> {
    let digits = size.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match &size[digits.len()..] {
        "B" => 1.0,
        "KB" => 1024.0,
        "MB" => 1024.0 * 1024.0,
        "GB" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    Some(((digits.parse::<f64>().ok()? + 0.005) * unit) as u64)
}

/// Parses the report of h2load.
fn parse_h2load(output: &str) -> Option<Counts> {
    let line = |label: &str| output.lines().find_map(|line| line.strip_prefix(label));
    // total, started, done, succeeded, failed, errored, timeout; those errored are among those failed
    let requests: Vec<u64> = numbers(line("requests:")?).collect();
    let statuses: Vec<u64> = numbers(line("status codes:")?).collect();
    let [_, _, done, _, failed, _, timed_out] = requests[..] else {
        return None;
    };
    let [_, _, client_errors, server_errors] = statuses[..] else {
        return None;
    };
    let bad_statuses = client_errors + server_errors;
    // A response with a bad status counts as failed there; here it is counted once.
    let failures = failed.saturating_sub(bad_statuses).max(timed_out);
    // The one figure in parentheses that is followed by "data", since headers are not bodies.
    let traffic = line("traffic:")?.strip_suffix(") data")?;
    let (_, bytes) = traffic.rsplit_once('(')?;
    Some(Counts {
        requests: done,
        bad_statuses,
        failures,
        bytes: bytes.parse().ok()?,
        ..Counts::default()
    })
}

/// Returns the leading number of every item in a list such as `10 total, 8 done, 5 2xx`.
fn numbers(list: &str) -> impl Iterator<Item = u64> {
    list.split(',').filter_map(|item| {
        item.split_ascii_whitespace()
            .find_map(|word| word.parse().ok())
    })
}

#[cfg(test)]
mod tests;
