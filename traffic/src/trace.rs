//! Trace contexts: reading and writing their headers, sampling, and the settings of tracing; pure.

pub mod context;
pub mod headers;
pub mod sampling;
pub mod settings;

pub use context::{DecidedBy, TraceContext};
pub use headers::{Incoming, read};
pub use sampling::{Request, RequestId, decide};
pub use settings::{
    AttributeNames, CustomTag, Keep, Percent, Propagator, Propagators, Sampler, SpanForm,
    SpanNames, TagSource, TracingSettings,
};
