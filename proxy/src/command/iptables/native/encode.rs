//! Encodes rules as expressions of nf_tables, each of which loads a register, compares it, or acts.
//!
//! The constants are those of linux/netfilter/nf_tables.h.

use std::net::IpAddr;

use ipnet::IpNet;

use super::super::capture::PortRange;
use super::super::netlink::Message;
use super::super::rule::{Match, Rule, Target};
use super::super::rules::Family;

/// Message type that adds a rule.
pub(crate) const NEW_RULE: u16 = 6;
const RULE_TABLE: u16 = 1;
const RULE_CHAIN: u16 = 2;
const RULE_EXPRESSIONS: u16 = 4;
const LIST_ELEMENT: u16 = 1;
const EXPRESSION_NAME: u16 = 1;
const EXPRESSION_DATA: u16 = 2;
const DATA_VALUE: u16 = 1;
const DATA_VERDICT: u16 = 2;
const VERDICT_CODE: u16 = 1;
const VERDICT_CHAIN: u16 = 2;

/// Register for verdicts, and the one for all other values.
const VERDICT_REGISTER: u32 = 0;
const REGISTER: u32 = 1;

const DROP: i32 = 0;
const ACCEPT: i32 = 1;
/// Continues in another chain, and returns from it.
const JUMP: i32 = -3;
const RETURN: i32 = -5;

const META_MARK: u32 = 3;
const META_IN: u32 = 6;
const META_OUT: u32 = 7;
const META_USER: u32 = 10;
const META_GROUP: u32 = 11;
const META_PROTOCOL: u32 = 16;
const CONNECTION_STATE: u32 = 0;
const CONNECTION_MARK: u32 = 3;
const NETWORK_HEADER: u32 = 1;
const TRANSPORT_HEADER: u32 = 2;

/// States of a connection: `ESTABLISHED` and `RELATED`.
const ESTABLISHED_OR_RELATED: u32 = 2 | 4;
const INTERFACE_NAME: usize = 16;
const TCP: u8 = 6;

/// Flag: redirect to the given port.
const PROTOCOL_SPECIFIED: u32 = 2;

/// Comparison of a register with a value.
#[derive(Clone, Copy)]
enum Is {
    Equal = 0,
    NotEqual = 1,
    AtMost = 3,
    AtLeast = 5,
}

/// Expression of nf_tables.
#[derive(Clone, Debug)]
pub(crate) struct Expression {
    name: &'static str,
    data: Vec<Attribute>,
}

/// Attribute of an expression.
#[derive(Clone, Debug)]
enum Attribute {
    Number(u16, u32),
    Value(u16, Vec<u8>),
    Verdict(u16, i32, Option<String>),
}

/// Writes the attributes of a message that adds a rule.
pub(crate) fn write_rule(
    message: &mut Message,
    table: &str,
    chain: &str,
    expressions: &[Expression],
) {
    message.text(RULE_TABLE, table);
    message.text(RULE_CHAIN, chain);
    message.nested(RULE_EXPRESSIONS, |list| {
        for expression in expressions {
            list.nested(LIST_ELEMENT, |element| expression.write(element));
        }
    });
}

impl Expression {
    fn new(name: &'static str, data: impl IntoIterator<Item = Attribute>) -> Self {
        Self {
            name,
            data: data.into_iter().collect(),
        }
    }

    fn write(&self, message: &mut Message) {
        message.text(EXPRESSION_NAME, self.name);
        message.nested(EXPRESSION_DATA, |data| {
            for attribute in &self.data {
                attribute.write(data);
            }
        });
    }
}

impl Attribute {
    fn write(&self, message: &mut Message) {
        match self {
            Self::Number(kind, value) => message.number(*kind, *value),
            Self::Value(kind, value) => {
                message.nested(*kind, |data| data.bytes(DATA_VALUE, value));
            }
            Self::Verdict(kind, code, chain) => message.nested(*kind, |data| {
                data.nested(DATA_VERDICT, |verdict| {
                    verdict.bytes(VERDICT_CODE, &code.to_be_bytes());
                    if let Some(chain) = chain {
                        verdict.text(VERDICT_CHAIN, chain);
                    }
                });
            }),
        }
    }
}

fn meta(key: u32) -> Expression {
    Expression::new(
        "meta",
        [Attribute::Number(1, REGISTER), Attribute::Number(2, key)],
    )
}

fn set_meta(key: u32) -> Expression {
    Expression::new(
        "meta",
        [Attribute::Number(2, key), Attribute::Number(3, REGISTER)],
    )
}

fn connection(key: u32) -> Expression {
    Expression::new(
        "ct",
        [Attribute::Number(1, REGISTER), Attribute::Number(2, key)],
    )
}

fn set_connection(key: u32) -> Expression {
    Expression::new(
        "ct",
        [Attribute::Number(2, key), Attribute::Number(4, REGISTER)],
    )
}

fn header(base: u32, offset: u32, length: u32) -> Expression {
    let data = [(1, REGISTER), (2, base), (3, offset), (4, length)];
    let data = data.map(|(kind, value)| Attribute::Number(kind, value));
    Expression::new("payload", data)
}

fn compare(is: Is, value: &[u8]) -> Expression {
    let data = [
        Attribute::Number(1, REGISTER),
        Attribute::Number(2, is as u32),
        Attribute::Value(3, value.to_vec()),
    ];
    Expression::new("cmp", data)
}

fn mask(bits: &[u8]) -> Expression {
    let length = u32::try_from(bits.len()).unwrap_or_default();
    let data = [
        Attribute::Number(1, REGISTER),
        Attribute::Number(2, REGISTER),
        Attribute::Number(3, length),
        Attribute::Value(4, bits.to_vec()),
        Attribute::Value(5, vec![0; bits.len()]),
    ];
    Expression::new("bitwise", data)
}

