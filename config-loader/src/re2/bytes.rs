//! Conversion of expressions over Latin-1 characters to expressions over bytes.

use regex_syntax::hir::{Capture, Class, ClassBytes, ClassBytesRange, Hir, HirKind, Repetition};

/// Converts an expression: each character up to 0xFF becomes the byte with its code. Other characters match nothing.
pub(super) fn of(hir: Hir) -> Hir {
    let all = |parts: Vec<Hir>| parts.into_iter().map(of).collect();
    match hir.into_kind() {
        HirKind::Empty => Hir::empty(),
        HirKind::Look(look) => Hir::look(look),
        HirKind::Literal(literal) => literal_of(&literal.0),
        HirKind::Class(class) => Hir::class(class_of(class)),
        HirKind::Repetition(repetition) => Hir::repetition(Repetition {
            sub: Box::new(of(*repetition.sub)),
            ..repetition
        }),
        HirKind::Capture(capture) => Hir::capture(Capture {
            sub: Box::new(of(*capture.sub)),
            ..capture
        }),
        HirKind::Concat(parts) => Hir::concat(all(parts)),
        HirKind::Alternation(parts) => Hir::alternation(all(parts)),
    }
}

/// Converts a literal, which is encoded in UTF-8.
fn literal_of(literal: &[u8]) -> Hir {
    let text = str::from_utf8(literal).ok();
    let bytes = text.and_then(|text| text.chars().map(|c| u8::try_from(c).ok()).collect());
    bytes.map_or_else(Hir::fail, |bytes: Vec<u8>| Hir::literal(bytes))
}

fn class_of(class: Class) -> Class {
    let class = match class {
        Class::Bytes(class) => class,
        Class::Unicode(class) => {
            let ranges = class.iter().filter_map(|range| {
                let start = u8::try_from(range.start()).ok()?;
                let end = u8::try_from(range.end()).unwrap_or(u8::MAX);
                Some(ClassBytesRange::new(start, end))
            });
            ClassBytes::new(ranges)
        }
    };
    Class::Bytes(class)
}
