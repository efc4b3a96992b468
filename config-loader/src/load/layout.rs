//! Where the items of a long list stand in a text, so that a change of a few costs what changed.
//!
//! A text is read again *in short*: without items that are the same as before. What is cut out are whole items of a list in
//! `spec`, written one below the other with the same indentation. Where such an item begins, nothing of what
//! stood before it matters but the lists and mappings that are open, and they are the same in front of every item of
//! a list. So a text without some of its items reads as the text does, and what the others say is known. Anchors are
//! the exception, and texts with any are read in full.

use std::sync::Arc;

use super::long_list::KeptItems;
use crate::parse::{DOCUMENT_NODES_MAX, Node, Value};
use crate::re2::OBJECT_BYTES_MAX;
use crate::span::{Gap, Lines};

/// The texts in which items are looked for, in bytes. Shorter ones are read in full as fast.
const TEXT_BYTES_MIN: usize = if cfg!(test) { 1 } else { 16 << 10 };

/// A text and where the items of a list in its `spec` stand in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// The name of the list.
    list: &'static str,
    pub(super) text: Arc<str>,
    /// The start of the first line of each item.
    starts: Vec<u32>,
    /// How far the dashes are indented.
    indent: usize,
    /// The start of the line after the last item.
    end: u32,
    /// Where the root begins.
    pub(super) root: u32,
    /// How many nodes the document has at most.
    nodes: usize,
    /// Bytes of the object's regular expressions, at most.
    regex_bytes: usize,
}

/// A text without items that are known.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Short {
    pub(super) text: String,
    pub(super) gaps: Vec<Gap>,
    /// The items that were cut out.
    pub(super) kept: KeptItems,
    /// Where in the short text the last item that is left must begin, if it is one that did not change.
    guard: Option<u32>,
    /// How many bytes were cut out in front.
    cut_before: usize,
    /// By how many bytes the items after the removed ones have moved.
    bytes_moved: i64,
}

impl Layout {
    /// The layout of a text that reads as `root`, if it is long and the items of this list can be told apart.
    pub(super) fn of_long(root: &Node, list: &'static str, text: &str) -> Option<Layout> {
        let readable = text.len() >= TEXT_BYTES_MIN && !has_anchors(text);
        readable.then(|| Layout::of(root, list, text)).flatten()
    }

    fn of(root: &Node, list: &'static str, text: &str) -> Option<Layout> {
        let node = root.get("spec")?.get(list)?;
        let mut starts = Vec::with_capacity(node.items().len());
        let mut indent = None;
        for item in node.items() {
            let (start, dash) = first_line(item, text)?;
            if *indent.get_or_insert(dash - start) != dash - start {
                return None;
            }
            starts.push(u32::try_from(start).ok()?);
        }
        let last = node.span.end as usize;
        // The span of a list that ends in a block scalar has the indentation of the next line as well.
        let list_text = text.get(..last)?.trim_end_matches(' ');
        let end = match list_text.ends_with('\n') {
            true => list_text.len(),
            false => text[last..]
                .find('\n')
                .map_or(text.len(), |at| last + at + 1),
        };
        Some(Layout {
            list,
            text: text.into(),
            starts,
            indent: indent?,
            end: u32::try_from(end).ok()?,
            root: root.span.start,
            nodes: count(root),
            regex_bytes: 0,
        })
    }

    /// The layout of an object whose regular expressions take this many bytes.
    pub(super) fn with_regexes(self, bytes: usize) -> Layout {
        Layout {
            regex_bytes: bytes,
            ..self
        }
    }

    /// How many items there are.
    pub(super) fn items(&self) -> usize {
        self.starts.len()
    }

