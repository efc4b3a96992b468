//! Arguments about connections of clients.

use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::codec::check::Underscores;
use crate::codec::{self, http1, http2};
use crate::runtime::duration::duration;

/// Limits and timeouts of connections of clients.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Connections of clients")]
pub struct ConnectionArgs {
    /// Maximum number of open connections, if the limit of open files permits it; further ones are closed at once
    #[arg(
        long,
        value_name = "N",
        default_value_t = 65_536,
        env = "STRAIT_MAX_CONNECTIONS",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub max_connections: u32,
    /// Maximum number of open connections of one listener; further ones are closed at once [default: no limit]
    #[arg(
        long,
        value_name = "N",
        env = "STRAIT_LISTENER_MAX_CONNECTIONS",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub listener_max_connections: Option<u32>,
    /// Time without requests after which a connection is closed; 0s for no limit
    #[arg(long, value_name = "DURATION", default_value = "1h", env = "STRAIT_HTTP_IDLE_TIMEOUT", value_parser = duration)]
    pub http_idle_timeout: Duration,
    /// Time after which a connection takes no further request [default: no limit]
    #[arg(long, value_name = "DURATION", env = "STRAIT_HTTP_MAX_CONNECTION_DURATION", value_parser = duration)]
    pub http_max_connection_duration: Option<Duration>,
    /// Maximum time from the end of a request to the end of its response, also where a rule has a longer timeout or none
    /// [default: no limit]
    #[arg(long, value_name = "DURATION", env = "STRAIT_HTTP_MAX_STREAM_DURATION", value_parser = duration)]
    pub http_max_stream_duration: Option<Duration>,
    /// Maximum time from the head of a request that is forwarded to the end of its body; after it, 408 unless a response has
    /// begun [default: no limit]
    #[arg(long, value_name = "DURATION", env = "STRAIT_HTTP_REQUEST_TIMEOUT", value_parser = duration)]
    pub http_request_timeout: Option<Duration>,
    /// Time for the head of a request; 0s for no limit
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "10s",
        env = "STRAIT_HTTP_REQUEST_HEADERS_TIMEOUT",
        value_parser = duration
    )]
    pub http_request_headers_timeout: Duration,
    /// Time without progress while a client does not send its request body (HTTP/1) or does not read its response; 0s for no
    /// limit
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "5m",
        env = "STRAIT_HTTP_STREAM_IDLE_TIMEOUT",
        value_parser = duration
    )]
    pub http_stream_idle_timeout: Duration,
    /// Maximum number of open streams per connection, HTTP/2
    #[arg(
        long,
        value_name = "N",
        default_value_t = 128,
        env = "STRAIT_HTTP2_MAX_CONCURRENT_STREAMS",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(i32::MAX))
    )]
    pub http2_max_concurrent_streams: u32,
    /// Receive window of a stream, HTTP/2
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = 256 * 1024,
        env = "STRAIT_HTTP2_STREAM_WINDOW",
        value_parser = clap::value_parser!(u32).range(65_535..=i64::from(i32::MAX))
    )]
    pub http2_stream_window: u32,
    /// Receive window of a connection, HTTP/2
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = 1024 * 1024,
        env = "STRAIT_HTTP2_CONNECTION_WINDOW",
        value_parser = clap::value_parser!(u32).range(65_535..=i64::from(i32::MAX))
    )]
    pub http2_connection_window: u32,
    /// Headers of requests with underscores in their names, which some servers take for dashes
    #[arg(long, value_enum, default_value_t = UnderscoresArg::Allow, env = "STRAIT_HEADER_UNDERSCORES")]
    pub header_underscores: UnderscoresArg,
}

/// `--header-underscores`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum UnderscoresArg {
    /// They are as any other
    Allow,
    /// They are removed
    Drop,
    /// The request is refused with 400
    Reject,
}

impl ConnectionArgs {
    /// Maximum number of connections of one listener.
    pub fn listener_connections_max(&self) -> usize {
        let max = self.listener_max_connections.map(usize::try_from);
        max.and_then(Result::ok).unwrap_or(usize::MAX)
    }

    /// Puts the limits and timeouts into the settings of connections.
    pub fn apply(&self, settings: codec::Settings) -> codec::Settings {
        let idle = limit(self.http_stream_idle_timeout);
        codec::Settings {
            http1: http1::Settings {
                head_timeout: limit(self.http_request_headers_timeout),
                body_timeout: idle,
                ..settings.http1
            },
            http2: http2::Settings {
                concurrent_streams_max: self.http2_max_concurrent_streams,
                stream_window_bytes: self.http2_stream_window,
                connection_window_bytes: self.http2_connection_window,
                stall_timeout: idle,
                ..settings.http2
            },
            timeouts: codec::Timeouts {
                idle: limit(self.http_idle_timeout),
                duration_max: self.http_max_connection_duration.map(limit),
                ..settings.timeouts
            },
            underscores: match self.header_underscores {
                UnderscoresArg::Allow => Underscores::Allow,
                UnderscoresArg::Drop => Underscores::Drop,
                UnderscoresArg::Reject => Underscores::Reject,
            },
            ..settings
        }
    }
}

/// A time limit; 0 is none.
fn limit(time: Duration) -> Duration {
    match time.is_zero() {
        true => Duration::MAX,
        false => time,
    }
}
