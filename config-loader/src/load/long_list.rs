//! Kinds with a list of which a change usually touches few items: rules of a VirtualService, endpoints of a
//! ServiceEntry. A new version of such an object is assembled from unchanged items of its last version and the items
//! that were parsed.

use std::any::Any;
use std::sync::Arc;

use crate::resource::istio::{HttpRule, Resolution, ServiceEntry, VirtualService, WorkloadEntry};
use crate::resource::{AnyObject, Object, Spec};
use crate::validate::istio::all_reached;

/// Unchanged items of the last version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeptItems {
    /// Number of unchanged items at the start.
    pub(super) before: usize,
    /// Number of unchanged items at the end.
    pub(super) after: usize,
    /// Number of lines by which the items at the end moved down.
    pub(super) lines_moved: i64,
}

/// Kind with a long list in `spec`.
trait LongList: Spec + Clone {
    /// Field name of the list.
    const FIELD: &'static str;
    type Item;
    fn items(&self) -> &Vec<Arc<Self::Item>>;
    fn items_mut(&mut self) -> &mut Vec<Arc<Self::Item>>;
    /// Returns the same item on lines that are `by` further down.
    fn moved(item: &Self::Item, by: i64) -> Self::Item;
    /// Whether both versions agree in the fields that the validation of items depends on.
    fn allows_same_items(&self, other: &Self) -> bool;
    /// Whether the validation of the whole list finds no problem.
    fn items_fit_together(&self) -> bool;
}

impl LongList for VirtualService {
    const FIELD: &'static str = "http";
    type Item = HttpRule;

    fn items(&self) -> &Vec<Arc<HttpRule>> {
        &self.http
    }

    fn items_mut(&mut self) -> &mut Vec<Arc<HttpRule>> {
        &mut self.http
    }

    fn moved(item: &HttpRule, by: i64) -> HttpRule {
        item.moved(by)
    }

    fn allows_same_items(&self, other: &Self) -> bool {
        let hosts = self.hosts.iter().map(|host| &host.value);
        let gateways = self.gateways.iter().map(|gateway| &gateway.value);
        hosts.eq(other.hosts.iter().map(|host| &host.value))
            && gateways.eq(other.gateways.iter().map(|gateway| &gateway.value))
    }

    fn items_fit_together(&self) -> bool {
        all_reached(&self.http)
    }
}

impl LongList for ServiceEntry {
    const FIELD: &'static str = "endpoints";
    type Item = WorkloadEntry;

    fn items(&self) -> &Vec<Arc<WorkloadEntry>> {
        &self.endpoints
    }

    fn items_mut(&mut self) -> &mut Vec<Arc<WorkloadEntry>> {
        &mut self.endpoints
    }

    fn moved(item: &WorkloadEntry, by: i64) -> WorkloadEntry {
        item.moved(by)
    }

    fn allows_same_items(&self, other: &Self) -> bool {
        let names = self.ports.iter().map(|port| &port.name);
        self.resolution == other.resolution && names.eq(other.ports.iter().map(|port| &port.name))
    }

    fn items_fit_together(&self) -> bool {
        self.resolution != Resolution::DnsRoundRobin || self.endpoints.len() < 2
    }
}

/// Returns the field name of the long list, if the object's kind has one.
pub(super) fn field_of(object: &dyn AnyObject) -> Option<&'static str> {
    let field = of_kind::<VirtualService>(object).map(|_| VirtualService::FIELD);
    field.or_else(|| of_kind::<ServiceEntry>(object).map(|_| ServiceEntry::FIELD))
}

/// Assembles an object from `read`, which lacks the `kept` items, and the previous version. Sets the fingerprint.
/// Returns the object with its number of items; `None` if it must be parsed in full.
pub(super) fn join(
    before: &dyn AnyObject,
    read: &dyn AnyObject,
    kept: KeptItems,
    fingerprint: u64,
) -> Option<(Arc<dyn AnyObject>, usize)> {
    join_of::<VirtualService>(before, read, kept, fingerprint)
        .or_else(|| join_of::<ServiceEntry>(before, read, kept, fingerprint))
}

fn join_of<T: LongList>(
    before: &dyn AnyObject,
    read: &dyn AnyObject,
    kept: KeptItems,
    fingerprint: u64,
) -> Option<(Arc<dyn AnyObject>, usize)> {
    let (before, read) = (of_kind::<T>(before)?, of_kind::<T>(read)?);
    if before.id != read.id || !before.spec.allows_same_items(&read.spec) {
        return None;
    }
    let known = before.spec.items();
    let after = known.get(known.len().checked_sub(kept.after)?..)?;
    let mut items = Vec::with_capacity(kept.before + read.spec.items().len() + kept.after);
    items.extend_from_slice(known.get(..kept.before)?);
    items.extend_from_slice(read.spec.items());
    items.extend(after.iter().map(|item| match kept.lines_moved {
        0 => Arc::clone(item),
        by => Arc::new(T::moved(item, by)),
    }));
    let count = items.len();
    let mut whole = Object::clone(read);
    whole.fingerprint = fingerprint;
    let spec = Arc::make_mut(&mut whole.spec);
    *spec.items_mut() = items;
    spec.items_fit_together()
        .then(|| (Arc::new(whole) as Arc<dyn AnyObject>, count))
}

fn of_kind<T: Spec>(object: &dyn AnyObject) -> Option<&Object<T>> {
    let object: &dyn Any = object;
    object.downcast_ref()
}
