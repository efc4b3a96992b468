//! Evaluation of an expression. Allocates nothing, but for addresses and functions that make new texts.

use super::super::context::TemplateContext;
use super::functions;
use super::node::{Node, Operator};
use super::value::{NoValue, Value};

type Outcome<'a> = Result<Value<'a>, NoValue>;

/// Value of a node.
pub(super) fn value<'a>(node: &'a Node, of: &TemplateContext<'a>) -> Outcome<'a> {
    match node {
        Node::And(sides) => decide(sides, of, false),
        Node::Attribute(attribute) => attribute.read(of),
        Node::Call(function, arguments) => {
            let [first, rest @ ..] = &**arguments else {
                return Err(NoValue);
            };
            let second = rest.first().map(|second| value(second, of));
            functions::call(*function, value(first, of)?, second.transpose()?)
        }
        Node::Choice(parts) => {
            let [condition, then, otherwise] = &**parts;
            match value(condition, of)? {
                Value::Bool(true) => value(then, of),
                Value::Bool(false) => value(otherwise, of),
                _ => Err(NoValue),
            }
        }
        Node::Has(attribute) => Ok(Value::Bool(attribute.read(of).is_ok())),
        Node::In(one, list) => {
            let one = value(one, of)?;
            let mut is_in = false;
            for other in list {
                is_in |= one.is_equal(&value(other, of)?);
            }
            Ok(Value::Bool(is_in))
        }
        Node::InHeaders(name, map) => match (value(name, of)?, map.of(of)) {
            (Value::Text(name), Some(_)) => {
                let header = map.header(&name);
                Ok(Value::Bool(
                    header.is_some_and(|header| header.read(of).is_ok()),
                ))
            }
            _ => Err(NoValue),
        },
        Node::Literal(value) => Ok(value.clone()),
        Node::Matches(text, pattern) => match value(text, of)? {
            Value::Text(text) => Ok(Value::Bool(pattern.is_match(&text))),
            _ => Err(NoValue),
        },
        Node::Negative(one) => match value(one, of)? {
            Value::Double(number) => Ok(Value::Double(-number)),
            Value::Duration(nanos) => nanos.checked_neg().map(Value::Duration).ok_or(NoValue),
            Value::Int(number) => number.checked_neg().map(Value::Int).ok_or(NoValue),
            _ => Err(NoValue),
        },
        Node::Not(one) => match value(one, of)? {
            Value::Bool(flag) => Ok(Value::Bool(!flag)),
            _ => Err(NoValue),
        },
        Node::Operation(operator, sides) => {
            let [left, right] = &**sides;
            operator.apply(value(left, of)?, value(right, of)?)
        }
        Node::Or(sides) => decide(sides, of, true),
        Node::Split(parts, number) => {
            let [text, separator] = &**parts;
            functions::split(&value(text, of)?, &value(separator, of)?, *number)
        }
    }
}

/// `&&` and `||`: a side with the value `deciding` decides, also beside an error.
fn decide<'a>(sides: &'a [Node; 2], of: &TemplateContext<'a>, deciding: bool) -> Outcome<'a> {
    let side = |node: &'a Node| match value(node, of) {
        Ok(Value::Bool(flag)) => Ok(flag),
        _ => Err(NoValue),
    };
    let left = side(&sides[0]);
    if left == Ok(deciding) {
        return Ok(Value::Bool(deciding));
    }
    let right = side(&sides[1]);
    if right == Ok(deciding) {
        return Ok(Value::Bool(deciding));
    }
    left.and(right).map(Value::Bool)
}

impl Operator {
    fn apply<'a>(self, left: Value<'a>, right: Value<'a>) -> Outcome<'a> {
        let order = || left.compare(&right).ok_or(NoValue);
        Ok(Value::Bool(match self {
            Self::Equal => left.is_equal(&right),
            Self::NotEqual => !left.is_equal(&right),
            Self::Greater => order()?.is_gt(),
            Self::GreaterOrEqual => order()?.is_ge(),
            Self::Less => order()?.is_lt(),
            Self::LessOrEqual => order()?.is_le(),
            Self::Add | Self::Divide | Self::Multiply | Self::Remainder | Self::Subtract => {
                return self.calculate(left, right);
            }
        }))
    }

    fn calculate<'a>(self, left: Value<'a>, right: Value<'a>) -> Outcome<'a> {
        use Value::{Double, Duration, Int, Text, Time, Uint};
        let result = match (left, right) {
            (Int(a), Int(b)) => self.int(a, b).map(Int),
            (Uint(a), Uint(b)) => self.uint(a, b).map(Uint),
            (Double(a), Double(b)) => self.double(a, b).map(Double),
            (Duration(a), Duration(b)) if matches!(self, Self::Add | Self::Subtract) => {
                self.int(a, b).map(Duration)
            }
            (Time(time), Duration(nanos)) | (Duration(nanos), Time(time)) if self == Self::Add => {
                functions::moved(time, nanos).map(Time)
            }
            (Time(time), Duration(nanos)) if self == Self::Subtract => nanos
                .checked_neg()
                .and_then(|nanos| functions::moved(time, nanos))
                .map(Time),
            (Time(a), Time(b)) if self == Self::Subtract => functions::between(a, b).map(Duration),
            (Text(a), Text(b)) if self == Self::Add => {
                let mut text = a.into_owned();
                text.extend_from_slice(&b);
                Some(Text(text.into()))
            }
            _ => None,
        };
        result.ok_or(NoValue)
    }

    fn int(self, a: i64, b: i64) -> Option<i64> {
        match self {
            Self::Add => a.checked_add(b),
            Self::Divide => a.checked_div(b),
            Self::Multiply => a.checked_mul(b),
            Self::Remainder => a.checked_rem(b),
            Self::Subtract => a.checked_sub(b),
            _ => None,
        }
    }

    fn uint(self, a: u64, b: u64) -> Option<u64> {
        match self {
            Self::Add => a.checked_add(b),
            Self::Divide => a.checked_div(b),
            Self::Multiply => a.checked_mul(b),
            Self::Remainder => a.checked_rem(b),
            Self::Subtract => a.checked_sub(b),
            _ => None,
        }
    }

    fn double(self, a: f64, b: f64) -> Option<f64> {
        match self {
            Self::Add => Some(a + b),
            Self::Divide => Some(a / b),
            Self::Multiply => Some(a * b),
            Self::Subtract => Some(a - b),
            _ => None,
        }
    }
}
