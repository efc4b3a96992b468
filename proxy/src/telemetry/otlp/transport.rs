//! Ways to a collector.

use std::pin::Pin;
use std::rc::Rc;

use super::batch::OtlpMessage;
use super::response::Outcome;

/// Way to a collector; stays on the thread of the exporter.
pub trait Transport {
    /// Sends a message of OTLP and returns its outcome.
    fn export(self: Rc<Self>, message: OtlpMessage) -> Pin<Box<dyn Future<Output = Outcome>>>;
}

/// Makes the way on the thread of the exporter.
pub type MakeTransport = Box<dyn FnOnce() -> Rc<dyn Transport> + Send>;
