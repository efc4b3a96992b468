//! The bounds of a list: how many objects it may have, and how long it may take.

use std::time::Duration;

use kube::api::DynamicObject;
use kube::runtime::watcher::Event;
use tokio::time::Instant;

/// Objects that a resource may have. A list that is longer is taken for one without an end.
const OBJECTS_MAX: usize = if cfg!(test) { 2_000 } else { 200_000 };

/// Longest time of a list.
const LIST_TIME_MAX: Duration = Duration::from_secs(300);

/// A list that comes in.
pub(super) struct Listing {
    pub(super) is_begun: bool,
    pub(super) deadline: Instant,
    objects: usize,
}

impl Default for Listing {
    fn default() -> Listing {
        Listing {
            is_begun: false,
            deadline: Instant::now(),
            objects: 0,
        }
    }
}

impl Listing {
    /// Notes an event. Returns whether the list has more objects than are read.
    pub(super) fn is_too_long(&mut self, event: &Event<DynamicObject>) -> bool {
        match event {
            Event::Init => {
                *self = Listing {
                    is_begun: true,
                    deadline: Instant::now() + LIST_TIME_MAX,
                    objects: 0,
                }
            }
            Event::InitApply(_) => self.objects += 1,
            Event::InitDone | Event::Apply(_) | Event::Delete(_) => self.is_begun = false,
        }
        self.objects > OBJECTS_MAX
    }
}
