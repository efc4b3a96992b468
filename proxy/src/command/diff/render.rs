//! Differences as text and Markdown.

use std::fmt::Write;

use config_loader::Diagnostic;

use super::found::{Differences, OfProxy};
use crate::difference::effect::FieldChange;
use crate::difference::report::{Entry, Report, RuleName, Witness};

/// Maximum bytes of Markdown: comments of GitHub take 65,536 characters.
const MARKDOWN_BYTES_MAX: usize = 60_000;

/// Maximum number of addresses that are listed for a cluster.
const ADDRESSES_MAX: usize = 10;

/// Renders for a person at a terminal.
pub(super) fn text(found: &Differences) -> String {
    let mut out = String::new();
    for one in &found.proxies {
        if !one.name.is_empty() {
            _ = writeln!(out, "proxy {}", one.name);
        }
        for entry in &one.report.requests {
            entry_text(entry, &mut out);
        }
        for line in others(&one.report) {
            _ = writeln!(out, "{line}");
        }
        _ = writeln!(out, "{}", summary(&one.report));
    }
    for line in findings(found) {
        _ = writeln!(out, "{line}");
    }
    out
}

fn entry_text(entry: &Entry, out: &mut String) {
    let breaking = if entry.breaking { "breaking  " } else { "" };
    for (number, witness) in entry.witnesses.iter().enumerate() {
        match number {
            0 => _ = writeln!(out, "{breaking}{}", witness.command),
            _ => _ = writeln!(out, "     and  {}", witness.command),
        }
    }
    let more = entry.classes - entry.witnesses.len();
    if more > 0 {
        _ = writeln!(out, "     and  {} more", counted_classes(more));
    }
    if let Some(first) = entry.witnesses.first() {
        _ = writeln!(out, "  rule    {}", rules(first));
    }
    for change in &entry.changes {
        _ = writeln!(out, "  {}", change_line(change));
    }
    out.push('\n');
}

fn change_line(change: &FieldChange) -> String {
    let shown = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".to_owned());
    format!(
        "{}: {} -> {}",
        change.field,
        shown(&change.before),
        shown(&change.after)
    )
}

fn rules(witness: &Witness) -> String {
    let name = |rule: &Option<RuleName>| match rule {
        None => "none".to_owned(),
        Some(RuleName { name, source }) => {
            let name = match name.is_empty() {
                true => String::new(),
                false => format!("{name} of "),
            };
            format!("{name}{} ({}:{})", source.object, source.file, source.line)
        }
    };
    format!("{} -> {}", name(&witness.before), name(&witness.after))
}

/// Lines about what is not a request.
fn others(report: &Report) -> Vec<String> {
    let opened = report
        .opened
        .iter()
        .map(|one| format!("listener opened: {one}"));
    let closed = report
        .closed
        .iter()
        .map(|one| format!("breaking  listener closed: {one}"));
    let some = |all: &[String]| {
        let shown: Vec<&str> = all.iter().take(ADDRESSES_MAX).map(String::as_str).collect();
        let more = all.len().saturating_sub(ADDRESSES_MAX);
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        format!("{}{more}", shown.join(" "))
    };
    let endpoints = report.endpoints.iter().map(|one| {
        let parts = [("added", &one.added), ("removed", &one.removed)];
        let parts = parts.iter().filter(|(_, all)| !all.is_empty());
        let parts: Vec<String> = parts
            .map(|(word, all)| format!("{word} {}", some(all)))
            .collect();
        format!("endpoints of {}: {}", one.cluster, parts.join(", "))
    });
    let notes = report.notes.iter().map(|one| match one.breaking {
        true => format!("breaking  {}", one.text),
        false => one.text.clone(),
    });
    opened.chain(closed).chain(notes).chain(endpoints).collect()
}

fn summary(report: &Report) -> String {
    let classes = report.decided + report.sampled;
    if report.is_without_listeners {
        return "nothing was compared: the proxy has no listener in either configuration; see --labels, --namespace and --mode"
            .to_owned();
    }
    let differ: usize = report.requests.iter().map(|one| one.classes).sum();
    match (differ, report.sampled) {
        (0, 0) if !report.is_empty() => {
            format!(
                "no request of {} changes, apart from the above",
                counted_classes(classes)
            )
        }
        (0, 0) => format!(
            "no request changes: {} compared, all exactly",
            counted_classes(classes)
        ),
        (0, sampled) => format!(
            "no request was found that changes; {sampled} of {} were sampled, not decided exactly",
            counted_classes(classes)
        ),
        (differ, sampled) => {
            format!(
                "{differ} of {} differ; {sampled} were sampled",
                counted_classes(classes)
            )
        }
    }
}

fn counted_classes(count: usize) -> String {
    match count {
        1 => "1 class".to_owned(),
        count => format!("{count} classes"),
    }
}

fn findings(found: &Differences) -> Vec<String> {
    let line = |word: &str, one: &Diagnostic| {
        format!(
            "finding {word}: {} {}: {}",
            one.code, one.location, one.message
        )
    };
    let appeared = found.appeared.iter().map(|one| line("appears", one));
    let gone = found.gone.iter().map(|one| line("goes", one));
    appeared.chain(gone).collect()
}

/// Renders for a comment on a pull request.
pub(super) fn markdown(found: &Differences) -> String {
    let mut out = String::from("### What this change does to requests\n\n");
    let mut left_out = 0;
    for one in &found.proxies {
        _ = writeln!(out, "{}\n", title(one));
        for entry in &one.report.requests {
            let part = entry_markdown(entry);
            match out.len() + part.len() <= MARKDOWN_BYTES_MAX {
                true => out.push_str(&part),
                false => left_out += 1,
            }
        }
        list(&others(&one.report), &mut out);
    }
    list(&findings(found), &mut out);
    if left_out > 0 {
        _ = writeln!(
            out,
            "{left_out} more differences are left out here; run `strait diff` for all."
        );
    }
    out
}

fn title(one: &OfProxy) -> String {
    let summary = summary(&one.report);
    match &*one.name {
        "" => format!("**{summary}**"),
        name => format!("**{}**: {summary}", code(name)),
    }
}

fn list(lines: &[String], out: &mut String) {
    for line in lines {
        let line = format!("- {}\n", code(line));
        if out.len() + line.len() <= MARKDOWN_BYTES_MAX {
            out.push_str(&line);
        }
    }
    if !lines.is_empty() {
        out.push('\n');
    }
}

fn entry_markdown(entry: &Entry) -> String {
    let first = entry.changes.first().map_or(String::new(), change_line);
    let breaking = if entry.breaking { "**breaking** " } else { "" };
    let mut out = format!(
        "<details><summary>{breaking}{}</summary>\n\n",
        escaped(&first)
    );
    out.push_str("```text\n");
    let mut body = String::new();
    entry_text(entry, &mut body);
    out.push_str(&body.replace("```", "'''"));
    out.push_str("```\n\n</details>\n\n");
    out
}

/// Returns a text as code in a line.
fn code(text: &str) -> String {
    format!("`{}`", text.replace('`', "'"))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
