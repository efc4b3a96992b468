//! Merging of Services across clusters: one Service per name, from the first server that has it.
//!
//! Services with the same name in several clusters are the same service. The Service of the local cluster takes
//! precedence; without one, the Service of the first server in the order of `--control` is used.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::report::Change;
use crate::source::look::ObjectText;

/// Services of all servers, by namespace and name.
#[derive(Debug, Default)]
pub(in crate::source) struct RemoteServices {
    holders: BTreeMap<String, BTreeMap<usize, (Arc<str>, ObjectText)>>,
}

impl RemoteServices {
    /// Returns the changes of the merged Services after a change of the Service `id` on one server.
    pub(in crate::source) fn change(
        &mut self,
        number: usize,
        id: &str,
        change: Change,
    ) -> Vec<Change> {
        let holders = self.holders.entry(id.to_owned()).or_default();
        let before = holders
            .first_key_value()
            .map(|(number, (name, _))| (*number, Arc::clone(name)));
        let (name, text) = change;
        match text {
            Some(text) => _ = holders.insert(number, (name, text)),
            None => _ = holders.remove(&number),
        }
        let after = holders.first_key_value();
        let mut changes = Vec::new();
        if let Some((_, name)) = before
            .as_ref()
            .filter(|(before, _)| after.is_none_or(|(after, _)| after != before))
        {
            changes.push((Arc::clone(name), None));
        }
        if let Some((after, (name, text))) = after
            && (*after == number || before.is_none_or(|(before, _)| before != *after))
        {
            changes.push((Arc::clone(name), Some(text.clone())));
        }
        if holders.is_empty() {
            self.holders.remove(id);
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_server_says_what_a_service_is() {
        let mut services = RemoteServices::default();
        let name = |number: usize| Arc::<str>::from(format!("k{number}"));
        let text = |number: usize, text: &str| (name(number), Some(text.to_owned().into()));
        let gone = |number: usize| (name(number), None);
        for (number, change, expected) in [
            (1, text(1, "a"), vec![text(1, "a")]),
            (2, text(2, "b"), vec![]),
            (0, text(0, "c"), vec![gone(1), text(0, "c")]),
            (1, text(1, "d"), vec![]),
            (0, text(0, "e"), vec![text(0, "e")]),
            (0, gone(0), vec![gone(0), text(1, "d")]),
            (2, gone(2), vec![]),
            (1, gone(1), vec![gone(1)]),
        ] {
            let found = services.change(number, "default/web", change.clone());
            assert_eq!(found, expected, "{number} {change:?}");
        }
        assert!(services.holders.is_empty());
    }
}
