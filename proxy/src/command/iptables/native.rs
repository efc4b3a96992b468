//! Rules in nf_tables tables of our own, sent to the kernel directly, for images without iptables.
//!
//! Each table of iptables becomes a table with the prefix `strait_`. All of them are replaced in one transaction.

mod encode;

use std::io;

use super::netlink::{APPEND, CREATE, Message, Subsystem, send};
use super::rule::{Hook, Match, Rule, Table, TableRules, Target};
use super::rules::Family;
use encode::{NEW_RULE, rule_messages, write_rule};

/// Constants of linux/netfilter/nfnetlink.h and nf_tables.h.
const NF_TABLES: u16 = 10;
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
const NEW_TABLE: u16 = 0;
const GET_TABLE: u16 = 1;
const DELETE_TABLE: u16 = 2;
const NEW_CHAIN: u16 = 3;
const TABLE_NAME: u16 = 1;
const CHAIN_TABLE: u16 = 1;
const CHAIN_NAME: u16 = 3;
const CHAIN_HOOK: u16 = 4;
const CHAIN_TYPE: u16 = 7;
const HOOK_NUMBER: u16 = 1;
const HOOK_PRIORITY: u16 = 2;

const TABLES: [Table; 2] = [Table::Mangle, Table::Nat];

fn name(table: Table) -> String {
    format!("strait_{}", table.name())
}

/// Makes a message of nf_tables for an IP version.
fn message(kind: u16, flags: u16, family: Family) -> Message {
    let family = match family {
        Family::V4 => libc::NFPROTO_IPV4,
        Family::V6 => libc::NFPROTO_IPV6,
    };
    let family = u8::try_from(family).unwrap_or_default();
    Message::new(NF_TABLES << 8 | kind, flags, &[family, 0, 0, 0])
}

fn batch(kind: u16) -> Message {
    let [high, low] = NF_TABLES.to_be_bytes();
    Message::new(kind, 0, &[0, 0, high, low])
}

/// Returns whether a table of ours exists.
///
/// # Errors
///
/// Fails when the kernel has no nf_tables, or does not answer.
pub(crate) fn is_installed() -> Result<bool, String> {
    for family in Family::ALL.into_iter().filter(|family| family.exists()) {
        for table in TABLES {
            if has(family, table)? {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Returns whether this table of ours exists.
///
/// # Errors
///
/// Fails as [`is_installed`] does.
pub(crate) fn has(family: Family, table: Table) -> Result<bool, String> {
    let mut ask = message(GET_TABLE, 0, family);
    ask.text(TABLE_NAME, &name(table));
    match send(Subsystem::Netfilter, vec![ask], 0) {
        Ok(()) => Ok(true),
        Err((_, error)) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err((_, error)) => Err(format!("the kernel does not list nf_tables: {error}")),
    }
}

/// Tables to install, for each IP version.
pub(crate) type Wanted = Vec<(Family, Vec<TableRules>)>;

/// Replaces our tables by these in one transaction. Tables that are not in the list are removed.
///
/// # Errors
///
/// Says what the kernel refuses; nothing is changed then.
pub(crate) fn replace(wanted: &Wanted) -> Result<(), String> {
    let mut batch = Batch::default();
    for family in Family::ALL.into_iter().filter(|family| family.exists()) {
        for table in TABLES {
            batch.clear(family, table);
        }
    }
    for (family, tables) in wanted {
        for rules in tables {
            batch.add_table(*family, rules);
        }
    }
    batch.send()
}

/// Messages with descriptions, for an error that names the failed one.
#[derive(Default)]
struct Batch(Vec<(String, Message)>);

impl Batch {
    fn add(&mut self, what: String, message: Message) {
        self.0.push((what, message));
    }

    fn table(&mut self, kind: u16, family: Family, table: Table) {
        let flags = if kind == NEW_TABLE { CREATE } else { 0 };
        let mut message = message(kind, flags, family);
        message.text(TABLE_NAME, &name(table));
        self.add(format!("the table {}", name(table)), message);
    }

    /// Creates the table before it deletes it: deleting a missing one would fail.
    fn clear(&mut self, family: Family, table: Table) {
        self.table(NEW_TABLE, family, table);
        self.table(DELETE_TABLE, family, table);
    }

    fn add_table(&mut self, family: Family, rules: &TableRules) {
        let table = rules.table;
        self.table(NEW_TABLE, family, table);
        for (hook, _) in &rules.jumps {
            self.add_chain(family, table, hook.name(), Some(*hook));
        }
        let mut known: Vec<&str> = Vec::new();
        for (chain, _) in &rules.rules {
            if !known.contains(chain) {
                known.push(chain);
                self.add_chain(family, table, chain, None);
            }
        }
        for (chain, rule) in &rules.rules {
            self.add_rule(family, table, chain, rule);
        }
        for (hook, chain) in &rules.jumps {
            let jump = Rule::new([Match::Tcp], Target::Jump(chain));
            self.add_rule(family, table, hook.name(), &jump);
        }
    }

    fn add_chain(&mut self, family: Family, table: Table, chain: &str, hook: Option<Hook>) {
        let mut message = message(NEW_CHAIN, CREATE, family);
        message.text(CHAIN_TABLE, &name(table));
        message.text(CHAIN_NAME, chain);
        if let Some(hook) = hook {
            let number = match hook {
                Hook::Prerouting => libc::NF_INET_PRE_ROUTING,
                Hook::Output => libc::NF_INET_LOCAL_OUT,
            };
            // priorities of iptables
            let (priority, kind) = match (table, hook) {
                (Table::Nat, _) => (-100, "nat"),
                (Table::Mangle, Hook::Prerouting) => (-150, "filter"),
                // routes the packet again if the mark changes
                (Table::Mangle, Hook::Output) => (-150, "route"),
            };
            message.nested(CHAIN_HOOK, |inner| {
                inner.bytes(HOOK_NUMBER, &number.to_be_bytes());
                inner.bytes(HOOK_PRIORITY, &i32::to_be_bytes(priority));
            });
            message.text(CHAIN_TYPE, kind);
        }
        self.add(format!("the chain {chain} of {}", name(table)), message);
    }

    fn add_rule(&mut self, family: Family, table: Table, chain: &str, rule: &Rule) {
        let table = name(table);
        for expressions in rule_messages(rule, family) {
            let mut message = message(NEW_RULE, CREATE | APPEND, family);
            write_rule(&mut message, &table, chain, &expressions);
            self.add(format!("the rule `{rule}` of {table}"), message);
        }
    }

    fn send(self) -> Result<(), String> {
        let (what, messages): (Vec<_>, Vec<_>) = self.0.into_iter().unzip();
        let last = messages.len();
        let mut all = vec![batch(BATCH_BEGIN)];
        all.extend(messages);
        all.push(batch(BATCH_END));
        send(Subsystem::Netfilter, all, last).map_err(|(index, error)| {
            let what = index.checked_sub(1).and_then(|index| what.get(index));
            let what = what.map_or("nf_tables", String::as_str);
            format!(
                "the kernel refuses {what}: {error}; it needs CAP_NET_ADMIN, and the modules nf_tables, nft_chain_nat, \
                 nft_redir, for TPROXY nft_tproxy; or install the package iptables and use --backend legacy"
            )
        })
    }
}
