//! Positions of the items of a long list in a text, so that a change of a few items does not parse the whole text.
//!
//! A changed text is parsed *in short*: without list items that are unchanged. Only whole items of a block list in
//! `spec` with equal indentation are cut out. At the start of such an item the parser state is the same for every item
//! of the list, so cutting out some items does not change how the others are parsed. Texts with anchors are an
//! exception, and are always parsed in full.

use std::sync::Arc;

use super::long_list::KeptItems;
use crate::parse::{DOCUMENT_NODES_MAX, Node, Value};
use crate::re2::OBJECT_BYTES_MAX;
use crate::span::{Gap, Lines};

/// Minimum length of a text with a layout, in bytes. Parsing a shorter text in full is as fast.
const TEXT_BYTES_MIN: usize = if cfg!(test) { 1 } else { 16 << 10 };

/// Text with the positions of the items of a list in its `spec`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Field name of the list.
    list: &'static str,
    pub(super) text: Arc<str>,
    /// Byte offset of the first line of each item.
    starts: Vec<u32>,
    /// Indentation of the dashes, in bytes.
    indent: usize,
    /// Byte offset of the line after the last item.
    end: u32,
    /// Byte offset of the root node.
    pub(super) root: u32,
    /// Upper bound of the number of nodes of the document.
    nodes: usize,
    /// Upper bound of the compiled size of the object's regular expressions, in bytes.
    regex_bytes: usize,
}

/// Shortened text, without its unchanged items.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Short {
    pub(super) text: String,
    pub(super) gaps: Vec<Gap>,
    /// Items that were cut out.
    pub(super) kept: KeptItems,
    /// Required byte offset, in the short text, of the last remaining item, if that item did not change.
    guard: Option<u32>,
    /// Number of bytes cut out before the changed items.
    cut_before: usize,
    /// Distance in bytes by which the items after the cut moved.
    bytes_moved: i64,
}

impl Layout {
    /// Returns the layout of a text that parses to `root`, if it is long enough and its items can be separated.
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

    /// Sets the compiled size of the object's regular expressions, in bytes.
    pub(super) fn with_regexes(self, bytes: usize) -> Layout {
        Layout {
            regex_bytes: bytes,
            ..self
        }
    }

    /// Number of items.
    pub(super) fn items(&self) -> usize {
        self.starts.len()
    }

    /// Returns the shortened form of the text `new`; `None` if it must be parsed in full.
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

    /// Returns the layout of the text `new`, whose short form parses to `root`; `None` if `new` must be parsed in full
    /// after all.
    pub(super) fn join(
        &self,
        short: &Short,
        root: &Node,
        regex_bytes: usize,
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
    /// Returns the line index of the short text, with line numbers of the full text.
    pub(super) fn lines(&self) -> Lines {
        Lines::with_gaps(&self.text, self.gaps.clone())
    }

    /// Records that these lines are cut out at the end of the short text.
    fn cut(&mut self, lines: &str) {
        let narrow = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let above = self.gaps.last().map_or(0, |gap| gap.lines);
        self.gaps.push(Gap {
            before: narrow(count_lines(&self.text)),
            lines: above.saturating_add(narrow(count_lines(lines))),
        });
    }
}

/// Whether a text may contain anchors or aliases.
fn has_anchors(text: &str) -> bool {
    text.contains('&') || text.contains("<<")
}

/// Returns the byte offsets of an item's first line and of its dash. `None` if other text precedes the dash on that
/// line.
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

/// Number of nodes of a tree, including its keys.
fn count(node: &Node) -> usize {
    let entries = node.entries().iter().map(|entry| 1 + count(&entry.value));
    let items = node.items().iter().map(count);
    1 + entries.sum::<usize>() + items.sum::<usize>()
}

fn count_lines(text: &str) -> usize {
    text.bytes().filter(|&byte| byte == b'\n').count()
}

/// Length of the common prefix, in bytes.
fn common(a: impl Iterator<Item = u8>, b: impl Iterator<Item = u8>) -> usize {
    a.zip(b).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests;
