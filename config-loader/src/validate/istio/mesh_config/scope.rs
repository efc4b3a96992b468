//! Scope of resources: `default*ExportTo`, `discoverySelectors` and `serviceSettings`.

use std::sync::Arc;

use kube::core::{Expression, Selector};

use crate::diagnostic::codes::istio::{MC008, MC101};
use crate::raw::istio::{MeshConfig as Raw, NamespaceSelector, ServiceSettings};
use crate::raw::{Field, Map};
use crate::resource::{DefaultExport, DefaultExports};
use crate::validate::istio::shared;
use crate::validate::{Check, scalar};

/// Returns the namespaces that may use resources without `exportTo`.
pub(super) fn exports(raw: &Raw, check: &mut Check<'_>) -> DefaultExports {
    DefaultExports {
        destination_rules: export(&raw.default_destination_rule_export_to, check),
        services: export(&raw.default_service_export_to, check),
        virtual_services: export(&raw.default_virtual_service_export_to, check),
    }
}

fn export(field: &Field<Vec<Field<String>>>, check: &mut Check<'_>) -> DefaultExport {
    let texts = shared::texts(field, check);
    match texts.iter().map(|text| &**text).collect::<Vec<_>>()[..] {
        [] | ["*"] => DefaultExport::All,
        ["."] => DefaultExport::Own,
        ["~"] => DefaultExport::NoNamespace,
        _ => {
            let found = check.warning(MC101, field.span(), "this list has no effect");
            found
                .help("write `*`, `.` or `~` alone; resources name other namespaces by `exportTo`");
            DefaultExport::All
        }
    }
}

/// Returns the selectors of namespaces.
pub(super) fn namespaces(
    field: &Field<Vec<Field<NamespaceSelector>>>,
    check: &mut Check<'_>,
) -> Vec<Selector> {
    let mut selectors = Vec::new();
    for (_, raw) in scalar::items(field, check) {
        let labels = raw.match_labels.get().into_iter().flat_map(Map::iter);
        let labels = labels.map(|(key, _, value)| {
            Expression::Equal(key.to_owned(), value.get().cloned().unwrap_or_default())
        });
        let mut all: Vec<Expression> = labels.collect();
        for (entry, raw) in scalar::items(&raw.match_expressions, check) {
            let key = raw.key.get().cloned().unwrap_or_default();
            let values = shared::texts(&raw.values, check);
            let values = values.iter().map(ToString::to_string).collect();
            let is_list = shared::text(&raw.operator).is_some_and(|one| one.ends_with("In"));
            match shared::text(&raw.operator) {
                _ if key.is_empty() || is_list == shared::list(&raw.values).is_none() => {
                    let message =
                        "the condition has no key, or values that do not fit its operator";
                    let found = check.error(MC008, entry.span(), message);
                    found.help("write `{key: KEY, operator: In, values: [VALUE]}`, or `Exists` without values");
                }
                Some("In") => all.push(Expression::In(key, values)),
                Some("NotIn") => all.push(Expression::NotIn(key, values)),
                Some("Exists") => all.push(Expression::Exists(key)),
                Some("DoesNotExist") => all.push(Expression::DoesNotExist(key)),
                other => {
                    let message = format!("`{}` is no operator", other.unwrap_or_default());
                    let found = check.error(MC008, entry.span(), message);
                    found.help("write `In`, `NotIn`, `Exists` or `DoesNotExist`");
                }
            }
        }
        selectors.push(all.into_iter().collect());
    }
    selectors
}

/// Returns hosts and wildcards, and whether the local cluster alone serves them.
pub(super) fn cluster_local(
    field: &Field<Vec<Field<ServiceSettings>>>,
    check: &mut Check<'_>,
) -> Vec<(Arc<str>, bool)> {
    let mut hosts = Vec::new();
    for (_, raw) in scalar::items(field, check) {
        let settings = raw.settings.get();
        let is_local = settings.is_some_and(|settings| shared::flag(&settings.cluster_local));
        let named = shared::texts(&raw.hosts, check);
        hosts.extend(named.into_iter().map(|host| (host, is_local)));
    }
    hosts
}
