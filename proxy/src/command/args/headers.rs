//! Arguments about headers that the proxy adds.

use clap::{Args, ValueEnum};

use crate::exchange::settings::OmittedHeaders;

/// Headers that the proxy adds to requests and responses.
#[derive(Clone, Debug, Args)]
pub struct HeaderArgs {
    /// Add x-forwarded-port to requests: the port that the client dialed
    #[arg(long, env = "STRAIT_FORWARDED_PORT")]
    pub forwarded_port: bool,
    /// Headers that are not added to requests and responses
    #[arg(
        long,
        value_name = "LIST",
        value_enum,
        env = "STRAIT_OMIT_HEADERS",
        value_delimiter = ','
    )]
    pub omit_headers: Vec<OmittedHeaderArg>,
}

/// `--omit-headers`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OmittedHeaderArg {
    /// x-envoy-attempt-count
    AttemptCount,
    /// Headers with times: x-envoy-upstream-service-time and x-envoy-expected-rq-timeout-ms
    Debug,
    /// x-request-id, unless the client sent one; sampling then draws from the trace id
    RequestId,
}

impl HeaderArgs {
    /// Returns the headers that are not added.
    pub fn omitted(&self) -> OmittedHeaders {
        let has = |header| self.omit_headers.contains(&header);
        OmittedHeaders {
            attempt_count: has(OmittedHeaderArg::AttemptCount),
            debug: has(OmittedHeaderArg::Debug),
            request_id: has(OmittedHeaderArg::RequestId),
        }
    }
}
