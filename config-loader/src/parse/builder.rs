//! Builds a tree from the events of the YAML parser, within limits.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Tag};

use super::brackets::{Joined, join};
use super::expansion::Expansion;
use super::mapping::{merge, refuse_duplicates};
use super::node::{Entry, Key, Node, Value};
use super::offsets::Offsets;
use super::scalar::{number, resolve};
use super::surrogates::join_surrogates;
use super::{DEPTH_MAX, DOCUMENT_NODES_MAX};
use crate::diagnostic::codes::common::{YAML001, YAML003, YAML004, YAML007, YAML008, YAML011};
use crate::diagnostic::{Code, Diagnostic, Locator, Severity};
use crate::span::Span;

/// Suggested fix for a text that YAML parses as an alias.
const QUOTE_STAR: &str =
    "quote a text that begins with `*`, such as `\"*\"` or `\"*.example.com\"`";
/// Suggested fix for an unrendered chart template.
const RENDER_TEMPLATE: &str = "this is a template that is not rendered: check its output, as in `helm template . | strait check -`";

/// Parses the only document of a text. Returns `None` if it cannot be parsed; even with a tree, `found` can have
/// errors.
pub fn tree(locator: &Locator<'_>, found: &mut Vec<Diagnostic>) -> Option<Node> {
    tree_after(locator, &mut Expansion::default(), found)
}

/// Parses one document as [`tree`] does, after others whose aliases expand to `expanded`; adds its own expansion to it.
pub(crate) fn tree_after(
    locator: &Locator<'_>,
    expanded: &mut Expansion,
    found: &mut Vec<Diagnostic>,
) -> Option<Node> {
    let text = join_surrogates(locator.text);
    let mut read = read(locator, &text, *expanded, &[]);
    if let Some(at) = read.bracket {
        let Joined { text, brackets } = join(&text);
        let again = self::read(locator, &text, *expanded, &brackets);
        // One that is part of a text must stay where it is.
        let sound = again.brackets_seen == brackets.len() || again.root.is_none();
        let further = again.stopped_at.is_none_or(|stopped| stopped > at);
        if sound && further {
            read = again;
        }
    }
    found.append(&mut read.found);
    if read.root.is_some() {
        *expanded = read.expanded;
    }
    read.root
}

/// Result of parsing a text.
struct Read {
    found: Vec<Diagnostic>,
    /// Root node; `None` if parsing stopped.
    root: Option<Node>,
    /// Byte offset of the syntax error at which parsing stopped.
    stopped_at: Option<usize>,
    /// Byte offset of the syntax error, if it is at a `]` or `}` within a flow list or mapping.
    bracket: Option<usize>,
    /// Number of the requested brackets that closed a list or mapping.
    brackets_seen: usize,
    /// Size of expanded aliases, including those of earlier documents.
    expanded: Expansion,
}

/// Parses a text, and counts which of the brackets at these byte offsets close a list or mapping.
fn read(locator: &Locator<'_>, text: &str, before: Expansion, brackets: &[usize]) -> Read {
    let mut builder = Builder {
        locator,
        offsets: Offsets::new(text),
        found: Vec::new(),
        stack: Vec::new(),
        anchors: HashMap::new(),
        nodes: 0,
        before,
        expanded: before,
        root: None,
        stopped_at: None,
        brackets,
    };
    let whole = builder.run(text).is_ok();
    let is_at = |at: usize, brackets: [char; 2]| {
        text.get(at..)
            .is_some_and(|rest| rest.starts_with(brackets))
    };
    let last = builder.stack.last();
    let in_flow = last.is_some_and(|frame| is_at(frame.start, ['[', '{']));
    let bracket = builder.stopped_at.filter(|at| is_at(*at, [']', '}']));
    Read {
        bracket: bracket.filter(|_| in_flow),
        stopped_at: builder.stopped_at,
        brackets_seen: brackets.len() - builder.brackets.len(),
        root: builder.root.filter(|_| whole),
        expanded: builder.expanded,
        found: builder.found,
    }
}

/// Marker error: parsing cannot continue, and the reason was reported.
struct Stop;

struct Builder<'a> {
    locator: &'a Locator<'a>,
    offsets: Offsets<'a>,
    found: Vec<Diagnostic>,
    stack: Vec<Frame>,
    anchors: HashMap<usize, Anchored>,
    nodes: usize,
    /// Size of expanded aliases of earlier documents; `expanded` also includes this document's.
    before: Expansion,
    expanded: Expansion,
    root: Option<Node>,
    /// Byte offset of the syntax error.
    stopped_at: Option<usize>,
    /// Byte offsets of brackets that have not yet closed a list or mapping.
    brackets: &'a [usize],
}

