//! Translation of the Ingresses of a set that changes.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::objects::{Translated, Translation, reference};
use super::outcome::{finding, location};
use super::text::with_lines;
use super::translation::translate;
use crate::ReadOptions;
use crate::diagnostic::codes::ingress::IG043;
use crate::diagnostic::{Diagnostic, Severity};
use crate::kind::{Kind, ObjectRef};
use crate::load::read_file;
use crate::options::IngressSettings;
use crate::resource::{AnyObject, Order, Provenance, ResourceSet, Spec};
use crate::span::Line;

/// Kinds that Ingresses are translated from.
const FROM: [Kind; 6] = [
    Kind::ConfigMap,
    Kind::DestinationRule,
    Kind::Ingress,
    Kind::IngressClass,
    Kind::Secret,
    Kind::Service,
];

/// Set with the objects that its Ingresses were translated to.
#[derive(Clone, Debug, Default)]
pub struct Expanded {
    /// Objects, written and translated.
    pub set: Arc<ResourceSet>,
    /// Findings about Ingresses.
    pub findings: Vec<Diagnostic>,
}

/// Translation that keeps objects which a change leaves as they are.
#[derive(Debug, Default)]
pub struct Translator {
    settings: Option<IngressSettings>,
    /// Set that was translated last.
    written: Arc<ResourceSet>,
    objects: HashMap<ObjectRef, Kept>,
    expanded: Expanded,
}

/// Translated object.
#[derive(Debug)]
struct Kept {
    text: String,
    created: Option<i64>,
    provenance: Provenance,
    object: Arc<dyn AnyObject>,
    is_renamed: bool,
}

impl Translator {
    /// Returns the result of the last translation.
    pub fn expanded(&self) -> &Expanded {
        &self.expanded
    }

    /// Translates a set, or passes it on without settings.
    pub fn update(&mut self, set: &Arc<ResourceSet>, settings: Option<&IngressSettings>) {
        let is_same = self.settings.as_ref() == settings;
        if is_same && Arc::ptr_eq(set, &self.written) {
            return;
        }
        let Some(settings) = settings else {
            *self = Self {
                written: Arc::clone(set),
                expanded: Expanded {
                    set: Arc::clone(set),
                    findings: Vec::new(),
                },
                ..Self::default()
            };
            return;
        };
        let is_untouched = is_same
            && FROM.iter().all(|kind| set.is_same(&self.written, *kind))
            && !self.renames(set);
        if !is_untouched {
            let translation = translate(set, settings);
            self.expanded.findings = self.read(translation);
        }
        self.expanded.set = self.with_objects(set, is_untouched);
        self.written = Arc::clone(set);
        self.settings = Some(settings.clone());
    }

    /// Whether a set has other written objects with the names of translated ones.
    fn renames(&self, set: &ResourceSet) -> bool {
        let mut changed = self.objects.iter();
        changed.any(|(id, kept)| {
            !set.is_same(&self.written, id.kind)
                && (kept.is_renamed || !set.named(id.kind, &id.to_name()).is_empty())
        })
    }

    /// Reads the objects of a translation. Returns the findings.
    fn read(&mut self, translation: Translation) -> Vec<Diagnostic> {
        let mut findings = translation.findings;
        let mut objects = HashMap::new();
        for one in &translation.objects {
            let origin = &one.origin;
            let provenance = Provenance {
                written_as: Some(Arc::new(reference(&origin.id.to_name()))),
                ..origin.provenance.clone()
            };
            let text = with_lines(&one.value);
            let id = ObjectRef::new(
                one.kind,
                Arc::clone(&one.name.namespace),
                Arc::clone(&one.name.name),
            );
            let kept = self.objects.remove(&id).filter(|kept| {
                kept.text == text
                    && kept.provenance == provenance
                    && kept.created == origin.created
                    && kept.is_renamed == one.is_renamed
            });
            match kept.map_or_else(|| read_one(one, text, provenance), Ok) {
                Ok(kept) => _ = objects.insert(id, kept),
                Err(problems) => findings.extend(problems),
            }
        }
        self.objects = objects;
        findings
    }

    /// Returns a set with the translated objects. If they are `untouched`, kinds that did not change stay shared.
    fn with_objects(&self, set: &Arc<ResourceSet>, untouched: bool) -> Arc<ResourceSet> {
        let mut expanded = ResourceSet::clone(set);
        use crate::resource::{gateway_api, istio};
        self.add::<istio::DestinationRule>(set, untouched, &mut expanded);
        self.add::<gateway_api::GatewayClass>(set, untouched, &mut expanded);
        self.add::<gateway_api::HTTPRoute>(set, untouched, &mut expanded);
        self.add::<gateway_api::KubernetesGateway>(set, untouched, &mut expanded);
        self.add::<gateway_api::ListenerSet>(set, untouched, &mut expanded);
        self.add::<gateway_api::TLSRoute>(set, untouched, &mut expanded);
        Arc::new(expanded)
    }

    fn add<T: Spec>(&self, set: &ResourceSet, untouched: bool, expanded: &mut ResourceSet) {
        if untouched && T::objects(set).same(T::objects(&self.written)) {
            let before = T::objects(&self.expanded.set).clone();
            *T::objects_mut(expanded) = before;
            return;
        }
        let own = self.objects.iter().filter(|(id, _)| id.kind == T::KIND);
        for (_, kept) in own {
            Arc::clone(&kept.object).put(expanded);
        }
    }
}

/// Reads a translated object.
fn read_one(
    one: &Translated,
    text: String,
    provenance: Provenance,
) -> Result<Kept, Vec<Diagnostic>> {
    let origin = &one.origin;
    let created = origin
        .created
        .and_then(|seconds| Timestamp::from_second(seconds).ok());
    // a Gateway that somebody has written comes before that of Ingresses
    let created = match one.kind {
        Kind::KubernetesGateway => Timestamp::from_second(LAST).ok(),
        _ => created,
    };
    let dated = match created {
        Some(created) => {
            let metadata = format!("\"metadata\": {{\"creationTimestamp\": \"{created}\", ");
            text.replacen("\"metadata\": {", &metadata, 1)
        }
        None => text.clone(),
    };
    let reading = read_file(&provenance.file, &dated, None, ReadOptions::default());
    let document = reading.documents.first();
    let slot = document.and_then(|document| document.reading.slots().first());
    match slot.and_then(|slot| slot.good()) {
        Some(object) => Ok(Kept {
            object: object.moved(provenance.clone(), Order::default()),
            is_renamed: one.is_renamed,
            text,
            created: origin.created,
            provenance,
        }),
        None => Err(reading
            .errors()
            .map(|error| {
                let line = Line(error.location.line.saturating_sub(1));
                let message = format!("the Ingress cannot be followed: {}", error.message);
                let mut found = finding(origin, IG043, Severity::Warning, line, message);
                found.location = location(origin, line);
                found.with_help(error.help.clone())
            })
            .collect()),
    }
}

/// Creation time of the Gateway of Ingresses: 9999-01-01.
const LAST: i64 = 253_370_764_800;
