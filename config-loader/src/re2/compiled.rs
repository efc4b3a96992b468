//! Compiled regular expression and its memory size.

use std::sync::Arc;

use regex::bytes::Regex;
use regex_syntax::hir::{Class, Hir, HirKind};

/// Compiled regular expression.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// Expression of the crate `regex`.
    pub regex: Arc<Regex>,
    /// Estimated memory size, in bytes.
    pub bytes: usize,
}

/// Part of a value that an expression has to match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Extent {
    /// Any part of the value, as in Envoy's path rewrites.
    Part,
    /// Whole value, as in Envoy's matches of paths and headers.
    Whole,
}

/// Estimated size of a state, and of the transition for one range of a class, in bytes.
const STATE_BYTES: usize = 32;
const RANGE_BYTES: usize = 8;

/// Estimates the compiled size of an expression, in bytes. The states of a repetition count once per repetition.
pub(super) fn bytes_of(hir: &Hir) -> usize {
    let all = |parts: &[Hir]| {
        let bytes = parts
            .iter()
            .map(|part| bytes_of(part).saturating_add(STATE_BYTES));
        bytes.fold(0, usize::saturating_add)
    };
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => STATE_BYTES,
        HirKind::Literal(literal) => literal.0.len() * STATE_BYTES,
        HirKind::Class(Class::Bytes(class)) => STATE_BYTES + class.ranges().len() * RANGE_BYTES,
        HirKind::Class(Class::Unicode(class)) => STATE_BYTES + class.ranges().len() * RANGE_BYTES,
        HirKind::Repetition(repetition) => {
            let times = repetition.max.unwrap_or(repetition.min).max(1) as usize;
            let once = bytes_of(&repetition.sub).saturating_add(STATE_BYTES);
            once.saturating_mul(times)
        }
        HirKind::Capture(capture) => bytes_of(&capture.sub).saturating_add(2 * STATE_BYTES),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => all(parts),
    }
}
