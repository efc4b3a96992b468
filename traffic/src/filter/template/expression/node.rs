//! Tree of an expression.

use super::attribute::{Attribute, HeaderMapOf};
use super::functions::Function;
use super::value::Value;
use crate::pattern::Pattern;

/// Compiles the regular expression of `matches`.
pub type CompileRegex<'a> = &'a mut dyn FnMut(&str) -> Result<Pattern, String>;

/// Part of an expression.
#[derive(Clone, Debug)]
pub(super) enum Node {
    And(Box<[Node; 2]>),
    Attribute(Attribute),
    Call(Function, Box<[Node]>),
    Choice(Box<[Node; 3]>),
    Has(Attribute),
    /// Whether one of the values of a list is equal.
    In(Box<Node>, Box<[Node]>),
    /// Whether a header with this name exists.
    InHeaders(Box<Node>, HeaderMapOf),
    Literal(Value<'static>),
    Matches(Box<Node>, Pattern),
    Negative(Box<Node>),
    Not(Box<Node>),
    Operation(Operator, Box<[Node; 2]>),
    Or(Box<[Node; 2]>),
    /// Part of a text between separators: text, separator, and number of the part.
    Split(Box<[Node; 2]>, usize),
}

/// Operator of two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Divide,
    Equal,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    Multiply,
    NotEqual,
    Remainder,
    Subtract,
}

impl Node {
    /// Direct parts.
    fn parts(&self) -> (Option<&Node>, &[Node]) {
        match self {
            Self::And(parts)
            | Self::Operation(_, parts)
            | Self::Or(parts)
            | Self::Split(parts, _) => (None, &parts[..]),
            Self::Attribute(_) | Self::Has(_) | Self::Literal(_) => (None, &[]),
            Self::Call(_, parts) => (None, parts),
            Self::Choice(parts) => (None, &parts[..]),
            Self::In(one, parts) => (Some(one), parts),
            Self::InHeaders(one, _)
            | Self::Matches(one, _)
            | Self::Negative(one)
            | Self::Not(one) => (Some(one), &[]),
        }
    }

    fn for_each(&self, act: &mut impl FnMut(&Self)) {
        act(self);
        let (one, others) = self.parts();
        for part in one.into_iter().chain(others) {
            part.for_each(act);
        }
    }

    /// Calls `act` with each attribute, and whether only its presence is read.
    pub(super) fn for_each_attribute(&self, act: &mut impl FnMut(&Attribute, bool)) {
        self.for_each(&mut |node| match node {
            Self::Attribute(attribute) => act(attribute, false),
            Self::Has(attribute) => act(attribute, true),
            Self::InHeaders(name, of) => {
                if let Self::Literal(Value::Text(name)) = &**name
                    && let Some(attribute) = of.header(name)
                {
                    act(&attribute, true);
                }
            }
            _ => {}
        });
    }

    /// Calls `act` with each attribute that the value is made of, not with attributes of conditions.
    pub(super) fn for_each_source(&self, act: &mut impl FnMut(&Attribute)) {
        match self {
            Self::Attribute(attribute) => act(attribute),
            Self::Call(function, parts) if function.keeps_values() => parts[0].for_each_source(act),
            Self::Choice(parts) => parts[1..].iter().for_each(|part| part.for_each_source(act)),
            Self::Operation(Operator::Add, parts) => {
                parts.iter().for_each(|part| part.for_each_source(act));
            }
            Self::Split(parts, _) => parts[0].for_each_source(act),
            _ => {}
        }
    }

    /// Whether the expression reads anything of a request.
    pub(super) fn reads_any(&self) -> bool {
        let mut reads = false;
        self.for_each(&mut |node| {
            reads |= matches!(
                node,
                Self::Attribute(_) | Self::Has(_) | Self::InHeaders(..)
            );
        });
        reads
    }

    /// Whether the presence of an attribute is read anywhere.
    pub(super) fn guards(&self, guarded: &Attribute) -> bool {
        let mut found = false;
        self.for_each_attribute(&mut |attribute, is_guard| {
            found |= is_guard && attribute == guarded;
        });
        found
    }

    /// Whether there is a function or an operator on texts that Envoy lacks in filters.
    pub(super) fn has_text_function(&self) -> bool {
        let mut found = false;
        self.for_each(&mut |node| {
            found |= match node {
                Self::Call(function, _) => function.is_of_texts(),
                Self::Operation(Operator::Add, parts) => parts
                    .iter()
                    .any(|part| matches!(part, Self::Literal(Value::Text(_)))),
                Self::Split(..) => true,
                _ => false,
            };
        });
        found
    }

    /// Number of nodes.
    pub(super) fn count(&self) -> usize {
        let mut count = 0;
        self.for_each(&mut |_| count += 1);
        count
    }
}
