//! Reading of one document: its objects, and the result for each.

use std::sync::Arc;

use twox_hash::XxHash64;

use super::layout::Layout;
use super::long_list;
use crate::ReadOptions;
use crate::diagnostic::codes::common::{CM021, CM022, CM025, CM026, CM027, CM032, CM038, YAML006};
use crate::diagnostic::codes::gateway_api::GA009;
use crate::diagnostic::{Diagnostic, Locator, Severity, suggest};
use crate::kinds::unsupported::{self, Unsupported};
use crate::kinds::{self, DocumentObject, Draft, Found, Row, distinct_group};
use crate::parse::{self, Chunk, Expansion, Node, Value, place_all};
use crate::resource::{AnyObject, Order};
use crate::span::{Lines, Span};

/// Advice where a value is no resource.
const A_RESOURCE: &str = "write a mapping with `apiVersion`, `kind` and `metadata`";

/// Label that assigns an object to one revision of a control plane.
const REVISION: &str = "istio.io/rev";

/// API groups whose objects Istio reads by revision.
const REVISED_GROUPS: [&str; 4] = [
    "gateway.networking.k8s.io",
    "networking.istio.io",
    "security.istio.io",
    "telemetry.istio.io",
];

/// Result of reading one document.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reading {
    /// Objects of the document, accepted or rejected.
    pub(crate) slots: Vec<DocumentObject>,
    /// Diagnostics of the document.
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// Whether the document could not be parsed. Objects of its previous version then stay in effect.
    pub(crate) unreadable: bool,
    /// Size of the expanded aliases.
    pub(crate) expansion: Expansion,
    /// Compiled size of the regular expressions of its objects, in bytes.
    pub(crate) regex_bytes: usize,
}

impl Reading {
    /// Creates the result for a document whose reading panicked. Objects of its previous version stay in effect.
    pub(crate) fn fault(file: &Arc<str>, chunk: Chunk<'_>) -> Reading {
        let message = "this document cannot be read for a fault of the program".to_owned();
        let mut found = Diagnostic::at(Severity::Error, CM032, Span::NONE, message);
        let lines = Lines::new(chunk.text);
        let (text, first_line) = (chunk.text, chunk.first_line);
        found.location = Locator {
            file,
            text,
            lines: &lines,
            first_line,
            secret: true,
            bool_keys: false,
        }
        .location(Span::NONE);
        found.may_be_policy = kinds::names_policies(text);
        Reading {
            slots: Vec::new(),
            diagnostics: vec![found],
            unreadable: true,
            ..Reading::default()
        }
    }
}

/// Origin of a document, and options for reading it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a> {
    pub(super) file: &'a Arc<str>,
    /// Number of the document in its file.
    pub(super) index: u32,
    pub(super) options: ReadOptions,
    /// Size of the expanded aliases of earlier documents in the file.
    pub(super) expanded: Expansion,
}

/// Reads one document. If a layout is returned,
/// [`read_changed`](super::changed::read_changed) can read a later version faster.
pub(super) fn read_document(source: &Source<'_>, chunk: Chunk<'_>) -> (Reading, Option<Layout>) {
    let lines = Lines::new(chunk.text);
    let (reading, root) = read(source, locator(source.file, chunk, &lines));
    let list = sole_object(&reading).and_then(|object| long_list::field_of(&**object));
    let layout = root
        .zip(list)
        .and_then(|(root, list)| Layout::of_long(&root, list, chunk.text))
        .map(|layout| layout.with_regexes(reading.regex_bytes));
    (reading, layout)
}

/// Returns the object of a document that has exactly one accepted object and no diagnostics.
pub(super) fn sole_object(reading: &Reading) -> Option<&Arc<dyn AnyObject>> {
    let [slot] = &*reading.slots else {
        return None;
    };
    slot.good().filter(|_| reading.diagnostics.is_empty())
}

pub(super) fn locator<'a>(file: &'a Arc<str>, chunk: Chunk<'a>, lines: &'a Lines) -> Locator<'a> {
    Locator {
        file,
        text: chunk.text,
        lines,
        first_line: chunk.first_line,
        secret: may_hold_secrets(chunk.text),
        bool_keys: false,
    }
}

