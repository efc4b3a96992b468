//! WorkloadEntries by selector. The selections are updated by changes, so that the cost of an update is that of the
//! change.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use config_loader::ResourceSet;
use config_loader::catalog::{Changes, Read, View, differences};
use config_loader::resource::istio::{EndpointAddress, WorkloadEntry};
use config_loader::resource::{Line, Object, Objects, SharedMap, Spec};

use crate::compile::service::workload::Facts;
use crate::compile::service::workload::Workload;
use crate::compile::service::workload_entry::{facts, host, in_namespace, is_selected};

/// Maximum number of selected workloads that are searched for equal facts.
const ALIKE_MAX: usize = 16;

/// Selector with the namespace in which it selects.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Selector {
    namespace: Arc<str>,
    labels: BTreeMap<String, String>,
}

impl Selector {
    fn text(&self) -> String {
        format!("{:?}", self.labels)
    }
}

/// Name of this index in recorded reads.
const INDEX: &str = "WorkloadEntries of a selector";

/// Selections of the WorkloadEntries of the last update, by selector.
#[derive(Debug, Default)]
pub(in crate::compile) struct Selections {
    entries: Objects<WorkloadEntry>,
    by_selector: HashMap<Selector, Arc<Selection>>,
}

impl Selections {
    /// Applies a change of the WorkloadEntries, and adds the changed selections to `changes`.
    pub(in crate::compile) fn update(
        &mut self,
        before: &ResourceSet,
        now: &ResourceSet,
        changes: &mut Changes,
    ) {
        // drop selections that no service uses any more
        self.by_selector
            .retain(|_, selection| Arc::strong_count(selection) > 1);
        self.entries = WorkloadEntry::objects(now).clone();
        for (gone, came) in differences(WorkloadEntry::objects(before), &self.entries) {
            let object = gone.or(came);
            let namespace = object.map(|object| &object.id.namespace);
            for (selector, selection) in &mut self.by_selector {
                if Some(&selector.namespace) != namespace {
                    continue;
                }
                let takes =
                    |object: &&Arc<Object<WorkloadEntry>>| is_selected(object, &selector.labels);
                let changed = match (gone.filter(takes), came.filter(takes)) {
                    (None, None) => continue,
                    (_, Some(came)) => {
                        Arc::make_mut(selection).insert(came);
                        came
                    }
                    (Some(gone), None) => {
                        Arc::make_mut(selection).remove(&gone.id.name);
                        gone
                    }
                };
                let labels = selector.text();
                let read = Read::Index(INDEX, &selector.namespace, &labels);
                changes.add(read, &changed.id.to_string().into());
            }
        }
    }

    /// Returns the WorkloadEntries that a selector matches.
    pub(in crate::compile) fn of(
        &mut self,
        view: View<'_>,
        namespace: &Arc<str>,
        labels: &BTreeMap<String, String>,
    ) -> Arc<Selection> {
        let selector = Selector {
            namespace: Arc::clone(namespace),
            labels: labels.clone(),
        };
        let text = selector.text();
        let selection = self.by_selector.entry(selector).or_insert_with(|| {
            let mut selection = Selection::default();
            for object in in_namespace(&self.entries, namespace) {
                if is_selected(object, labels) {
                    selection.insert(object);
                }
            }
            Arc::new(selection)
        });
        view.read(Read::Index(INDEX, namespace, &text), || {
            selection.fingerprint
        });
        Arc::clone(selection)
    }
}

/// WorkloadEntries that a selector matches. A clone shares most of them.
#[derive(Clone, Debug, Default)]
pub(in crate::compile) struct Selection {
    by_name: SharedMap<Arc<str>, Selected>,
    /// Sum of the hashes of the objects, each of its content and its location.
    pub fingerprint: u64,
    /// Number of workloads with a DNS name.
    names: usize,
}

#[derive(Clone, Debug)]
struct Selected {
    object: Arc<Object<WorkloadEntry>>,
    /// Workload of the entry; `None` if its address cannot be reached from here.
    workload: Option<Workload>,
}

impl Selected {
    fn fingerprint(&self) -> u64 {
        let object = &self.object;
        let mut hasher = DefaultHasher::new();
        let line = object.line_of(Line(0));
        (object.fingerprint, &object.provenance.file, line).hash(&mut hasher);
        hasher.finish()
    }

    fn is_name(&self) -> bool {
        matches!(self.object.spec.address, EndpointAddress::Dns(_))
    }
}

impl Selection {
    /// Inserts an entry, or replaces the one with its name.
    fn insert(&mut self, object: &Arc<Object<WorkloadEntry>>) {
        let workload = host(&object.spec.address, false).map(|host| Workload {
            host,
            weight: object.spec.weight,
            facts: self.share(facts(&object.spec, &object.labels, &object.id.namespace)),
        });
        let selected = Selected {
            object: Arc::clone(object),
            workload,
        };
        self.fingerprint = self.fingerprint.wrapping_add(selected.fingerprint());
        self.names += usize::from(selected.is_name());
        let before = self.by_name.insert(Arc::clone(&object.id.name), selected);
        self.forget(before);
    }

    fn remove(&mut self, name: &Arc<str>) {
        let before = self.by_name.remove(name);
        self.forget(before);
    }

    fn forget(&mut self, selected: Option<Selected>) {
        if let Some(selected) = selected {
            self.fingerprint = self.fingerprint.wrapping_sub(selected.fingerprint());
            self.names -= usize::from(selected.is_name());
        }
    }

    /// Returns equal facts of one of the first workloads, else these: most workloads have the same facts.
    fn share(&self, facts: Facts) -> Arc<Facts> {
        let known = self.workloads().take(ALIKE_MAX);
        let same = known.map(|one| &one.facts).find(|known| ***known == facts);
        same.map_or_else(|| Arc::new(facts), Arc::clone)
    }

    /// Whether the selection is empty.
    pub(in crate::compile) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Whether some workloads have DNS names.
    pub(in crate::compile) fn has_names(&self) -> bool {
        self.names > 0
    }

    /// Returns the objects in the order of their names.
    pub(in crate::compile) fn objects(&self) -> impl Iterator<Item = &Arc<Object<WorkloadEntry>>> {
        self.by_name.values().map(|selected| &selected.object)
    }

    /// Returns the reachable workloads in the order of their names.
    pub(in crate::compile) fn workloads(&self) -> impl Iterator<Item = &Workload> {
        let all = self.by_name.values();
        all.filter_map(|selected| selected.workload.as_ref())
    }
}
