//! `--access FILE`: who may do what, as a table, and findings where that differs from what is expected.

use std::fmt::Write;

use config_loader::diagnostic::codes::common::{ACC002, ACC003};
use config_loader::{
    AccessIdentity, AccessRequest, AccessTable, Diagnostic, Location, ResourceSet, Severity,
};

use crate::command::explain::{compiled, settings_of};
use crate::exchange::settings::ExchangeSettings;
use crate::explain::answer::AuthorizationChoice;
use crate::explain::{Question, access};
use crate::identity::{GatewaySettings, Identity};
use crate::snapshot::Snapshot;
use crate::tls::Store;

/// Decision on a request of a client.
struct Decision {
    is_allowed: bool,
    /// Rule that decides, or the reason that none does.
    by: String,
}

/// Decides all requests of a table, for a proxy of this identity. Returns the findings, and the table as text.
pub(super) fn decide(
    table: &AccessTable,
    resources: &ResourceSet,
    identity: Identity,
) -> (Vec<Diagnostic>, String) {
    let snapshot = compiled(resources, &identity, &Store::default());
    let settings = settings_of(&identity);
    let mut found = Vec::new();
    let mut rows = Vec::new();
    for client in &table.identities {
        let mut row = Vec::new();
        for request in &table.requests {
            let decision = match question(client, request) {
                Ok(question) => decision(&question, &snapshot, &settings, &identity.gateways),
                Err(finding) => {
                    found.push(*finding);
                    return (found, String::new());
                }
            };
            let mut expected = table.expected.iter();
            let expected = expected
                .find(|one| one.identity == client.name && one.request == request.name)
                .filter(|expected| expected.is_allowed != decision.is_allowed);
            if let Some(expected) = expected {
                let Decision { is_allowed, by } = &decision;
                let (client, request) = (&client.name, &request.name);
                let is = word(*is_allowed);
                let message = format!("`{request}` of `{client}` gets {is}: {by}");
                let wanted = word(expected.is_allowed);
                let help =
                    format!("change the policies if {wanted} is right, or write `{is}` here");
                found.push(finding(ACC003, &expected.location, message, &help));
            }
            row.push((decision, expected.is_some()));
        }
        rows.push(row);
    }
    let text = text(table, &rows);
    (found, text)
}

fn question(client: &AccessIdentity, request: &AccessRequest) -> Result<Question, Box<Diagnostic>> {
    let wrong = |location: &Location, error: String| {
        let help = "write a request such as `GET /cart`, `GET http://cart:8080/cart` or `tcp://db:5432`, and an identity such \
                    as `principal: cluster.local/ns/web/sa/web`, `claims` or `address: 10.0.0.7`";
        Box::new(finding(ACC002, location, error, help))
    };
    let text = &*request.text;
    let (method, url) = match text.split_once(' ') {
        Some(parts) => parts,
        None if text.starts_with("tcp://") || text.starts_with("tls://") => ("CONNECT", text),
        None => ("GET", text),
    };
    let question = Question::parse(method, url);
    let mut question = question.map_err(|error| wrong(&request.location, error))?;
    let identified = [
        client
            .principal
            .as_deref()
            .map(|text| question.with_identity(text)),
        client
            .claims
            .as_deref()
            .map(|text| question.with_claims(text)),
        client
            .address
            .as_deref()
            .map(|text| question.by_client(text)),
    ];
    for result in identified.into_iter().flatten() {
        result.map_err(|error| wrong(&client.location, error))?;
    }
    Ok(question)
}

fn decision(
    question: &Question,
    snapshot: &Snapshot,
    settings: &ExchangeSettings,
    gateways: &GatewaySettings,
) -> Decision {
    match access::judge(question, snapshot, settings, gateways) {
        Ok(None) => Decision {
            is_allowed: true,
            by: "no policy applies to the proxy".to_owned(),
        },
        Ok(Some(choice)) => Decision {
            is_allowed: choice.denied_by.is_none(),
            by: by(&choice),
        },
        Err(refusal) => Decision {
            is_allowed: false,
            by: refusal,
        },
    }
}

/// Returns the rule that decides, or the reason that none does.
fn by(choice: &AuthorizationChoice) -> String {
    if let Some(reason) = &choice.denied_by {
        return reason.clone();
    }
    let mut rules = choice.rules.iter();
    let rule = rules.find(|rule| rule.stage == "ALLOW" && rule.failed.is_none());
    let by = rule.map_or("no ALLOW policy applies".to_owned(), |rule| {
        format!("{}, line {} matches", rule.policy, rule.source.line)
    });
    match &*choice.asks {
        [] => by,
        asks => format!("{by}, if admitted by provider {}", asks.join(" and ")),
    }
}

/// Returns the decisions, and below them their reasons.
fn text(table: &AccessTable, rows: &[Vec<(Decision, bool)>]) -> String {
    let mut lines = Vec::new();
    let names = table
        .requests
        .iter()
        .map(|request| request.name.to_string());
    lines.push([String::new()].into_iter().chain(names).collect::<Vec<_>>());
    let mut reasons = Vec::new();
    for (client, row) in table.identities.iter().zip(rows) {
        let cell = |(decision, differs): &(Decision, bool)| {
            let mark = if *differs { " (not expected)" } else { "" };
            format!("{}{mark}", word(decision.is_allowed))
        };
        let cells = row.iter().map(cell);
        lines.push([client.name.to_string()].into_iter().chain(cells).collect());
        reasons.extend(table.requests.iter().zip(row).map(|(request, cell)| {
            let (decision, _) = cell;
            let who = client.name.to_string();
            let what = format!("{} ({})", request.name, request.text);
            vec![
                who,
                what,
                word(decision.is_allowed).to_owned(),
                decision.by.clone(),
            ]
        }));
    }
    format!("{}\n{}", aligned(&lines), aligned(&reasons))
}

/// Returns lines with aligned columns.
fn aligned(lines: &[Vec<String>]) -> String {
    let columns = lines.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for line in lines {
        let cells = line.iter().zip(&widths);
        let cells: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        _ = writeln!(text, "{}", cells.join("  ").trim_end());
    }
    text
}

fn word(is_allowed: bool) -> &'static str {
    if is_allowed { "allow" } else { "deny" }
}

fn finding(
    code: config_loader::Code,
    location: &Location,
    message: String,
    help: &str,
) -> Diagnostic {
    let file = location.file.clone();
    let mut found = Diagnostic::about_file(Severity::Error, code, file, message);
    found.location = location.clone();
    found.help(help);
    found
}
