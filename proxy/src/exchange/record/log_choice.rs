//! Choice of the access log for a request or a connection.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use crate::exchange::worker::{SnapshotRef, Worker};
use crate::snapshot::{Direction, ListenerKey, Snapshot, TagFormats};
use crate::telemetry::{LogPlan, RequestTags};

/// Access log of a request or a connection.
#[derive(Clone, Debug)]
pub enum LogChoice {
    /// Log of the flags, in a fixed format.
    Fixed,
    /// Formats of the user, what resources say, or metrics with values of the traffic.
    Planned(Box<ChosenPlan>),
}

/// Plan, held by its snapshot.
#[derive(Clone, Debug)]
pub struct ChosenPlan {
    snapshot: SnapshotRef,
    /// Direction of the traffic, if a listener has it.
    direction: Option<Direction>,
    lines: Lines,
}

/// Lines of a request or a connection.
#[derive(Clone, Debug)]
enum Lines {
    /// Log of the flags, in a fixed format.
    Fixed,
    None,
    /// Log of the flags, in a format of the user.
    OfFlags(Arc<LogPlan>),
    /// Log by resources.
    OfResources,
}

impl LogChoice {
    /// Chooses the log for traffic to `local` that was accepted on `key`; `None` if there is none, and neither labels of metrics
    /// nor tags of spans have values of the traffic.
    pub fn of(
        worker: &Worker,
        snapshot: &SnapshotRef,
        key: &ListenerKey,
        local: SocketAddr,
    ) -> Option<Self> {
        let direction = snapshot.logged_direction(key, local);
        let of_resources = direction.and_then(|one| snapshot.logging.as_ref()?.of(one));
        let lines = match (of_resources, worker.access_log.plan()) {
            (Some(plan), _) if plan.is_off() => Lines::None,
            (Some(_), _) => Lines::OfResources,
            (None, _) if worker.access_log.is_on() => Lines::Fixed,
            (None, Some(own)) => Lines::OfFlags(Arc::clone(own)),
            (None, None) => Lines::None,
        };
        let has_tags = direction.is_some_and(|one| {
            snapshot.request_tags(one).is_some() || snapshot.tag_formats(one).is_some()
        });
        match lines {
            Lines::Fixed if !has_tags => return Some(Self::Fixed),
            Lines::None if !has_tags => return None,
            _ => {}
        }
        let direction = direction.or_else(|| Some(snapshot.listener(key, local)?.direction));
        Some(Self::Planned(Box::new(ChosenPlan {
            snapshot: Rc::clone(snapshot),
            direction,
            lines,
        })))
    }
}

impl ChosenPlan {
    /// The plan; `None` without one, and for a fixed format.
    pub fn plan(&self) -> Option<&LogPlan> {
        match &self.lines {
            Lines::Fixed | Lines::None => None,
            Lines::OfFlags(own) => Some(own),
            Lines::OfResources => {
                let logging = self.snapshot.logging.as_ref()?;
                logging.of(self.direction?).map(|plan| &**plan)
            }
        }
    }

    /// Whether there is a line in the fixed format of the flags.
    pub fn is_fixed(&self) -> bool {
        matches!(self.lines, Lines::Fixed)
    }

    /// Labels of metrics with values of the traffic, if there are any.
    pub fn tags(&self) -> Option<&Arc<RequestTags>> {
        self.snapshot.request_tags(self.direction?)
    }

    /// Custom tags with operators of spans, if there are any.
    pub fn tag_formats(&self) -> Option<&TagFormats> {
        self.snapshot.tag_formats(self.direction?)
    }

    /// Snapshot that the plan is of.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Whether the traffic is inbound.
    pub fn is_inbound(&self) -> bool {
        self.direction == Some(Direction::Inbound)
    }
}
