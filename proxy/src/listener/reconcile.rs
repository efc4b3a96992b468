//! Opens and closes listeners to match the published configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::ListenerContext;
use super::acceptor::Acceptor;
use crate::codec::Handler;
use crate::runtime::drain::{self, Stage};
use crate::snapshot::{Direction, ListenerKey};

/// Wanted listeners, as control publishes them; sent after their snapshot is in effect.
pub type Wanted = watch::Receiver<Arc<BTreeSet<ListenerKey>>>;

/// First pause before a failed bind is retried; doubles up to [`RETRY_MAX`].
const RETRY_MIN: Duration = Duration::from_millis(250);

/// Maximum pause between two attempts.
const RETRY_MAX: Duration = Duration::from_secs(5);

/// Changes that turn the open listeners into the wanted ones.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Listeners to open.
    pub open: Vec<ListenerKey>,
    /// Listeners to close.
    pub close: Vec<ListenerKey>,
}

/// Compares the open listeners with the wanted ones. Listeners in both stay untouched.
pub fn plan<H>(have: &BTreeMap<ListenerKey, H>, want: &BTreeSet<ListenerKey>) -> Plan {
    let missing = want.iter().filter(|key| !have.contains_key(key));
    let surplus = have.keys().filter(|key| !want.contains(*key));
    Plan {
        open: missing.cloned().collect(),
        close: surplus.cloned().collect(),
    }
}

/// State of a wanted listener.
enum Listener {
    Failed { pause: Duration, again: Instant },
    Open(Vec<Acceptor>),
}

/// Keeps the listeners in `wanted` open, and enforces changed policies and TLS on their connections, until a drain begins;
/// then closes them all. From [`Stage::Announcing`] on, their clients are asked to reconnect. Inbound listeners close
/// before the others, at [`Stage::DrainingInbound`].
///
/// Returns when queued connections are accepted and the sockets are closed.
pub async fn run<A: Handler>(
    context: Rc<ListenerContext<A>>,
    mut wanted: Wanted,
    drain: drain::Watch,
) {
    let mut listeners = BTreeMap::new();
    loop {
        let stage = drain.stage();
        if stage >= Stage::Draining {
            break;
        }
        let keys = Arc::clone(&wanted.borrow_and_update());
        let keys = match stage >= Stage::DrainingInbound {
            true => Arc::new(without(&context, Direction::Inbound, &keys)),
            false => keys,
        };
        if stage == Stage::WorkloadGone {
            context.codec.end_idle();
        }
        // Dropped acceptors stop by themselves.
        drop(fit(&context, &mut listeners, &keys));
        context.codec.enforce_policies();
        context.codec.enforce_client_certificates(keys.iter());
        if stage >= Stage::Announcing {
            let told = without(&context, Direction::Outbound, &keys);
            told.iter()
                .for_each(|key| context.codec.announce_listener(key));
        }
        let again = retry_at(&listeners);
        tokio::select! {
            changed = wanted.changed() => if changed.is_err() {
                // Control has ended, which happens only at the end of the process.
                drain.soft().await;
                break;
            },
            () = drain.beyond(stage) => {}
            () = sleep_until(again) => retry(&context, &mut listeners),
        }
    }
    let acceptors = fit(&context, &mut listeners, &BTreeSet::new());
    acceptors.iter().for_each(Acceptor::stop);
    for acceptor in acceptors {
        acceptor.stopped().await;
    }
}

/// Returns the wanted listeners of other directions than this one.
fn without<A: Handler>(
    context: &ListenerContext<A>,
    direction: Direction,
    wanted: &BTreeSet<ListenerKey>,
) -> BTreeSet<ListenerKey> {
    let is_of = |key: &ListenerKey| context.codec.direction(key) == Some(direction);
    let others = wanted.iter().filter(|key| !is_of(key));
    others.cloned().collect()
}

/// Opens missing listeners; removes and returns those no longer wanted.
fn fit<A: Handler>(
    context: &Rc<ListenerContext<A>>,
    listeners: &mut BTreeMap<ListenerKey, Listener>,
    wanted: &BTreeSet<ListenerKey>,
) -> Vec<Acceptor> {
    let plan = plan(listeners, wanted);
    let mut surplus = Vec::new();
    for key in plan.close {
        context.status_table.closing(context.worker, &key);
        if let Some(Listener::Open(acceptors)) = listeners.remove(&key) {
            surplus.extend(acceptors);
        }
        context.codec.drain_listener(&key);
    }
    for key in plan.open {
        context.codec.open_listener(&key);
        let listener = open(context, &key, RETRY_MIN);
        listeners.insert(key, listener);
    }
    surplus
}

fn retry<A: Handler>(
    context: &Rc<ListenerContext<A>>,
    listeners: &mut BTreeMap<ListenerKey, Listener>,
) {
    let now = Instant::now();
    for (key, listener) in listeners {
        match listener {
            Listener::Failed { pause, again } if *again <= now => {
                let next = (*pause * 2).min(RETRY_MAX);
                *listener = open(context, key, next);
            }
            Listener::Failed { .. } | Listener::Open(_) => {}
        }
    }
}

fn open<A: Handler>(
    context: &Rc<ListenerContext<A>>,
    key: &ListenerKey,
    pause: Duration,
) -> Listener {
    let socket = context
        .status_table
        .open(context.worker, key, context.settings.backlog);
    let start = |socket| Acceptor::start(context, key.clone(), socket);
    let acceptors = socket.map(|sockets| sockets.into_iter().map(start).collect());
    match acceptors {
        Some(Ok(acceptors)) => Listener::Open(acceptors),
        Some(Err(_)) | None => Listener::Failed {
            pause,
            again: Instant::now() + pause,
        },
    }
}

fn retry_at(listeners: &BTreeMap<ListenerKey, Listener>) -> Option<Instant> {
    let failed = listeners.values().filter_map(|listener| match listener {
        Listener::Failed { again, .. } => Some(*again),
        Listener::Open(_) => None,
    });
    failed.min()
}

async fn sleep_until(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    fn keys(ports: &[u16]) -> Vec<ListenerKey> {
        let key = |port: &u16| ListenerKey::from(SocketAddr::from(([127, 0, 0, 1], *port)));
        ports.iter().map(key).collect()
    }

    #[test]
    fn plan_has_only_changed_listeners() {
        for (have, want, open, close) in [
            (&[][..], &[][..], &[][..], &[][..]),
            (&[], &[80, 81], &[80, 81], &[]),
            (&[80, 81], &[81, 82], &[82], &[80]),
            (&[80], &[], &[], &[80]),
            (&[80], &[80], &[], &[]),
        ] {
            let expected = Plan {
                open: keys(open),
                close: keys(close),
            };
            let have = keys(have).into_iter().map(|key| (key, ())).collect();
            let want = keys(want).into_iter().collect();
            assert_eq!(plan(&have, &want), expected);
        }
    }
}
