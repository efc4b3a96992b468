//! Rules of Strait in the tables of the kernel: parses the installed ones, and writes the text that replaces them.
//!
//! The name of every chain of ours begins with [`PREFIX`]. Pure; `tools` reads and applies the texts.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::rule::TableRules;

/// Prefix of the names of our chains.
pub(crate) const PREFIX: &str = "STRAIT_";

/// Our rules, by table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ruleset(BTreeMap<String, Table>);

/// Our rules in one table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Table {
    /// Rules of other chains that jump to ours: `PREROUTING -p tcp -j STRAIT_INBOUND`.
    jumps: Vec<String>,
    /// Rules by chain, without the name of the chain.
    chains: BTreeMap<String, Vec<String>>,
}

impl Table {
    /// Adds a rule to a chain of ours.
    fn add(&mut self, chain: &str, rule: String) {
        let chain = self.chains.entry(chain.to_owned()).or_default();
        chain.push(rule);
    }
}

/// Renders the rules in the syntax of iptables.
impl From<&[TableRules]> for Ruleset {
    fn from(tables: &[TableRules]) -> Self {
        let mut all = Self::default();
        for from in tables {
            let table = all.table(from.table.name());
            for (chain, rule) in &from.rules {
                table.add(chain, rule.to_string());
            }
            let jumps = from.jumps.iter();
            let jumps = jumps.map(|(hook, chain)| format!("{} -p tcp -j {chain}", hook.name()));
            table.jumps.extend(jumps);
        }
        all
    }
}

impl Ruleset {
    fn table(&mut self, name: &str) -> &mut Table {
        self.0.entry(name.to_owned()).or_default()
    }

    /// Returns whether there is no rule and no chain.
    pub(crate) fn is_empty(&self) -> bool {
        let mut tables = self.0.values();
        tables.all(|table| table.jumps.is_empty() && table.chains.is_empty())
    }

    /// Returns whether a rule of this table jumps to our chains, and they have rules: flushing tables leaves empty
    /// chains.
    pub(crate) fn captures(&self, table: &str) -> bool {
        let has_rules = |table: &Table| table.chains.values().any(|rules| !rules.is_empty());
        let table = self.0.get(table);
        table.is_some_and(|table| !table.jumps.is_empty() && has_rules(table))
    }

    /// Parses our rules out of the output of `iptables-save`.
    pub(crate) fn parse(saved: &str) -> Self {
        let mut rules = Self::default();
        let mut table = String::new();
        for line in saved.lines() {
            if let Some(name) = line.strip_prefix('*') {
                name.trim().clone_into(&mut table);
            } else if let Some(rest) = line.strip_prefix(':') {
                let chain = rest.split(' ').next().unwrap_or_default();
                if chain.starts_with(PREFIX) {
                    let table = rules.table(&table);
                    table.chains.entry(chain.to_owned()).or_default();
                }
            } else if let Some(rest) = line.strip_prefix("-A ") {
                let (chain, rule) = rest.split_once(' ').unwrap_or((rest, ""));
                if chain.starts_with(PREFIX) {
                    rules.table(&table).add(chain, rule.to_owned());
                } else if jumps_to_our_chain(rule) {
                    rules.table(&table).jumps.push(rest.to_owned());
                }
            }
        }
        rules
    }

    /// Returns the input for `iptables-restore --noflush` that replaces these rules by `others`, each table at once.
    pub(crate) fn replaced_by(&self, others: &Self) -> String {
        let mut text = String::new();
        let names: BTreeSet<_> = self.0.keys().chain(others.0.keys()).collect();
        let none = Table::default();
        for name in names {
            let from = self.0.get(name).unwrap_or(&none);
            let to = others.0.get(name).unwrap_or(&none);
            if *from != none || *to != none {
                let _ = write!(text, "*{name}\n{}COMMIT\n", from.replaced_by(to));
            }
        }
        text
    }
}