fn load(value: &[u8]) -> Expression {
    let data = [
        Attribute::Number(1, REGISTER),
        Attribute::Value(2, value.to_vec()),
    ];
    Expression::new("immediate", data)
}

fn verdict(code: i32, chain: Option<&str>) -> Expression {
    let data = [
        Attribute::Number(1, VERDICT_REGISTER),
        Attribute::Verdict(2, code, chain.map(str::to_owned)),
    ];
    Expression::new("immediate", data)
}

fn tcp() -> Vec<Expression> {
    vec![meta(META_PROTOCOL), compare(Is::Equal, &[TCP])]
}

/// Encodes one of our rules as the expressions of one or more rules of nf_tables.
pub(crate) fn rule_messages(rule: &Rule, family: Family) -> Vec<Vec<Expression>> {
    let matches = rule.matches.iter();
    let matches: Vec<_> = matches.flat_map(expressions).collect();
    let targets = target(&rule.target, family).into_iter();
    targets
        .map(|target| [matches.clone(), target].concat())
        .collect()
}

fn expressions(matched: &Match) -> Vec<Expression> {
    let is = |loaded: Expression, value: &[u8]| vec![loaded, compare(Is::Equal, value)];
    match matched {
        Match::Tcp => tcp(),
        Match::Ports(ports) => [tcp(), in_ports(*ports)].concat(),
        Match::From(name) => is(meta(META_IN), &interface(name)),
        Match::Into(name) => is(meta(META_OUT), &interface(name)),
        Match::Destination(network) => in_network(*network, true, Is::Equal),
        Match::NotDestination(network) => in_network(*network, true, Is::NotEqual),
        Match::Source(network) => in_network(*network, false, Is::Equal),
        Match::User(id) => is(meta(META_USER), &id.to_ne_bytes()),
        Match::Group(id) => is(meta(META_GROUP), &id.to_ne_bytes()),
        Match::Mark(mark) => is(meta(META_MARK), &mark.to_ne_bytes()),
        Match::ConnectionMark(mark) => is(connection(CONNECTION_MARK), &mark.to_ne_bytes()),
        Match::Established => vec![
            connection(CONNECTION_STATE),
            mask(&ESTABLISHED_OR_RELATED.to_ne_bytes()),
            compare(Is::NotEqual, &[0; 4]),
        ],
    }
}

fn in_ports(ports: PortRange) -> Vec<Expression> {
    let port = header(TRANSPORT_HEADER, 2, 2);
    let (first, last) = ports.ends();
    if first == last {
        return vec![port, compare(Is::Equal, &first.to_be_bytes())];
    }
    vec![
        port,
        compare(Is::AtLeast, &first.to_be_bytes()),
        compare(Is::AtMost, &last.to_be_bytes()),
    ]
}

/// Returns the bytes of an interface name: the whole name, or its beginning if it ends with `+`.
fn interface(name: &str) -> Vec<u8> {
    if let Some(start) = name.strip_suffix('+') {
        return start.as_bytes().to_vec();
    }
    let mut bytes = name.as_bytes().to_vec();
    bytes.resize(INTERFACE_NAME, 0);
    bytes
}

fn in_network(network: IpNet, is_destination: bool, is: Is) -> Vec<Expression> {
    let octets = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let (offset, length) = match (network, is_destination) {
        (IpNet::V4(_), false) => (12, 4),
        (IpNet::V4(_), true) => (16, 4),
        (IpNet::V6(_), false) => (8, 16),
        (IpNet::V6(_), true) => (24, 16),
    };
    let mut all = vec![header(NETWORK_HEADER, offset, length)];
    if network.prefix_len() != network.max_prefix_len() {
        all.push(mask(&octets(network.netmask())));
    }
    all.push(compare(is, &octets(network.network())));
    all
}

/// Returns the expressions that carry out a target; some targets need two rules.
fn target(target: &Target, family: Family) -> Vec<Vec<Expression>> {
    let one = match target {
        Target::Return => vec![verdict(RETURN, None)],
        Target::Accept => vec![verdict(ACCEPT, None)],
        Target::Jump(chain) => vec![verdict(JUMP, Some(chain))],
        Target::Redirect(port) => {
            let data = [
                Attribute::Number(1, REGISTER),
                Attribute::Number(3, PROTOCOL_SPECIFIED),
            ];
            vec![load(&port.to_be_bytes()), Expression::new("redir", data)]
        }
        Target::SetMark(mark) => vec![load(&mark.to_ne_bytes()), set_meta(META_MARK)],
        Target::SaveMark => vec![meta(META_MARK), set_connection(CONNECTION_MARK)],
        Target::RestoreMark => vec![connection(CONNECTION_MARK), set_meta(META_MARK)],
        Target::Intercept { port, mark } => {
            let family = match family {
                Family::V4 => libc::NFPROTO_IPV4,
                Family::V6 => libc::NFPROTO_IPV6,
            };
            let family = u32::try_from(family).unwrap_or_default();
            let data = [Attribute::Number(1, family), Attribute::Number(3, REGISTER)];
            let accepted = vec![
                load(&port.to_be_bytes()),
                Expression::new("tproxy", data),
                load(&mark.to_ne_bytes()),
                set_meta(META_MARK),
                verdict(ACCEPT, None),
            ];
            // if no proxy listens, the workload must not get the packet either
            return vec![accepted, vec![verdict(DROP, None)]];
        }
    };
    vec![one]
}
