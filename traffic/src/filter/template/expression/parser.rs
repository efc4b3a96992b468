//! Tokens to a tree.

use super::attribute::{Attribute, HeaderMapOf};
use super::error::ExpressionError;
use super::functions::Function;
use super::lexer::{Token, tokens};
use super::node::{CompileRegex, Node, Operator};
use super::value::Value;

/// Maximum number of nodes.
const NODES_MAX: usize = 256;

/// Maximum depth of brackets, operators and choices.
const DEPTH_MAX: usize = 64;

/// Macros of CEL that go through lists.
const MACROS: [&str; 5] = ["all", "exists", "exists_one", "filter", "map"];

/// Parses a whole text.
pub(super) fn parse(text: &str, compile: CompileRegex<'_>) -> Result<Node, ExpressionError> {
    let tokens = tokens(text)?;
    let mut parser = Parser {
        tokens,
        next: 0,
        depth: 0,
        compile,
    };
    let root = parser.expression()?;
    if *parser.peek() != Token::End {
        return parser.error("expected an operator or the end");
    }
    if root.count() > NODES_MAX {
        return Err(ExpressionError::new(
            0,
            "the expression has more than 256 parts",
        ));
    }
    Ok(root)
}

struct Parser<'t, 'c> {
    tokens: Vec<(usize, Token<'t>)>,
    next: usize,
    depth: usize,
    compile: CompileRegex<'c>,
}

/// Operand while its members are read.
enum Operand {
    Node(Node),
    /// Names of an attribute.
    Path(Vec<String>),
}

impl<'t> Parser<'t, '_> {
    fn peek(&self) -> &Token<'t> {
        &self.tokens[self.next].1
    }

    fn at(&self) -> usize {
        self.tokens[self.next].0
    }

    fn take(&mut self) -> Token<'t> {
        let token = self.peek().clone();
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        token
    }

    fn takes(&mut self, sign: &str) -> bool {
        let is_next = matches!(self.peek(), Token::Sign(next) if *next == sign);
        if is_next {
            self.take();
        }
        is_next
    }

    fn expect(&mut self, sign: &str) -> Result<(), ExpressionError> {
        match self.takes(sign) {
            true => Ok(()),
            false => self.error(format!("expected `{sign}`")),
        }
    }

    fn error<T>(
        &self,
        reason: impl Into<std::borrow::Cow<'static, str>>,
    ) -> Result<T, ExpressionError> {
        Err(ExpressionError::new(self.at(), reason))
    }

    fn deeper<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, ExpressionError>,
    ) -> Result<T, ExpressionError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return self.error("the expression is nested more than 64 times");
        }
        let result = read(self);
        self.depth -= 1;
        result
    }

    fn expression(&mut self) -> Result<Node, ExpressionError> {
        self.deeper(|parser| {
            let condition = parser.either()?;
            if !parser.takes("?") {
                return Ok(condition);
            }
            let then = parser.expression()?;
            parser.expect(":")?;
            let otherwise = parser.expression()?;
            Ok(Node::Choice(Box::new([condition, then, otherwise])))
        })
    }

    fn either(&mut self) -> Result<Node, ExpressionError> {
        let mut left = self.both()?;
        while self.takes("||") {
            left = Node::Or(Box::new([left, self.both()?]));
            self.check_depth(&left)?;
        }
        Ok(left)
    }

    fn both(&mut self) -> Result<Node, ExpressionError> {
        let mut left = self.relation()?;
        while self.takes("&&") {
            left = Node::And(Box::new([left, self.relation()?]));
            self.check_depth(&left)?;
        }
        Ok(left)
    }

    /// Limits chains of operators, which are trees as deep as they are long.
    fn check_depth(&self, node: &Node) -> Result<(), ExpressionError> {
        match node.count() > NODES_MAX {
            true => self.error("the expression has more than 256 parts"),
            false => Ok(()),
        }
    }

    fn relation(&mut self) -> Result<Node, ExpressionError> {
        const RELATIONS: [(&str, Operator); 6] = [
            ("==", Operator::Equal),
            ("!=", Operator::NotEqual),
            ("<", Operator::Less),
            ("<=", Operator::LessOrEqual),
            (">", Operator::Greater),
            (">=", Operator::GreaterOrEqual),
        ];
        let left = self.binary(&[("+", Operator::Add), ("-", Operator::Subtract)])?;
        if *self.peek() == Token::Name("in") {
            self.take();
            return self.membership(left);
        }
        let found = RELATIONS.into_iter().find(|(sign, _)| self.takes(sign));
        let Some((_, operator)) = found else {
            return Ok(left);
        };
        let right = self.binary(&[("+", Operator::Add), ("-", Operator::Subtract)])?;
        Ok(Node::Operation(operator, Box::new([left, right])))
    }

    fn membership(&mut self, left: Node) -> Result<Node, ExpressionError> {
        if self.takes("[") {
            let list = self.list("]")?;
            return Ok(Node::In(Box::new(left), list.into()));
        }
        let at = self.at();
        match self.operand()? {
            Operand::Path(path) if HeaderMapOf::find(&path).is_some() => {
                let map = HeaderMapOf::find(&path).unwrap_or(HeaderMapOf::Request);
                Ok(Node::InHeaders(Box::new(left), map))
            }
            _ => Err(ExpressionError::new(
                at,
                "`in` is followed by a list, or by headers such as `request.headers`",
            )),
        }
    }

    fn list(&mut self, end: &str) -> Result<Vec<Node>, ExpressionError> {
        let mut list = Vec::new();
        while !self.takes(end) {
            if !list.is_empty() {
                self.expect(",")?;
            }
            list.push(self.expression()?);
        }
        Ok(list)
    }

    fn binary(&mut self, operators: &[(&str, Operator)]) -> Result<Node, ExpressionError> {
        const FACTORS: [(&str, Operator); 3] = [
            ("*", Operator::Multiply),
            ("/", Operator::Divide),
            ("%", Operator::Remainder),
        ];
        let is_sum = operators.len() == 2;
        let operand = |parser: &mut Self| match is_sum {
            true => parser.binary(&FACTORS),
            false => parser.unary(),
        };
        let mut left = operand(self)?;
        loop {
            let found = operators.iter().find(|(sign, _)| self.takes(sign));
            let Some((_, operator)) = found else {
                return Ok(left);
            };
            let right = operand(self)?;
            left = Node::Operation(*operator, Box::new([left, right]));
            self.check_depth(&left)?;
        }
    }

    fn unary(&mut self) -> Result<Node, ExpressionError> {
        if self.takes("!") {
            let inner = self.deeper(Self::unary)?;
            return Ok(Node::Not(Box::new(inner)));
        }
        if self.takes("-") {
            let minimum = Node::Literal(Value::Int(i64::MIN));
            if *self.peek() == Token::IntMin {
                self.take();
                return Ok(minimum);
            }
            return Ok(match self.deeper(Self::unary)? {
                Node::Literal(Value::Int(value)) => Node::Literal(Value::Int(-value)),
                Node::Literal(Value::Double(value)) => Node::Literal(Value::Double(-value)),
                inner => Node::Negative(Box::new(inner)),
            });
        }
        let at = self.at();
        let operand = self.operand()?;
        self.finish(operand, at)
    }

    /// Finishes an operand: names become an attribute.
    fn finish(&self, operand: Operand, at: usize) -> Result<Node, ExpressionError> {
        match operand {
            Operand::Node(node) => Ok(node),
            Operand::Path(path) => attribute(&path, at).map(Node::Attribute),
        }
    }

    fn operand(&mut self) -> Result<Operand, ExpressionError> {
        let start = self.at();
        let mut operand = self.primary()?;
        loop {
            let at = self.at();
            if self.takes("[") {
                operand = match (operand, self.take()) {
                    (Operand::Path(mut path), Token::Text(key)) => {
                        path.push(key);
                        Operand::Path(path)
                    }
                    _ => return Err(ExpressionError::new(at, "expected a name in quotes")),
                };
                self.expect("]")?;
            } else if self.takes(".") {
                let Token::Name(name) = self.take() else {
                    return self.error("expected a name after `.`");
                };
                operand = match operand {
                    _ if MACROS.contains(&name) => {
                        let reason = format!("`{name}` is not supported");
                        return Err(ExpressionError::new(at, reason));
                    }
                    operand if self.takes("(") => {
                        let text = self.finish(operand, start)?;
                        Operand::Node(self.method(name, text, at)?)
                    }
                    Operand::Path(mut path) => {
                        path.push(name.to_owned());
                        Operand::Path(path)
                    }
                    Operand::Node(_) => {
                        return Err(ExpressionError::new(at, "a value has no fields"));
                    }
                };
            } else {
                return Ok(operand);
            }
        }
    }

    fn primary(&mut self) -> Result<Operand, ExpressionError> {
        let at = self.at();
        let literal = match self.take() {
            Token::Double(value) => Value::Double(value),
            Token::Int(value) => Value::Int(value),
            Token::Uint(value) => Value::Uint(value),
            Token::Text(text) => Value::Text(text.into_bytes().into()),
            Token::Name("true") => Value::Bool(true),
            Token::Name("false") => Value::Bool(false),
            Token::Name("null") => Value::Null,
            Token::Name(name) if self.takes("(") => {
                return self.function(name, at).map(Operand::Node);
            }
            Token::Name(name) => return Ok(Operand::Path(vec![name.to_owned()])),
            Token::Sign("(") => {
                let inner = self.expression()?;
                self.expect(")")?;
                return Ok(Operand::Node(inner));
            }
            Token::Sign("[") => {
                return Err(ExpressionError::new(at, "a list is only after `in`"));
            }
            Token::End => return Err(ExpressionError::new(at, "the expression is not complete")),
            Token::IntMin | Token::Sign(_) => {
                return Err(ExpressionError::new(at, "expected a value"));
            }
        };
        Ok(Operand::Node(Node::Literal(literal)))
    }

    /// Reads a call without a text before it; the bracket is read.
    fn function(&mut self, name: &str, at: usize) -> Result<Node, ExpressionError> {
        if name == "has" {
            return self.has();
        }
        let arguments = self.list(")")?;
        call(name, arguments, false, at)
    }

    /// Reads the attribute of `has`, of which the last part is a field, as in CEL.
    fn has(&mut self) -> Result<Node, ExpressionError> {
        let at = self.at();
        let Operand::Path(path) = self.operand()? else {
            return Err(ExpressionError::new(at, "`has` takes an attribute"));
        };
        let is_field = matches!(&self.tokens[self.next - 1].1, Token::Name(_));
        if path.len() < 2 || !is_field {
            let reason = "`has` takes a field: write `has(request.headers.NAME)`, or `'NAME' in request.headers`";
            return Err(ExpressionError::new(at, reason));
        }
        self.expect(")")?;
        attribute(&path, at).map(Node::Has)
    }

    /// Reads a method of a text; the bracket is read.
    fn method(&mut self, name: &str, text: Node, at: usize) -> Result<Node, ExpressionError> {
        let mut arguments = self.list(")")?;
        match (name, &arguments[..]) {
            ("matches", [Node::Literal(Value::Text(pattern))]) => {
                let pattern = String::from_utf8_lossy(pattern);
                let compiled = (self.compile)(&pattern);
                let compiled = compiled.map_err(|reason| ExpressionError::new(at, reason))?;
                Ok(Node::Matches(Box::new(text), compiled))
            }
            ("matches", _) => {
                let reason = "`matches` takes a regular expression in quotes";
                Err(ExpressionError::new(at, reason))
            }
            ("split", [_]) => {
                let number = self.index(at)?;
                let separator = arguments.remove(0);
                Ok(Node::Split(Box::new([text, separator]), number))
            }
            _ => {
                arguments.insert(0, text);
                call(name, arguments, true, at)
            }
        }
    }

    /// Reads the number of a part, which follows `split`.
    fn index(&mut self, at: usize) -> Result<usize, ExpressionError> {
        let wrong = "`split` is followed by the number of a part, such as `[0]`";
        let is_open = self.takes("[");
        match self.take() {
            Token::Int(number) if is_open => {
                self.expect("]")?;
                usize::try_from(number).map_err(|_| ExpressionError::new(at, wrong))
            }
            _ => Err(ExpressionError::new(at, wrong)),
        }
    }
}

fn attribute(path: &[String], at: usize) -> Result<Attribute, ExpressionError> {
    if let [namespace, names] = path
        && HeaderMapOf::find(path).is_some()
    {
        let reason = format!("name a header: `{namespace}.{names}['NAME']`");
        return Err(ExpressionError::new(at, reason));
    }
    Attribute::find(path).map_err(|reason| ExpressionError::new(at, reason))
}

fn call(
    name: &str,
    arguments: Vec<Node>,
    is_method: bool,
    at: usize,
) -> Result<Node, ExpressionError> {
    let Some((function, count)) = Function::find(name, is_method) else {
        return Err(ExpressionError::new(
            at,
            format!("there is no function `{name}`"),
        ));
    };
    if arguments.len() != count {
        return Err(ExpressionError::new(
            at,
            format!("`{name}` takes other arguments"),
        ));
    }
    Ok(Node::Call(function, arguments.into()))
}
