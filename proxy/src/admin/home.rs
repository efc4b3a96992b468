//! `/`: version, readiness, rejected resources, and links to the other pages.

use std::fmt::Write;

use http::Method;

use super::health;
use super::page::Page;
use super::reply::Reply;
use super::state::AdminState;
use super::view::{QuarantineView, Readiness};

/// Renders the page.
pub(super) fn show(state: &AdminState, pages: &[Page]) -> Reply {
    let mut html = String::from(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Strait</title>\
         <style>body{font-family:sans-serif;margin:2em}td{padding:.1em 1em .1em 0}</style><h1>Strait</h1>\n",
    );
    let readiness = (state.readiness)();
    // Writing to a string cannot fail.
    let _ = writeln!(
        html,
        "<p>Version {}, {}.</p>",
        escape(&state.build.version),
        escape(&health::describe(&readiness))
    );
    if readiness == Readiness::Draining {
        html.push_str("<p>Running requests finish; new connections are not taken.</p>\n");
    }
    if let Some(problem) = state.stats.export_problem() {
        let _ = writeln!(
            html,
            "<p>Traces cannot be exported to {}</p>",
            escape(&problem)
        );
    }
    quarantined(&mut html, &(state.quarantined)());
    html.push_str("<table>\n");
    for page in pages {
        let path = page.path;
        let link = match page.method {
            Method::GET => format!("<a href=\"{path}\">{path}</a>"),
            _ => path.to_owned(),
        };
        let _ = writeln!(
            html,
            "<tr><td>{}<td>{link}<td>{}</tr>",
            page.method,
            escape(page.help)
        );
    }
    for path in state.app_probers.paths() {
        let path = escape(path);
        let _ = writeln!(
            html,
            "<tr><td>GET<td><a href=\"{path}\">{path}</a><td>a probe of the workload (--app-probers)"
        );
    }
    html.push_str("</table></html>\n");
    Reply::html(html)
}

fn quarantined(html: &mut String, resources: &[QuarantineView]) {
    if resources.is_empty() {
        return;
    }
    html.push_str("<h2>Refused resources</h2><ul>\n");
    for resource in resources {
        let effect = if resource.last_good_version_in_use {
            "its last good version stays in effect"
        } else {
            "no version of it was valid"
        };
        let _ = writeln!(
            html,
            "<li>{} at {}: {effect}",
            escape(&resource.object),
            escape(&resource.location)
        );
        for error in &resource.errors {
            let _ = writeln!(html, "<br>{}", escape(error));
        }
    }
    html.push_str("</ul>\n");
}

/// Escapes text for HTML: names and messages come from untrusted files.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            _ => escaped.push(char),
        }
    }
    escaped
}