    /// The text `new` in short; none if it must be read in full.
    pub(super) fn shorten(&self, new: &str) -> Option<Short> {
        let old = &*self.text;
        let same_before = common(old.bytes(), new.bytes());
        // The last item whose dash stands where it stood may go on in what changed.
        let dashes = |start: &u32| *start as usize + self.indent < same_before;
        let kept_before = self.starts.partition_point(dashes).checked_sub(1)?;
        if has_anchors(new) {
            return None;
        }
        let from = self.starts[kept_before] as usize;
        let rest = old.len().min(new.len()) - same_before;
        let same_after = common(old.bytes().rev(), new.bytes().rev()).min(rest);
        let changed = old.len() - same_after;
        // The first item that begins after what changed is read again, to see that it still is an item.
        let guard = self
            .starts
            .partition_point(|start| *start as usize <= changed)
            .max(kept_before + 1);
        let kept_after = self.starts.len().saturating_sub(guard + 1);
        let bytes_moved = i64::try_from(new.len()).ok()? - i64::try_from(old.len()).ok()?;
        let moved = |start: u32| usize::try_from(i64::from(start).saturating_add(bytes_moved)).ok();
        let mut short = Short {
            text: new.get(..self.starts[0] as usize)?.to_owned(),
            gaps: Vec::new(),
            kept: KeptItems {
                before: kept_before,
                after: kept_after,
                lines_moved: 0,
            },
            guard: None,
            cut_before: from - self.starts[0] as usize,
            bytes_moved,
        };
        short.cut(new.get(self.starts[0] as usize..from)?);
        if kept_after == 0 {
            short.text.push_str(new.get(from..)?);
        } else {
            let start = moved(self.starts[guard])?;
            let (next, end) = (moved(self.starts[guard + 1])?, moved(self.end)?);
            short.guard = u32::try_from(short.text.len() + start - from).ok();
            short.text.push_str(new.get(from..next)?);
            short.cut(new.get(next..end)?);
            short.text.push_str(new.get(end..)?);
            let lines = |text: &str| i64::try_from(count_lines(text)).unwrap_or(0);
            let old_from = old.get(from..self.starts[guard] as usize)?;
            short.kept.lines_moved = lines(new.get(from..start)?) - lines(old_from);
        }
        (short.text.len() <= new.len() / 2).then_some(short)
    }

    /// The layout of the text `new`, which in short reads as `root`, with expressions of so many bytes; none if it turns out that it had to be read in
    /// full.
    pub(super) fn join(
        &self,
        short: &Short,
        (root, regex_bytes): (&Node, usize),
        new: &str,
    ) -> Option<Layout> {
        let read = Layout::of(root, self.list, &short.text)?;
        let first = *self.starts.first()?;
        let same = read.starts.first() == Some(&first)
            && read.indent == self.indent
            && read.root == self.root
            && short.guard.is_none_or(|at| read.starts.last() == Some(&at));
        let nodes = self.nodes + read.nodes;
        let regex_bytes = self.regex_bytes.saturating_add(regex_bytes);
        if !same || nodes > DOCUMENT_NODES_MAX || regex_bytes > OBJECT_BYTES_MAX {
            return None;
        }
        let cut_before = u32::try_from(short.cut_before).ok()?;
        let known = self.starts.iter().copied();
        let mut starts: Vec<u32> = known.clone().take(short.kept.before).collect();
        starts.extend(read.starts.iter().map(|start| start + cut_before));
        let moved = |at: u32| u32::try_from(i64::from(at) + short.bytes_moved).ok();
        let after = known.skip(self.starts.len() - short.kept.after);
        for start in after {
            starts.push(moved(start)?);
        }
        let end = match short.kept.after {
            0 => read.end + cut_before,
            _ => moved(self.end)?,
        };
        Some(Layout {
            list: self.list,
            text: new.into(),
            starts,
            indent: self.indent,
            end,
            root: self.root,
            nodes,
            regex_bytes,
        })
    }
}

impl Short {
    /// The lines of the short text, counted as in the whole one.
    pub(super) fn lines(&self) -> Lines {
        Lines::with_gaps(&self.text, self.gaps.clone())
    }

    /// Notes that these lines are missing here.
    fn cut(&mut self, lines: &str) {
        let narrow = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let above = self.gaps.last().map_or(0, |gap| gap.lines);
        self.gaps.push(Gap {
            before: narrow(count_lines(&self.text)),
            lines: above.saturating_add(narrow(count_lines(lines))),
        });
    }
}

/// Whether a text may have anchors or aliases, by which one part of it repeats another.
fn has_anchors(text: &str) -> bool {
    text.contains('&') || text.contains("<<")
}

/// Where the first line of an item starts, and where its dash stands in it: first, or the item has no line to itself.
fn first_line(item: &Node, text: &str) -> Option<(usize, usize)> {
    if !matches!(item.value, Value::Map(_)) {
        return None;
    }
    let before = text.get(..item.span.start as usize)?.trim_end();
    let dash = before.strip_suffix('-')?.len();
    let start = text[..dash].rfind('\n').map_or(0, |at| at + 1);
    text[start..dash]
        .bytes()
        .all(|byte| byte == b' ')
        .then_some((start, dash))
}

/// How many nodes a document has, its keys among them.
fn count(node: &Node) -> usize {
    let entries = node.entries().iter().map(|entry| 1 + count(&entry.value));
    let items = node.items().iter().map(count);
    1 + entries.sum::<usize>() + items.sum::<usize>()
}

fn count_lines(text: &str) -> usize {
    text.bytes().filter(|&byte| byte == b'\n').count()
}

/// How many bytes are the same in front.
fn common(a: impl Iterator<Item = u8>, b: impl Iterator<Item = u8>) -> usize {
    a.zip(b).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests;
