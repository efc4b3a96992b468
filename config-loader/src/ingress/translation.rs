//! Translation of a set.

use std::collections::BTreeMap;

use super::entries::Entries;
use super::objects::{Objects, Translation};
use super::{classes, listeners, policies, routes};
use crate::options::IngressSettings;
use crate::resource::ResourceSet;

/// Translates the Ingresses of a set that are served.
pub fn translate(set: &ResourceSet, settings: &IngressSettings) -> Translation {
    let mut out = Translation::default();
    let mut served = classes::served(set, settings, &mut out.findings);
    let listeners = listeners::collect(set, settings, &served, &mut out);
    listeners.close_unverified(&mut served);
    let entries = Entries::collect(set, settings, &served, &mut out);
    let mut objects = Objects {
        set,
        settings,
        made: BTreeMap::new(),
    };
    listeners.write(&served, &mut objects);
    routes::write(&served, &entries, &listeners, &mut objects, &mut out);
    policies::write(&served, &entries, &mut objects, &mut out);
    out.objects = objects.made.into_values().collect();
    for (one, served) in served.iter().map(|one| (&one.object, one)) {
        let name = one.id.to_name();
        let outcomes = out.outcomes.entry(name).or_default();
        outcomes.extend(served.nginx.outcomes.iter().cloned());
        let found = served.nginx.outcomes.iter();
        out.findings
            .extend(found.filter_map(|outcome| outcome.finding(one)));
    }
    out
}
