//! Rules and endpoints that moved to other lines without other changes.

use super::{Destination, Headers, HttpAction, HttpDestination, HttpRule, WorkloadEntry};
use crate::span::Line;

impl HttpRule {
    /// Returns the same rule on lines that are `by` further down.
    pub(crate) fn moved(&self, by: i64) -> HttpRule {
        let mut rule = self.clone();
        let Line(first) = rule.line;
        // What was not written stands on no line of the rule.
        let shift = |line: &mut Line| {
            if line.0 >= first {
                *line = down(*line, by);
            }
        };
        rule.each_line(&shift);
        rule
    }

    fn each_line(&mut self, visit: &impl Fn(&mut Line)) {
        for block in &mut self.matches {
            visit(&mut block.line);
            block.gateway_lines.iter_mut().for_each(visit);
            let headers = block.headers.iter_mut().chain(&mut block.without_headers);
            headers.for_each(|header| visit(&mut header.line));
            for query in &mut block.query_params {
                visit(&mut query.line);
            }
        }
        self.action.each_line(visit);
        if let Some(rewrite) = &mut self.rewrite {
            visit(&mut rewrite.line);
        }
        if let Some(retries) = &mut self.retries {
            visit(&mut retries.line);
        }
        if let Some(fault) = &mut self.fault {
            visit(&mut fault.line);
        }
        if let Some(mirror) = &mut self.mirror {
            mirror.each_line(visit);
        }
        for mirror in &mut self.mirrors {
            visit(&mut mirror.line);
            mirror.destination.each_line(visit);
        }
        if let Some(cors) = &mut self.cors {
            visit(&mut cors.line);
        }
        if let Some(headers) = &mut self.headers {
            visit(&mut headers.line);
        }
        visit(&mut self.line);
    }
}

impl WorkloadEntry {
    /// Returns the same endpoint on a line that is `by` further down.
    pub(crate) fn moved(&self, by: i64) -> WorkloadEntry {
        WorkloadEntry {
            line: down(self.line, by),
            ..self.clone()
        }
    }
}

fn down(line: Line, by: i64) -> Line {
    Line(u32::try_from(i64::from(line.0) + by).unwrap_or(u32::MAX))
}

impl HttpAction {
    fn each_line(&mut self, visit: &impl Fn(&mut Line)) {
        match self {
            HttpAction::Delegate(delegate) => visit(&mut delegate.line),
            HttpAction::DirectResponse(direct) => visit(&mut direct.line),
            HttpAction::Redirect(redirect) => visit(&mut redirect.line),
            HttpAction::Route(destinations) => {
                for weighted in destinations {
                    let HttpDestination {
                        destination,
                        headers,
                        line: entry,
                        weight: _,
                    } = weighted;
                    destination.each_line(visit);
                    visit(entry);
                    if let Some(Headers { line, .. }) = headers.as_deref_mut() {
                        visit(line);
                    }
                }
            }
        }
    }
}

impl Destination {
    fn each_line(&mut self, visit: &impl Fn(&mut Line)) {
        let Destination {
            host: _,
            subset: _,
            port: _,
            line,
            subset_line,
            port_line,
        } = self;
        visit(line);
        visit(subset_line);
        visit(port_line);
    }
}
