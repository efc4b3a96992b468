//! Conversion of one object from a tree to its checked form.

use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::metadata::{self, Metadata};
use super::unsupported_fields;
use crate::ReadOptions;
use crate::diagnostic::codes::common::CM021;
use crate::diagnostic::{Diagnostic, Location, Locator, Severity};
use crate::kind::{Kind, ObjectRef};
use crate::parse::{Node, Reader, place_all};
use crate::raw::{Field, ObjectMeta};
use crate::resource::{AnyObject, Object, Order, Provenance, Spec};
use crate::span::Line;
use crate::validate::{Check, annotations};

/// Part of a document that a raw type represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// Content of `spec`.
    Spec,
    /// Top-level fields except `apiVersion`, `kind` and `metadata`.
    Whole,
}

/// Name of a security policy without a valid one.
const UNNAMED: &str = "(unnamed)";

/// Top-level fields of an object with `spec`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Envelope {
    #[serde(rename = "apiVersion")]
    _api_version: Field<IgnoredAny>,
    #[serde(rename = "kind")]
    _kind: Field<IgnoredAny>,
    metadata: Field<ObjectMeta>,
    #[serde(rename = "spec")]
    _spec: Field<IgnoredAny>,
    #[serde(rename = "status")]
    _status: Field<IgnoredAny>,
}

/// Envelope of a kind without `spec`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Head {
    metadata: Field<ObjectMeta>,
}

/// Result of reading one object of a document.
#[derive(Clone, Debug)]
pub(crate) struct DocumentObject {
    /// Checked object.
    pub(crate) object: Result<Arc<dyn AnyObject>, Box<Rejected>>,
    /// Location of the object's name.
    pub(crate) at: Place,
}

/// Line, column and length of a location, without file and source line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    line: u32,
    column: u32,
    len: u32,
}

impl Place {
    fn of(location: &Location) -> Place {
        let Location {
            line, column, len, ..
        } = *location;
        Place { line, column, len }
    }

    /// Returns the place after its document moved from line `from` to line `to` of the file.
    pub(crate) fn moved(self, from: u32, to: u32) -> Place {
        let line = self.line + to - from.min(self.line);
        Place { line, ..self }
    }

    /// Returns the location in `file`, without the source line.
    pub(crate) fn location(self, file: &Arc<str>) -> Location {
        let Place { line, column, len } = self;
        Location {
            file: Arc::clone(file),
            line,
            column,
            len,
            ..Location::default()
        }
    }
}

/// Object with errors.
#[derive(Clone, Debug)]
pub(crate) struct Rejected {
    id: ObjectRef,
    /// Object that applies while there is no last good version.
    pub(crate) stand_in: Option<Arc<dyn AnyObject>>,
}

impl DocumentObject {
    /// Returns the reference of the object.
    pub(crate) fn id(&self) -> &ObjectRef {
        match &self.object {
            Ok(object) => object.id(),
            Err(rejected) => &rejected.id,
        }
    }

    /// Returns the checked object, unless it is rejected.
    pub(crate) fn good(&self) -> Option<&Arc<dyn AnyObject>> {
        self.object.as_ref().ok()
    }
}

/// Object that is being read.
#[derive(Debug)]
pub(crate) struct Draft<'a> {
    kind: Kind,
    body: Body,
    node: &'a Node,
    locator: Locator<'a>,
    order: Order,
    found: Vec<Diagnostic>,
    /// Range of diagnostics about a missing `spec`.
    of_missing_spec: Range<usize>,
    /// Compiled size of the object's regular expressions, in bytes.
    regex_bytes: usize,
    metadata: Metadata,
    id: Option<ObjectRef>,
    fingerprint: u64,
    /// Line of the document on which the object starts; the first line unless it is an item of a `List`.
    start: Line,
    options: ReadOptions,
    /// Whether the object is rejected whatever its content.
    is_refused: bool,
}

