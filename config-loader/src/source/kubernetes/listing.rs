//! Limits of a list: number of objects and duration.

use std::time::Duration;

use kube::api::DynamicObject;
use kube::runtime::watcher::Event;
use tokio::time::Instant;

/// Largest number of objects of a resource. A longer list is treated as endless.
const OBJECTS_MAX: usize = if cfg!(test) { 2_000 } else { 200_000 };

/// Longest duration of a list.
const LIST_TIME_MAX: Duration = Duration::from_secs(300);

/// List that is being received.
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
    /// Records an event. Returns whether the list exceeds the maximum number of objects.
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
