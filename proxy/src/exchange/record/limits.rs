//! Records of limits: which have counted a request, and whether its body was too large.

use std::rc::Rc;
use std::sync::Arc;

use super::Record;
use crate::exchange::downstream::body::{BODY_TOO_LARGE, BodyFault};
use crate::telemetry::Counter;
use traffic::limit::RouteLimits;

impl Record {
    /// Returns where the reason is stored why the body is refused: the same for all that refuse it.
    pub fn share_body_fault(&mut self) -> BodyFault {
        Rc::clone(self.body_fault.get_or_insert_default())
    }

    /// The reason why the body was refused, if it was.
    pub fn body_fault(&self) -> Option<&'static str> {
        self.body_fault.as_ref()?.get()
    }

    /// Records that limits have counted the request by what is known before it is authorized.
    pub fn record_counted(&mut self, limits: &Arc<RouteLimits>) {
        self.counted_by = Some(Arc::clone(limits));
    }

    /// Whether these limits have counted the request before it was authorized.
    pub fn was_counted_by(&self, limits: &Arc<RouteLimits>) -> bool {
        let before = self.counted_by.as_ref();
        before.is_some_and(|before| Arc::ptr_eq(before, limits))
    }

    /// Reports a body that was too large.
    pub(super) fn report_body(&mut self) {
        if self.body_fault() == Some(BODY_TOO_LARGE) {
            self.worker.count(Counter::BodiesTooLarge);
            self.details = BODY_TOO_LARGE.into();
        }
    }
}
