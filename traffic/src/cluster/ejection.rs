//! Ejects and unejects endpoints of a cluster, and records it in the journal. The caller holds the lock by which
//! ejections take turns.

use std::sync::atomic::Ordering;

use super::outlier::{OutlierPolicy, Verdict};
use super::{Cluster, PickTables};
use crate::balance::EndpointIdx;
use crate::registry::{EventKind, Moment, exclusion};

/// Ejects an endpoint that has failed often enough, if `maxEjectionPercent` allows it.
pub(super) fn decide(
    cluster: &Cluster,
    policy: &OutlierPolicy,
    endpoint: EndpointIdx,
    verdict: Verdict,
    now: Moment,
) {
    let state = &cluster.state;
    let health = &cluster.endpoint(endpoint).state.health;
    if health.is_ejected() {
        return;
    }
    let (out, others) = count_ejected(cluster, endpoint);
    // a pool may eject its last endpoint, since other clusters can serve: a single gateway must not keep its cluster in
    // use
    let others = others || cluster.is_pool;
    let all = cluster.endpoints().len() as u32;
    let address = &*cluster.endpoint(endpoint).address.to_string();
    let note = |what| state.journal.record(now, &state.name, Some(address), what);
    if !policy.allows(out, all, others) {
        health.forget_errors();
        if !state
            .ejections
            .overflow_reported
            .swap(true, Ordering::AcqRel)
        {
            let (cause, out) = (verdict.cause, (out, all));
            note(EventKind::EjectionOverflow { cause, out });
            state.journal.ring();
        }
        return;
    }
    if let Some(time) = policy.eject(health, now) {
        health.set_cause(verdict.cause);
        note(EventKind::Ejected {
            cause: verdict.cause,
            errors: verdict.errors,
            unanswered: verdict.unanswered,
            time,
            out: (out + 1, all),
        });
        state.ejections.stale.store(true, Ordering::Release);
        state.journal.ring();
    }
}

/// Number of ejected endpoints, and whether an endpoint other than `endpoint` is usable.
fn count_ejected(cluster: &Cluster, endpoint: EndpointIdx) -> (u32, bool) {
    let mut out = 0;
    let mut others = false;
    for (number, other) in cluster.endpoints().iter().enumerate() {
        let health = &other.state.health;
        out += u32::from(health.is_ejected());
        others |= number != endpoint.0 as usize && health.is_usable();
    }
    (out, others)
}

/// Unejects endpoints whose ejection time is over.
pub(super) fn sweep(cluster: &Cluster, policy: &OutlierPolicy, now: Moment) {
    let state = &cluster.state;
    state
        .ejections
        .overflow_reported
        .store(false, Ordering::Release);
    for endpoint in cluster.endpoints() {
        if let Some(out_for) = policy.sweep(&endpoint.state.health, now) {
            let address = &*endpoint.address.to_string();
            let what = EventKind::Unejected { out_for };
            state.journal.record(now, &state.name, Some(address), what);
            state.ejections.stale.store(true, Ordering::Release);
        }
    }
}

/// Unejects all endpoints.
pub(super) fn uneject_all(cluster: &Cluster, now: Moment) {
    let state = &cluster.state;
    for endpoint in cluster.endpoints() {
        let health = &endpoint.state.health;
        let out_for = now.since(health.ejected_at());
        if health.admit(exclusion::EJECTED, now) {
            health.forget_errors();
            health.set_multiplier(0);
            let address = &*endpoint.address.to_string();
            let what = EventKind::Unejected { out_for };
            state.journal.record(now, &state.name, Some(address), what);
        }
    }
}

/// Records changes of the priorities' loads and of their panic mode. The panic mode of pools is left out: only all
/// pools together determine it.
pub(super) fn note_load_changes(
    cluster: &Cluster,
    before: &PickTables,
    live: &PickTables,
    now: Moment,
) {
    let state = &cluster.state;
    let note = |what| state.journal.record(now, &state.name, None, what);
    let loads = |live: &PickTables| live.shares.iter().map(|share| share.load).collect();
    let pairs = before.shares.iter().zip(&live.shares).zip(&live.health);
    for (priority, ((before, share), health)) in pairs.enumerate() {
        let priority = priority as u8;
        let healthy = (health.healthy, health.total);
        match (before.panic, share.panic) {
            (false, true) => note(EventKind::PanicModeEntered { priority, healthy }),
            (true, false) => note(EventKind::PanicModeLeft { priority, healthy }),
            _ => {}
        }
    }
    let (was, is): (Box<[u8]>, Box<[u8]>) = (loads(before), loads(live));
    if was != is {
        note(EventKind::PriorityLoadChanged { loads: (was, is) });
    }
}
