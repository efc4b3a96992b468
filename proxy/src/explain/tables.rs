//! Rules that are tried for a request: those of its virtual host, and of wider ones.

use std::sync::Arc;

use http::Request;

use super::answer::{Condition, Explanation, HostChoice, Note, RuleTried};
use super::effect::ExplainedRequest;
use super::{precedence, secret};
use crate::exchange::downstream::connection::Connection;
use crate::exchange::select::find_route::{self, Found};
use crate::snapshot::{HttpHosts, VirtualHost};
use traffic::filter::Scheme;
use traffic::route::{self, Rule, normalize_host};

/// Virtual host of a request, followed by the wider ones whose rules are tried after its own.
pub(super) struct Tables<'h>(Vec<&'h VirtualHost>);

impl<'h> From<&'h VirtualHost> for Tables<'h> {
    fn from(only: &'h VirtualHost) -> Self {
        Self(vec![only])
    }
}

impl<'h> Tables<'h> {
    /// Returns the virtual host for `host`, with the wider ones.
    pub(super) fn of(first: &'h VirtualHost, hosts: Option<&'h HttpHosts>, host: &str) -> Self {
        let wider = hosts.into_iter().flat_map(|hosts| hosts.wider(host));
        let wider = wider.map(|host| &**host);
        Self(std::iter::once(first).chain(wider).collect())
    }

    /// Returns the virtual host of the request.
    pub(super) fn first(&self) -> &'h VirtualHost {
        self.0[0]
    }

    fn rules(&self) -> impl Iterator<Item = &'h Rule> {
        self.0.iter().flat_map(|host| host.table.rules())
    }

    /// Returns the position of the rule that was found among all rules, and that of the first rule of the next wider virtual
    /// host; `None` if it is of another virtual host.
    pub(super) fn position(&self, found: &Found) -> Option<[usize; 2]> {
        let is_it = |host: &&VirtualHost| std::ptr::eq(*host, found.virtual_host());
        let number = self.0.iter().position(is_it)?;
        let count = |hosts: &[&VirtualHost]| {
            let rules = hosts.iter().map(|host| host.table.rules().len());
            rules.sum::<usize>()
        };
        let (before, with) = (count(&self.0[..number]), count(&self.0[..=number]));
        Some([before + found.rule().index(), with])
    }

    /// Describes the virtual host by its name.
    pub(super) fn choice(&self) -> HostChoice {
        let host = self.first();
        let reason = match &*host.name {
            "*" => "serves hosts without a virtual host of their own",
            wildcard if wildcard.starts_with('*') => "longest wildcard that matches",
            _ => "exact match",
        };
        HostChoice {
            name: host.name.to_string(),
            reason: reason.to_owned(),
            rules: self.rules().count(),
            translates_grpc_web: host.is_grpc_web,
            rebuilt_because: host.cause.as_ref().map(ToString::to_string),
        }
    }

    /// Describes the virtual host of a request, and the reason for the choice.
    pub(super) fn chosen(
        &self,
        hosts: Option<&HttpHosts>,
        host: &str,
        connection: &Connection,
    ) -> HostChoice {
        let is_it = |other: &Arc<VirtualHost>| std::ptr::eq(&**other, self.first());
        let exports = hosts.and_then(|hosts| hosts.exports.as_ref());
        let named = hosts.and_then(|hosts| hosts.find(host));
        let mut choice = self.choice();
        let by_address = hosts.and_then(|hosts| hosts.is_by_address(self.first()));
        if let (Some(has_routes), Some(dialed)) = (by_address, connection.dialed()) {
            let dialed = dialed.ip();
            choice.reason = match has_routes {
                true => {
                    format!("routes of this Service, whose address {dialed} is, whatever the host")
                }
                false => {
                    format!("without the routes of this Service: {dialed} is not its address")
                }
            };
        } else if exports.is_some_and(is_it) {
            choice.reason = "what is exported to other clusters, whatever the host".to_owned();
        } else if !named.is_some_and(is_it) {
            choice.reason =
                "no virtual host has this name; the connection is to this address of a service"
                    .to_owned();
        }
        choice
    }

    /// Evaluates the rules up to `last`, or all, for the request.
    pub(super) fn tried(
        &self,
        last: Option<usize>,
        scheme: Scheme,
        request: &Request<()>,
    ) -> Vec<RuleTried> {
        let end = last.map_or(usize::MAX, |last| last + 1);
        let authority = find_route::authority(request).unwrap_or_default();
        let host = normalize_host(authority);
        let matched = find_route::matched_head(request, scheme, authority, &host);
        let one = |(position, rule): (usize, &Rule)| RuleTried {
            number: position + 1,
            name: rule.name.to_string(),
            source: (&rule.provenance).into(),
            matched: last == Some(position),
            conditions: route::explain::explain(rule, &matched)
                .into_iter()
                .map(|line| Condition {
                    expected: secret::wanted(&line.field, line.wanted),
                    field: line.field,
                    actual: line.got,
                    matched: line.held,
                    hint: line.hint.map(str::to_owned),
                })
                .collect(),
        };
        self.rules().take(end).enumerate().map(one).collect()
    }

    /// Describes the rule that was found, without its conditions.
    fn winner(&self, found: &Found) -> Option<RuleTried> {
        let [position, _] = self.position(found)?;
        let rule = found.rule();
        let table = &found.virtual_host().table;
        let rule = table.rule(rule);
        Some(RuleTried {
            number: position + 1,
            name: rule.name.to_string(),
            source: (&rule.provenance).into(),
            matched: true,
            conditions: Vec::new(),
        })
    }

    /// Adds the rules that were tried until one was found, and the next one that matches as well; with `is_alone` only the
    /// one that was found.
    pub(super) fn won(
        &self,
        answer: &mut Explanation,
        found: &Found,
        request: ExplainedRequest<'_>,
        is_alone: bool,
    ) {
        if is_alone {
            answer.rules.extend(self.winner(found));
            return;
        }
        let Some([position, wider]) = self.position(found) else {
            return;
        };
        answer.rules = self.tried(Some(position), request.scheme, request.head);
        answer.rules_not_tried = self.rules().count() - answer.rules.len();
        let next = self.passed_over(position, wider, request);
        answer.hints.extend(next);
    }

    /// Returns a note about the next rule of the Gateway API that matches the request as well, with the step of their order
    /// that decided. The rules from `wider` on are those of wider hosts.
    fn passed_over(
        &self,
        position: usize,
        wider: usize,
        request: ExplainedRequest<'_>,
    ) -> Option<Note> {
        let tried = self.tried(None, request.scheme, request.head);
        let mut later = tried.into_iter().zip(self.rules()).skip(position + 1);
        let matches = |one: &RuleTried| one.conditions.iter().all(|condition| condition.matched);
        let (next, of) = later.find(|(one, _)| matches(one))?;
        let first = self.rules().nth(position)?;
        let step = precedence::deciding_step(first, of, next.number > wider)?;
        Some(Note {
            text: format!(
                "rule {} of {} matches as well; the other precedes it: {step}",
                next.number, of.provenance.object
            ),
            source: Some(next.source),
        })
    }
}