/// Reads a text. Also returns its tree, if it can be parsed.
pub(super) fn read(source: &Source<'_>, locator: Locator<'_>) -> (Reading, Option<Node>) {
    let mut malformed = Vec::new();
    let mut expansion = source.expanded;
    let root = parse::tree_after(&locator, &mut expansion, &mut malformed);
    let may_be_policy = !malformed.is_empty() && kinds::names_policies(locator.text);
    for found in &mut malformed {
        found.may_be_policy = may_be_policy;
    }
    let Some(root) = root else {
        place_all(&mut malformed, None, &locator);
        let reading = Reading {
            slots: Vec::new(),
            diagnostics: malformed,
            unreadable: true,
            ..Reading::default()
        };
        return (reading, None);
    };
    let mut document = Document {
        locator,
        source: *source,
        malformed,
        list: false,
        reading: Reading {
            expansion: expansion.beyond(source.expanded),
            ..Reading::default()
        },
    };
    document.read_root(&root);
    let Document {
        mut malformed,
        mut reading,
        locator,
        ..
    } = document;
    // what is outside of the objects that were read may have hidden others
    let mut outside = malformed.iter();
    reading.unreadable |= outside.any(|found| found.severity == Severity::Error);
    place_all(&mut malformed, Some(&root), &locator);
    reading.diagnostics.append(&mut malformed);
    (reading, Some(root))
}

/// Whether a text may contain a Secret, whose lines must not be shown. Checked before parsing.
fn may_hold_secrets(text: &str) -> bool {
    text.contains("Secret") && text.contains("kind")
}

struct Document<'a> {
    locator: Locator<'a>,
    source: Source<'a>,
    /// Syntax errors of the text, such as duplicate keys.
    malformed: Vec<Diagnostic>,
    list: bool,
    reading: Reading,
}

/// Kind and apiVersion that an object declares.
struct Claim<'a> {
    kind: &'a str,
    kind_span: Span,
    api_version: &'a str,
    api_version_span: Span,
}