/// Complete node with an anchor.
struct Anchored {
    node: Node,
    count: usize,
    text_bytes: usize,
    height: usize,
}

/// List or mapping that is still open.
struct Frame {
    start: usize,
    /// Byte offset after its last byte so far.
    end: usize,
    anchor: usize,
    inside: Inside,
}

enum Inside {
    List(Vec<Node>),
    Map {
        entries: Vec<Entry>,
        pending: Option<Pending>,
        merges: Vec<Node>,
    },
}

/// Key whose value comes next.
enum Pending {
    /// Invalid key: the value is dropped.
    Invalid,
    Key(Key),
    /// Merge key `<<`.
    Merge,
}

impl Builder<'_> {
    fn run(&mut self, text: &str) -> Result<(), Stop> {
        let mut parser = Parser::new_from_str(text);
        while let Some(event) = parser.next_event() {
            match event {
                Ok((event, span)) => {
                    let span = Span::new(
                        self.offsets.byte(span.start.index()),
                        self.offsets.byte(span.end.index()),
                    );
                    self.event(event, span)?;
                }
                Err(error) => return Err(self.syntax_error(&error)),
            }
        }
        Ok(())
    }

    fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), Stop> {
        match event {
            Event::Alias(anchor) => self.alias(anchor, span),
            Event::Scalar(text, style, anchor, tag) => {
                self.count(span)?;
                let node = self.scalar(&text, style, tag.as_deref(), span);
                if anchor == 0 && style == ScalarStyle::Plain && text == "<<" && self.expects_key()
                {
                    self.set_key(Pending::Merge);
                    return Ok(());
                }
                self.complete(node, anchor)
            }
            Event::SequenceStart(anchor, tag) => {
                self.collection_tag(tag.as_deref(), "seq", span);
                let span = self.with_dash(span);
                self.open(Inside::List(Vec::new()), anchor, span)
            }
            Event::MappingStart(anchor, tag) => {
                self.collection_tag(tag.as_deref(), "map", span);
                self.open(
                    Inside::Map {
                        entries: Vec::new(),
                        pending: None,
                        merges: Vec::new(),
                    },
                    anchor,
                    span,
                )
            }
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some((next, rest)) = self.brackets.split_first()
                    && *next == span.start as usize
                {
                    self.brackets = rest;
                }
                self.close(span)
            }
            _ => Ok(()),
        }
    }

    /// Returns the span of a list, extended to its first dash. For a list without indentation the parser reports the
    /// start of the first item, which would give list and item the same span.
    fn with_dash(&self, span: Span) -> Span {
        let Some((before, after)) = self.locator.text.split_at_checked(span.start as usize) else {
            return span;
        };
        match before.trim_end().strip_suffix('-') {
            Some(rest) if !after.starts_with(['-', '[']) => {
                Span::new(rest.len(), span.end as usize)
            }
            Some(_) | None => span,
        }
    }

    fn open(&mut self, inside: Inside, anchor: usize, span: Span) -> Result<(), Stop> {
        self.count(span)?;
        if self.stack.len() >= DEPTH_MAX {
            return Err(self.stop(
                YAML004,
                span,
                format!("nested more than {DEPTH_MAX} levels deep"),
            ));
        }
        let (start, end) = (span.start as usize, span.end as usize);
        self.stack.push(Frame {
            start,
            end,
            anchor,
            inside,
        });
        Ok(())
    }

    fn close(&mut self, span: Span) -> Result<(), Stop> {
        let Some(frame) = self.stack.pop() else {
            return Ok(());
        };
        // A block ends where its last child does; its end event stands at whatever comes next.
        let end = if span.end > span.start {
            span.end as usize
        } else {
            frame.end
        };
        let value = match frame.inside {
            Inside::List(items) => Value::List(items),
            Inside::Map {
                mut entries,
                merges,
                ..
            } => {
                if let Some(text) = self.ends_in_colon(frame.start, &entries) {
                    return self.complete(text, frame.anchor);
                }
                refuse_duplicates(&mut entries, self.locator, &mut self.found);
                merge(&mut entries, merges, &mut self.found);
                Value::Map(entries)
            }
        };
        self.complete(
            Node {
                span: Span::new(frame.start, end),
                value,
            },
            frame.anchor,
        )
    }

    /// Returns the text of an item such as `[2001:db8::]`. Kubernetes reads it as text, because only a colon before a
    /// blank starts a value.
    fn ends_in_colon(&self, start: usize, entries: &[Entry]) -> Option<Node> {
        let [Entry { key, value }] = entries else {
            return None;
        };
        let (text, end) = (self.locator.text, key.span.end as usize);
        let is_pair = value.value == Value::Null && value.span == key.span;
        let is_plain = key.span.start as usize == start && key.span.text(text) == &*key.text;
        let rest = text.get(end..)?.strip_prefix(':')?;
        (is_pair && is_plain && rest.starts_with([',', ']', '}'])).then(|| Node {
            span: Span::new(start, end + 1),
            value: Value::Text(format!("{}:", key.text).into()),
        })
    }

    /// Adds a complete node to its parent.
    fn complete(&mut self, node: Node, anchor: usize) -> Result<(), Stop> {
        if anchor > 0 {
            // The copy that is kept counts, too.
            let copy = Anchored {
                count: node.count(),
                text_bytes: node.text_bytes(),
                height: node.height(),
                node: node.clone(),
            };
            self.expanded.nodes += copy.count;
            self.anchors.insert(anchor, copy);
            self.check_aliases(node.span)?;
        }
        if self.expects_key() {
            let pending = self.key(node);
            self.set_key(pending);
            return Ok(());
        }
        self.put(node);
        Ok(())
    }

    fn put(&mut self, mut node: Node) {
        let Some(frame) = self.stack.last_mut() else {
            self.root = Some(node);
            return;
        };
        // What was written before the frame is an alias: it stands elsewhere.
        frame.end = frame.end.max(node.span.end as usize);
        match &mut frame.inside {
            Inside::List(items) => items.push(node),
            Inside::Map {
                entries,
                pending,
                merges,
            } => match pending.take() {
                Some(Pending::Key(key)) => {
                    if node.span.start == node.span.end {
                        node.span = key.span;
                    }
                    entries.push(Entry { key, value: node });
                }
                Some(Pending::Merge) => merges.push(node),
                Some(Pending::Invalid) | None => {}
            },
        }
    }

    fn expects_key(&self) -> bool {
        matches!(
            self.stack.last(),
            Some(Frame {
                inside: Inside::Map { pending: None, .. },
                ..
            })
        )
    }

    fn set_key(&mut self, key: Pending) {
        if let Some(Frame {
            inside: Inside::Map { pending, .. },
            ..
        }) = self.stack.last_mut()
        {
            *pending = Some(key);
        }
    }

    /// Returns the key for a node. Numbers keep their written form, as in Kubernetes.
    fn key(&mut self, node: Node) -> Pending {
        let span = node.span;
        let written = span.text(self.locator.text);
        match node.value {
            Value::Text(text) => return Pending::Key(Key { span, text }),
            Value::Bool(_) if self.locator.bool_keys => {
                return Pending::Key(Key {
                    span,
                    text: written.into(),
                });
            }
            Value::Int(_) | Value::Float(_) => {
                return Pending::Key(Key {
                    span,
                    text: written.into(),
                });
            }
            Value::Bool(_) => {
                let message = format!("the key `{written}` is a boolean in YAML");
                self.error(YAML007, span, message)
                    .help(format!("quote it: `\"{written}\"`"));
            }
            Value::Null => {
                self.error(YAML007, span, "a key is missing".to_owned());
            }
            Value::List(_) | Value::Map(_) => {
                let is_template = self.locator.text.contains("{{");
                let found = self.error(YAML007, span, "a key is not a text".to_owned());
                if is_template {
                    found.help(RENDER_TEMPLATE);
                }
            }
        }
        Pending::Invalid
    }

    fn alias(&mut self, anchor: usize, span: Span) -> Result<(), Stop> {
        let Some(found) = self.anchors.get(&anchor) else {
            return Err(self.stop(
                YAML011,
                span,
                "the anchor of this alias is not complete here".to_owned(),
            ));
        };
        if self.stack.len() + found.height > DEPTH_MAX {
            return Err(self.stop(
                YAML004,
                span,
                format!("nested more than {DEPTH_MAX} levels deep"),
            ));
        }
        self.expanded.nodes += found.count;
        self.expanded.bytes += found.text_bytes;
        self.check_aliases(span)?;
        let node = self.anchors.get(&anchor).map(|found| found.node.clone());
        node.map_or(Ok(()), |node| self.complete(node, 0))
    }

    fn count(&mut self, span: Span) -> Result<(), Stop> {
        self.nodes += 1;
        if self.nodes <= DOCUMENT_NODES_MAX {
            return Ok(());
        }
        let message = format!("the document has more than {DOCUMENT_NODES_MAX} values");
        Err(self.stop(YAML003, span, message))
    }

    fn check_aliases(&mut self, span: Span) -> Result<(), Stop> {
        let text_bytes = self.locator.text.len();
        match self.expanded.excess(self.before, text_bytes) {
            Some(message) => Err(self.stop(YAML003, span, message)),
            None => Ok(()),
        }
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, tag: Option<&Tag>, span: Span) -> Node {
        let plain = style == ScalarStyle::Plain;
        let literal = || Value::Text(text.into());
        let value = match tag {
            None if plain => resolve(text),
            None => literal(),
            Some(tag) if tag.is_yaml_core_schema() => match (tag.suffix.as_str(), resolve(text)) {
                ("str", _) => literal(),
                ("int", value @ Value::Int(_))
                | ("bool", value @ Value::Bool(_))
                | ("null", value @ Value::Null) => value,
                ("float", Value::Int(_) | Value::Float(_)) => number(text).unwrap_or_else(literal),
                (suffix, _) => {
                    self.error(
                        YAML008,
                        span,
                        format!("this is not a `!!{suffix}` that can be read here"),
                    );
                    literal()
                }
            },
            Some(tag) if tag.handle.is_empty() && tag.suffix == "!" => literal(),
            Some(tag) => {
                let message = self.unknown_tag(tag, "");
                self.error(YAML008, span, message).help("remove the tag");
                literal()
            }
        };
        Node { span, value }
    }

    fn collection_tag(&mut self, tag: Option<&Tag>, wanted: &str, span: Span) {
        if let Some(tag) = tag.filter(|tag| !(tag.is_yaml_core_schema() && tag.suffix == wanted)) {
            let message = self.unknown_tag(tag, " here");
            self.error(YAML008, span, message).help("remove the tag");
        }
    }

    /// Returns the message about an unknown tag. An unquoted password that starts with `!` is parsed as a tag.
    fn unknown_tag(&self, tag: &Tag, location: &str) -> String {
        if self.locator.secret {
            format!("the tag is unknown{location}")
        } else {
            format!("the tag `{tag}` is unknown{location}")
        }
    }

    fn syntax_error(&mut self, error: &ScanError) -> Stop {
        let written = self.locator.text.trim_end().len();
        let at = self.offsets.byte(error.marker().index());
        self.stopped_at = Some(at);
        let open = self.stack.last().map(|frame| frame.start);
        let after = |start: usize| self.locator.text.get(start..).unwrap_or("");
        let open = open.filter(|&start| after(start).starts_with(['[', '{']));
        let opened = open.map(|start| self.locator.location(Span::new(start, start + 1)));
        let info = error.info();
        let begins_alias = info.contains("anchor or alias") && after(at).starts_with('*');
        let is_template = !self.locator.secret && self.locator.text.contains("{{");
        let found = if at >= written {
            // Nothing stands at the end of the text: the last character is the place nearest to it.
            let last = self.locator.text[..written]
                .char_indices()
                .next_back()
                .map_or(0, |(offset, _)| offset);
            let message = if open.is_some() {
                format!("the text ends too early: {info}")
            } else {
                info.to_owned()
            };
            self.error(YAML001, Span::new(last, written), message)
        } else {
            self.error(YAML001, Span::new(at, at + 1), info.to_owned())
        };
        let mut words = info.split(' ');
        if words.any(|word| matches!(word, "tab" | "tabs")) {
            found.help("indent with spaces, not with tabs");
        } else if info.contains("mapping values are not allowed") {
            found.help("quote a text that holds `: `, and check the indentation of this line and of the one above");
        } else if info.contains("unknown anchor") {
            found.code = YAML011;
            found.help(QUOTE_STAR);
        } else if begins_alias {
            found.message = "`*` begins an alias, and a name has to follow".to_owned();
            found.help(QUOTE_STAR);
        } else if info.contains("recursion limit") {
            // The parser's own limit, met when it looks ahead for the end of a key.
            found.code = YAML004;
            found.message = format!("nested more than {DEPTH_MAX} levels deep");
        }
        if is_template {
            found.help(RENDER_TEMPLATE);
        } else if let Some(location) = opened.filter(|_| found.code == YAML001 && !begins_alias) {
            found.related(location, "this is not closed");
        }
        Stop
    }

    fn error(&mut self, code: Code, span: Span, message: String) -> &mut Diagnostic {
        self.found
            .push(Diagnostic::at(Severity::Error, code, span, message));
        let last = self.found.len() - 1;
        &mut self.found[last]
    }

    fn stop(&mut self, code: Code, span: Span, message: String) -> Stop {
        self.error(code, span, message);
        Stop
    }
}
