//! ReferenceGrant.

use super::reference::{group, kind, namespace};
use super::shared::{NAME_MAX, entries, limit_text, required_text};
use crate::raw::gateway_api as raw;
use crate::resource::gateway_api::{GrantFrom, GrantTo, ReferenceGrant};
use crate::validate::Check;

/// Entries of each list.
const ENTRIES_MAX: usize = 16;

/// Checks a ReferenceGrant.
pub fn reference_grant(raw: &raw::ReferenceGrant, check: &mut Check<'_>) -> ReferenceGrant {
    let body = check.body();
    let mut grant = ReferenceGrant::default();
    for (entry, raw) in entries(&raw.from, "from", body, 1..=ENTRIES_MAX, check) {
        let group = group(&raw.group, None, entry.span(), check);
        let kind = kind(&raw.kind, entry.span(), check);
        let namespace = namespace(&raw.namespace, entry.span(), check);
        if let (Some(group), Some(kind), Some(namespace)) = (group, kind, namespace) {
            grant.from.push(GrantFrom {
                group,
                kind,
                namespace,
            });
        }
    }
    for (entry, raw) in entries(&raw.to, "to", body, 1..=ENTRIES_MAX, check) {
        let group = group(&raw.group, None, entry.span(), check);
        let kind = kind(&raw.kind, entry.span(), check);
        if let (Some(group), Some(kind)) = (group, kind) {
            limit_text(&raw.name, NAME_MAX, check);
            let name = match raw.name.is_set() {
                true => required_text(&raw.name, entry.span(), "name", check),
                false => None,
            };
            grant.to.push(GrantTo { group, kind, name });
        }
    }
    grant
}
