//! Actions of a rule on a request and its response; pure values.
//!
//! A filter never sends anything: it edits headers in place or returns a value (a new path, a `Location`, a reply, a
//! timeout) that `exchange` applies, in the order that [`RouteFilters`] documents. Addresses and times for header
//! values come from a [`TemplateContext`]. Holds no lock, clock or global.

pub mod chain;
pub mod cors;
pub mod direct_response;
pub mod fault;
pub mod grpc_web;
pub mod headers;
pub mod hop_by_hop;
pub mod mirror;
pub mod redirect;
pub mod retry;
pub mod rewrite;
pub mod template;
pub mod timeout;

pub use chain::{Action, DestinationFilters, Early, HeaderScopes, RouteFilters};
pub use cors::{Cors, CorsVerdict, Preflights};
pub use direct_response::DirectResponse;
pub use fault::{Abort, Fault, FaultPlan};
pub use headers::{HeaderEdit, HeaderError, HeaderOps, HeaderScope, RequestHeaderOps};
pub use mirror::{Draws, Mirrors};
pub use redirect::{PathChange, Redirect, RedirectPort, RedirectRequest, Scheme};
pub use retry::RetryPolicy;
pub use rewrite::{MatchedUri, PathRewrite};
pub use template::{
    CompileRegex, Expression, ExpressionError, Finished, LogFormat, LogFormatError, LogValue,
    Needs, Node, Template, TemplateContext, TemplateError, TlsContext, http_version, uuid,
};