impl Document<'_> {
    fn read_root(&mut self, root: &Node) {
        match root.value {
            Value::Null => {}
            Value::Map(_) => match self.claim(root, None) {
                Some(claim) if is_list(&claim, root) => self.read_list(root, &claim),
                Some(claim) => self.read_object(root, &claim, 0),
                None => {}
            },
            _ => {
                let message = format!("expected a resource, found {}", root.describe());
                let found = Diagnostic::at(Severity::Error, YAML006, root.span, message);
                self.lose(root, found.with_help(Some(A_RESOURCE.to_owned())));
            }
        }
    }

    /// Reads the kind and apiVersion of a node; `inherited` has those of the items of a typed list, for a node without
    /// its own.
    fn claim<'n>(
        &mut self,
        node: &'n Node,
        inherited: Option<(&'n str, &'n str)>,
    ) -> Option<Claim<'n>> {
        let field = |name: &str| {
            node.get(name)
                .and_then(|value| Some((value.text()?, value.span)))
        };
        let kind = field("kind").or(inherited.map(|(kind, _)| (kind, node.span)));
        let api_version =
            field("apiVersion").or(inherited.map(|(_, version)| (version, node.span)));
        if let (Some((kind, kind_span)), Some((api_version, api_version_span))) =
            (kind, api_version)
        {
            return Some(Claim {
                kind,
                kind_span,
                api_version,
                api_version_span,
            });
        }
        let missing = if kind.is_none() { "kind" } else { "apiVersion" };
        let (span, message) = match node.get(missing) {
            Some(value) => (
                value.span,
                format!("expected a text in `{missing}`, found {}", value.describe()),
            ),
            None => (first_key(node), format!("the document has no `{missing}`")),
        };
        let help = node.entries().iter().map(|entry| &*entry.key.text);
        let help = suggest::nearest(missing, help)
            .filter(|near| node.get(missing).is_none() && *near != "kind" && *near != "apiVersion")
            .map(|near| format!("did you mean `{missing}` by `{near}`?"));
        let help = help.or_else(|| Some(format!("every resource needs `{missing}`, a text")));
        self.lose(
            node,
            Diagnostic::at(Severity::Error, CM027, span, message).with_help(help),
        );
        None
    }

    fn read_list(&mut self, root: &Node, claim: &Claim<'_>) {
        self.list = true;
        for entry in root.entries() {
            if !["apiVersion", "kind", "metadata", "items"].contains(&&*entry.key.text) {
                let message = format!("unknown field `{}` in a list", entry.key.text);
                self.lose(
                    root,
                    Diagnostic::at(Severity::Error, CM021, entry.key.span, message),
                );
            }
        }
        let Some(items) = root.get("items") else {
            let message = "the list has no `items`".to_owned();
            let found = Diagnostic::at(Severity::Error, CM022, claim.kind_span, message);
            return self.lose(root, found);
        };
        if !matches!(items.value, Value::List(_) | Value::Null) {
            let message = format!("expected a list in `items`, found {}", items.describe());
            self.lose(
                root,
                Diagnostic::at(Severity::Error, YAML006, items.span, message),
            );
        }
        let inherited = claim
            .kind
            .strip_suffix("List")
            .filter(|kind| !kind.is_empty());
        for (index, item) in items.items().iter().enumerate() {
            if !matches!(item.value, Value::Map(_)) {
                let message = format!("expected a resource, found {}", item.describe());
                let found = Diagnostic::at(Severity::Error, YAML006, item.span, message);
                self.lose(root, found.with_help(Some(A_RESOURCE.to_owned())));
                continue;
            }
            if let Some(claim) = self.claim(item, inherited.map(|kind| (kind, claim.api_version))) {
                self.read_object(item, &claim, u32::try_from(index).unwrap_or(u32::MAX));
            }
        }
    }

    fn read_object(&mut self, node: &Node, claim: &Claim<'_>, item: u32) {
        match kinds::find(claim.kind, claim.api_version) {
            Found::Known(_) if self.is_of_other_revision(node, claim) => {}
            Found::Known(row) => self.read_known(node, row, claim, item),
            Found::WrongVersion(row) => self.refuse_version(node, row, claim),
            Found::Unknown => self.skip(node, claim),
        }
    }

    /// Whether the object is not read, since its label names another revision than that of the proxy. Without one, it is read all
    /// the same, as by no Istio.
    fn is_of_other_revision(&mut self, node: &Node, claim: &Claim<'_>) -> bool {
        let group = kinds::group(claim.api_version);
        if !REVISED_GROUPS.contains(&group) {
            return false;
        }
        let labels = node.get("metadata").and_then(|meta| meta.get("labels"));
        let label = labels.and_then(|labels| labels.get(REVISION));
        let Some((label, revision)) = label.and_then(|label| Some((label, label.text()?))) else {
            return false;
        };
        let own = self.source.options.revision;
        let (message, help) = match own {
            Some(own) if own == revision => return false,
            Some(own) => (
                format!(
                    "skipped: {} is of revision `{revision}`, and the proxy of `{own}`",
                    claim.kind
                ),
                "remove the label, if all revisions should read it".to_owned(),
            ),
            None => (
                format!(
                    "{} is of revision `{revision}`, and read all the same",
                    claim.kind
                ),
                "set --revision to read those of one revision only, and those without the label"
                    .to_owned(),
            ),
        };
        let found = Diagnostic::at(Severity::Note, CM038, label.span, message);
        self.report(node, found.with_help(Some(help)));
        own.is_some()
    }

    fn read_known(&mut self, node: &Node, row: &'static Row, claim: &Claim<'_>, item: u32) {
        let order = Order {
            document: self.source.index,
            item,
        };
        // What is malformed within an object is the object's.
        let list = self.list;
        let (own, others): (Vec<_>, Vec<_>) = self
            .malformed
            .drain(..)
            .partition(|found| !list || node.span.contains(found.span));
        self.malformed = others;
        let start = match list {
            true => self.locator.lines.line(node.span.start),
            // not that of `---`, or of comments
            false => self.locator.lines.line(first_key(node).start),
        };
        let draft = Draft::new(row.kind, row.body, node, self.locator, own)
            .at(order, start)
            .in_group(distinct_group(row, claim.api_version))
            .read_with(self.source.options);
        self.reading.unreadable |= !draft.has_good_name();
        let (slot, mut diagnostics, regex_bytes) = draft.finish(row.read, self.fingerprint(node));
        if let Some(unsupported) = unsupported::of_read(row.kind) {
            let mut found = unsupported_kind(unsupported, claim);
            found.object = slot.as_ref().map(|slot| slot.id().clone());
            self.report(node, found);
        }
        self.reading.regex_bytes = self.reading.regex_bytes.saturating_add(regex_bytes);
        self.reading.diagnostics.append(&mut diagnostics);
        self.reading.slots.extend(slot);
    }

    /// Returns a hash of all input of an object's checked form: its text and its position within the document.
    fn fingerprint(&self, node: &Node) -> u64 {
        let text = self.locator.text;
        // An item with aliases depends on text outside of it.
        if !self.list || text.contains('&') {
            return whole_fingerprint(node.span.start, text);
        }
        let line = self.locator.lines.line(node.span.start).0;
        XxHash64::oneshot(u64::from(line) << 1 | 1, node.span.text(text).as_bytes())
    }

    fn refuse_version(&mut self, node: &Node, row: &'static Row, claim: &Claim<'_>) {
        let message = format!("{} has no apiVersion `{}`", claim.kind, claim.api_version);
        let help = format!("write `{}`", row.api_versions.join("`, or `"));
        self.report(
            node,
            Diagnostic::at(Severity::Error, CM025, claim.api_version_span, message)
                .with_help(Some(help)),
        );
        // The object is known by name, so that its last good version can stay.
        let draft = Draft::new(row.kind, row.body, node, self.locator, Vec::new())
            .in_group(distinct_group(row, claim.api_version));
        self.reading.unreadable |= !draft.has_good_name();
        self.reading.slots.extend(draft.refuse(row.read));
    }

    fn skip(&mut self, node: &Node, claim: &Claim<'_>) {
        let unsupported = unsupported::find(claim.kind, claim.api_version);
        let lists = kinds::rows().map(|row| format!("{}List", row.kind));
        let lists: Vec<String> = lists.collect();
        let known = kinds::rows().map(|row| row.kind.as_str());
        let known = known.chain(lists.iter().map(String::as_str));
        let ours = kinds::rows().any(|row| {
            row.api_versions.iter().any(|known| {
                !kinds::group(known).is_empty()
                    && kinds::group(known) == kinds::group(claim.api_version)
            })
        });
        let near = if ours {
            suggest::nearest(claim.kind, known)
        } else {
            None
        };
        let near = near.filter(|near| *near != claim.kind);
        // a kind of which only the group is known may be misspelled
        let is_named = |row: &&Unsupported| row.code != GA009 || near.is_none();
        if let Some(row) = unsupported.filter(is_named) {
            return self.report(node, unsupported_kind(row, claim));
        }
        let may_be_policy = kinds::may_be_policy(claim.kind, claim.api_version);
        // only lists have `items`
        let is_list = node.get("items").is_some() && kinds::group(claim.api_version).is_empty();
        if near.is_some() || may_be_policy || is_list {
            let message = format!("{} has no kind `{}`", claim.api_version, claim.kind);
            let near = near.or(is_list.then_some("List"));
            let help = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => "write `AuthorizationPolicy`, `PeerAuthentication` or `RequestAuthentication`, of \
                    `security.istio.io/v1`"
                    .to_owned(),
            };
            let mut found = Diagnostic::at(Severity::Error, CM025, claim.kind_span, message);
            found.may_be_policy = may_be_policy;
            return self.lose(node, found.with_help(Some(help)));
        }
        let message = format!(
            "skipped: {} of {} configures no data plane",
            claim.kind, claim.api_version
        );
        self.report(
            node,
            Diagnostic::at(Severity::Note, CM026, claim.kind_span, message),
        );
    }

    /// Reports an error for which objects of the document cannot be known: its last good version stays.
    fn lose(&mut self, root: &Node, mut found: Diagnostic) {
        found.may_be_policy |= kinds::names_policies(self.locator.text);
        self.report(root, found);
        self.reading.unreadable = true;
    }

    fn report(&mut self, root: &Node, mut found: Diagnostic) {
        place_all(std::slice::from_mut(&mut found), Some(root), &self.locator);
        self.reading.diagnostics.push(found);
    }
}

