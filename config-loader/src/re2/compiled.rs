//! A compiled expression, and the memory that it takes.

use std::sync::Arc;

use regex::bytes::Regex;
use regex_syntax::hir::{Class, Hir, HirKind};

/// A compiled expression.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The expression.
    pub regex: Arc<Regex>,
    /// Estimate of the bytes that it takes.
    pub bytes: usize,
}

/// Extent of a value that an expression has to match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Extent {
    /// Any part, as Envoy rewrites paths.
    Part,
    /// The whole, as Envoy matches paths, headers and the like.
    Whole,
}

/// Bytes of one state of a compiled expression, and of the transition of one range of a class.
const STATE_BYTES: usize = 32;
const RANGE_BYTES: usize = 8;

/// Estimate of the bytes that an expression compiles to: its states, those of a repetition as often as it is repeated.
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