impl Table {
    fn replaced_by(&self, other: &Self) -> String {
        let mut lines = Vec::new();
        // creates a chain, or empties it
        let chains: BTreeSet<_> = self.chains.keys().chain(other.chains.keys()).collect();
        lines.extend(chains.iter().map(|chain| format!(":{chain} - [0:0]")));
        lines.extend(self.jumps.iter().map(|jump| format!("-D {jump}")));
        for (chain, rules) in &other.chains {
            lines.extend(rules.iter().map(|rule| format!("-A {chain} {rule}")));
        }
        lines.extend(other.jumps.iter().map(|jump| format!("-A {jump}")));
        let gone = chains
            .iter()
            .filter(|chain| !other.chains.contains_key(**chain));
        lines.extend(gone.map(|chain| format!("-X {chain}")));
        lines.iter().map(|line| format!("{line}\n")).collect()
    }
}

/// Returns whether a rule jumps or goes to a chain of ours.
fn jumps_to_our_chain(rule: &str) -> bool {
    let mut words = rule.split(' ').rev();
    let target = words.next().unwrap_or_default();
    target.starts_with(PREFIX) && matches!(words.next(), Some("-j" | "-g"))
}

/// Returns whether the output of `iptables-save` has any rule.
pub(crate) fn has_rules(saved: &str) -> bool {
    saved.lines().any(|line| line.starts_with("-A "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAVED: &str = "\
# Generated by iptables-save
*nat
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:OTHER - [0:0]
:STRAIT_INBOUND - [0:0]
:STRAIT_OLD - [0:0]
-A PREROUTING -j OTHER
-A PREROUTING -p tcp -j STRAIT_INBOUND
-A OTHER -m comment --comment STRAIT_INBOUND -j RETURN
-A STRAIT_INBOUND -p tcp -m tcp --dport 80 -j RETURN
COMMIT
*filter
:INPUT ACCEPT [0:0]
COMMIT
";

    #[test]
    fn only_our_rules_are_parsed() {
        let mut expected = Ruleset::default();
        let nat = expected.table("nat");
        nat.jumps
            .push("PREROUTING -p tcp -j STRAIT_INBOUND".to_owned());
        let rule = "-p tcp -m tcp --dport 80 -j RETURN";
        nat.add("STRAIT_INBOUND", rule.to_owned());
        nat.chains.insert("STRAIT_OLD".to_owned(), Vec::new());
        assert_eq!(Ruleset::parse(SAVED), expected);
        assert!(Ruleset::parse("*nat\n:OTHER - [0:0]\n-A OTHER -j ACCEPT\nCOMMIT\n").is_empty());
    }

    #[test]
    fn replacing_keeps_no_rule_and_no_chain_of_before() {
        let mut others = Ruleset::default();
        let nat = others.table("nat");
        nat.add("STRAIT_INBOUND", "-j STRAIT_NEW".to_owned());
        nat.add("STRAIT_NEW", "-j ACCEPT".to_owned());
        nat.jumps
            .push("PREROUTING -p tcp -j STRAIT_INBOUND".to_owned());
        assert_eq!(
            Ruleset::parse(SAVED).replaced_by(&others),
            "*nat\n:STRAIT_INBOUND - [0:0]\n:STRAIT_NEW - [0:0]\n:STRAIT_OLD - [0:0]\n\
             -D PREROUTING -p tcp -j STRAIT_INBOUND\n\
             -A STRAIT_INBOUND -j STRAIT_NEW\n-A STRAIT_NEW -j ACCEPT\n\
             -A PREROUTING -p tcp -j STRAIT_INBOUND\n-X STRAIT_OLD\nCOMMIT\n"
        );
    }

    #[test]
    fn removal_deletes_jumps_before_chains() {
        let text = Ruleset::parse(SAVED).replaced_by(&Ruleset::default());
        assert_eq!(
            text,
            "*nat\n:STRAIT_INBOUND - [0:0]\n:STRAIT_OLD - [0:0]\n-D PREROUTING -p tcp -j STRAIT_INBOUND\n\
             -X STRAIT_INBOUND\n-X STRAIT_OLD\nCOMMIT\n"
        );
        assert_eq!(Ruleset::default().replaced_by(&Ruleset::default()), "");
    }
}