/// Creates the diagnostic about a known but unsupported kind.
fn unsupported_kind(row: &Unsupported, claim: &Claim<'_>) -> Diagnostic {
    let kind = claim.kind;
    let (message, help) = match row.unenforced {
        Some(unenforced) => {
            let message = format!("{kind} is not supported yet: {unenforced}");
            (message, format!("do not rely on it: {}", row.instead))
        }
        None => {
            let message = format!("{kind} of {} is not supported", claim.api_version);
            (message, format!("use {}", row.instead))
        }
    };
    Diagnostic::at(Severity::Warning, row.code, claim.kind_span, message).with_help(Some(help))
}

/// Returns the fingerprint of the only object of a document whose root starts at `root`.
pub(super) fn whole_fingerprint(root: u32, text: &str) -> u64 {
    XxHash64::oneshot(u64::from(root), text.as_bytes())
}

fn is_list(claim: &Claim<'_>, root: &Node) -> bool {
    claim.kind == "List" || (claim.kind.ends_with("List") && root.get("items").is_some())
}

fn first_key(node: &Node) -> Span {
    node.entries()
        .first()
        .map_or(node.span, |entry| entry.key.span)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_is_reported_at_the_document() {
        let chunk = Chunk {
            text: "---\nkind: Secret\n",
            first_line: 7,
        };
        let reading = Reading::fault(&Arc::from("a.yaml"), chunk);
        assert!(reading.unreadable && reading.slots.is_empty());
        let [found] = &reading.diagnostics[..] else {
            panic!("{reading:?}");
        };
        assert_eq!((found.code, found.severity), (CM032, Severity::Error));
        assert_eq!((&*found.location.file, found.location.line), ("a.yaml", 7));
    }
}