impl<'a> Draft<'a> {
    /// Reads the envelope of the object at `node`. `found` holds the syntax errors of its text.
    pub(crate) fn new(
        kind: Kind,
        body: Body,
        node: &'a Node,
        mut locator: Locator<'a>,
        mut found: Vec<Diagnostic>,
    ) -> Draft<'a> {
        locator.secret = kind == Kind::Secret;
        let reader = Reader::new(locator);
        let meta = match body {
            Body::Spec => reader.read::<Envelope>(node, &[]).metadata,
            Body::Whole => {
                let others: Vec<&str> = node
                    .entries()
                    .iter()
                    .map(|entry| &*entry.key.text)
                    .collect();
                let others: Vec<&str> = others
                    .into_iter()
                    .filter(|key| *key != "metadata")
                    .collect();
                reader.read::<Head>(node, &others).metadata
            }
        };
        found.append(&mut reader.into_found());
        let metadata = metadata::check(kind, &meta, node, locator, &mut found);
        let id = metadata
            .name
            .as_ref()
            .map(|name| ObjectRef::new(kind, Arc::clone(&metadata.namespace), Arc::clone(name)));
        // what restricts clients does so even if its name is missing or invalid
        let has_stand_in = matches!(kind, Kind::BackendTLSPolicy | Kind::Destination);
        let is_refused = id.is_none() && (kind.is_security() || has_stand_in);
        let unnamed =
            is_refused.then(|| ObjectRef::new(kind, Arc::clone(&metadata.namespace), UNNAMED));
        let id = id.or(unnamed);
        Draft {
            kind,
            body,
            node,
            locator,
            order: Order::default(),
            found,
            of_missing_spec: 0..0,
            regex_bytes: 0,
            metadata,
            id,
            fingerprint: 0,
            start: Line(0),
            options: ReadOptions::default(),
            is_refused,
        }
    }

    /// Whether the object has a valid name. Otherwise its document counts as unreadable, because it may contain an
    /// object that is in effect.
    pub(crate) fn has_good_name(&self) -> bool {
        self.metadata.has_good_name
    }

    /// Sets the object's position in its file, and the line of its document on which it starts.
    pub(crate) fn at(mut self, order: Order, start: Line) -> Draft<'a> {
        self.order = order;
        self.start = start;
        self
    }

    /// Sets how strictly the object is read.
    pub(crate) fn read_with(mut self, options: ReadOptions) -> Draft<'a> {
        self.options = options;
        self.forgive();
        self
    }

    /// Drops the diagnostics about unknown fields for kinds that are cluster state; makes them warnings if the options
    /// say so.
    fn forgive(&mut self) {
        if self.kind.is_state() {
            self.found.retain(|found| found.code != CM021);
        }
        if !self.options.unknown_fields_pass || self.kind.is_security() {
            return;
        }
        let mut found = std::mem::take(&mut self.found);
        let unknown = found.iter_mut().filter(|found| found.code == CM021);
        for found in unknown.filter(|found| !self.hides_access(found)) {
            found.severity = Severity::Warning;
        }
        self.found = found;
    }

    /// Whether an unknown field may be a misspelt part of access policies, without which more clients would be admitted.
    fn hides_access(&self, found: &Diagnostic) -> bool {
        if self.kind != Kind::Destination || found.code != CM021 {
            return false;
        }
        let status = self.node.get("status");
        let access = status.and_then(|status| status.get("appliedAccessPolicies"));
        let is_meant = |help: &str| {
            ["`status`", "`appliedAccessPolicies`"]
                .iter()
                .any(|name| help.contains(name))
        };
        access.is_some_and(|access| access.span.contains(found.span))
            || found.help.as_deref().is_some_and(is_meant)
    }

    /// Sets the API group of the object; empty if its kind has only one.
    pub(crate) fn in_group(mut self, group: &'static str) -> Draft<'a> {
        self.id = self.id.map(|id| id.in_group(group));
        self
    }

    /// Reads and checks the body. The object is rejected if anything in it is an error. Also returns the diagnostics,
    /// and the compiled size of its regular expressions in bytes.
    pub(crate) fn finish(
        mut self,
        read: fn(&mut Draft<'_>) -> Option<Arc<dyn AnyObject>>,
        fingerprint: u64,
    ) -> (Option<DocumentObject>, Vec<Diagnostic>, usize) {
        self.fingerprint = fingerprint;
        let object = read(&mut self);
        unsupported_fields::report(self.kind, self.node, &mut self.found);
        place_all(&mut self.found, Some(self.node), &self.locator);
        let stand_in = self.node.key_span("kind");
        for found in &mut self.found[self.of_missing_spec.clone()] {
            if found.span == stand_in {
                // `kind`, and behind it the field that is missing.
                let field = found.field.split_once('.');
                found.field = field.map_or("spec".to_owned(), |(_, field)| format!("spec.{field}"));
            }
        }
        for found in &mut self.found {
            found.object.clone_from(&self.id);
        }
        let failed = self.failed();
        let slot = self.slot(object, failed);
        (slot, self.found, self.regex_bytes)
    }

    /// Rejects the object: returns only its reference and its stand-in, without diagnostics.
    pub(crate) fn refuse(
        mut self,
        read: fn(&mut Draft<'_>) -> Option<Arc<dyn AnyObject>>,
    ) -> Option<DocumentObject> {
        self.is_refused = true;
        let object = read(&mut self);
        self.slot(object, true)
    }

    fn slot(&self, object: Option<Arc<dyn AnyObject>>, failed: bool) -> Option<DocumentObject> {
        let id = self.id.clone()?;
        let object = match object {
            Some(object) if !failed && !object.is_stand_in() => Ok(object),
            object => Err(Box::new(Rejected {
                id,
                stand_in: object.filter(|object| object.is_stand_in()),
            })),
        };
        Some(DocumentObject {
            object,
            at: Place::of(&self.locator.location(self.metadata.name_span)),
        })
    }

    fn failed(&self) -> bool {
        let mut found = self.found.iter();
        self.is_refused || found.any(|found| found.severity == Severity::Error)
    }

    /// Returns the addresses in the status of a Gateway, which its controller has assigned; `None` if no controller has written
    /// the status. What is no address is left out.
    fn assigned_addresses(&self) -> Option<Vec<IpAddr>> {
        let status = (self.kind == Kind::KubernetesGateway).then(|| self.node.get("status"))??;
        let entries = |name| status.get(name).map_or(&[][..], Node::items).iter();
        let ip = |address: &Node| address.get("value")?.text()?.parse().ok();
        let addresses: Vec<IpAddr> = entries("addresses").filter_map(ip).collect();
        // an API server adds conditions with the status `Unknown` to a new Gateway
        let is_known = |one: &Node| one.get("status").and_then(Node::text) != Some("Unknown");
        (entries("conditions").any(is_known) || !addresses.is_empty()).then_some(addresses)
    }

    /// Whether an error is outside of the object's rules.
    fn is_misread(&self) -> bool {
        let spec = self.node.get("spec");
        let rules = ["rules", "jwtRules"].map(|field| spec.and_then(|spec| spec.get(field)));
        let is_in_rules = |found: &&Diagnostic| {
            let mut rules = rules.iter().flatten();
            rules.any(|rules| rules.span.contains(found.span))
        };
        let errors = self.found.iter();
        let mut errors = errors.filter(|found| found.severity == Severity::Error);
        errors.any(|found| !is_in_rules(&found))
    }

    /// Returns what applies in place of rejected content.
    fn stand_in<T: Spec>(&self, spec: T) -> Option<T> {
        let is_hidden = self.found.iter().any(|found| self.hides_access(found));
        let restricted = is_hidden.then(|| spec.restricted()).flatten();
        restricted.unwrap_or(spec).stand_in()
    }

    /// Reads the raw type and passes it to its validator.
    pub(crate) fn check<R, T>(
        &mut self,
        validate: fn(&R, &mut Check<'_>) -> T,
    ) -> Option<Arc<dyn AnyObject>>
    where
        R: Default + for<'de> Deserialize<'de>,
        T: Spec,
    {
        let reader = Reader::new(self.locator);
        let (raw, body) = match self.body {
            Body::Spec => match self.node.get("spec") {
                Some(spec) => (reader.read::<R>(spec, &[]), spec.span),
                None => (R::default(), self.node.key_span("kind")),
            },
            Body::Whole => (
                reader.read::<R>(self.node, &["apiVersion", "kind", "metadata"]),
                self.node.span,
            ),
        };
        self.found.append(&mut reader.into_found());
        self.forgive();
        // Without a name the object is lost, but what is wrong in it can still be said.
        let id = self
            .id
            .clone()
            .unwrap_or_else(|| ObjectRef::new(self.kind, "default", ""));
        let mut check = Check::new(&id, self.locator, body)
            .with_assigned_addresses(self.assigned_addresses())
            .with_metadata(self.metadata.name_span, &self.metadata.labels)
            .with_annotations(&self.metadata.own_annotations)
            .with_generation(self.metadata.generation)
            .with_options(self.options);
        if self.failed() {
            check.refuse(self.is_misread());
        }
        let spec = validate(&raw, &mut check);
        annotations::report_strange(&mut check);
        let first = self.found.len();
        self.regex_bytes = check.regexes().used();
        self.found.append(&mut check.into_found());
        if self.body == Body::Spec && self.node.get("spec").is_none() {
            self.of_missing_spec = first..self.found.len();
        }
        self.id.as_ref()?;
        let failed = self.failed();
        let mut spec = spec.marked(&self.metadata.labels, &self.metadata.annotations);
        if failed {
            spec = self.stand_in(spec)?;
        }
        let metadata = &mut self.metadata;
        if !T::KEEPS_MARKS {
            metadata.labels.clear();
            metadata.annotations.clear();
        }
        Some(Arc::new(Object {
            id,
            labels: std::mem::take(&mut metadata.labels).into(),
            annotations: std::mem::take(&mut metadata.annotations).into(),
            created: metadata.created,
            order: self.order,
            provenance: Provenance {
                file: Arc::clone(self.locator.file),
                line: self.locator.first_line + self.start.0,
                document_line: self.locator.first_line,
                written_as: None,
            },
            fingerprint: self.fingerprint,
            spec: Arc::new(spec),
        }))
    }
}
