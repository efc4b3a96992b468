//! Explanation as text for a terminal: labels in the left column, details indented below them.
//!
//! Stable and without colors, so that it can be compared and pasted.

use std::fmt::Write;

use super::answer::{
    Action, AuthorizationChoice, ClusterUsed, Condition, DestinationChoice, Edits, EndpointUsed,
    Explanation, MemberUsed, Note, Outcome, PolicyRuleTried, PriorityUsed, RequestSummary,
    RuleTried, Source,
};

/// Width of the left column.
const LABEL_WIDTH: usize = 14;

/// Maximum number of rules without a match that are all shown; above it, rules that differ in the path are only
/// counted.
const MISMATCHES_SHOWN_MAX: usize = 12;

/// Maximum number of notes that are shown.
const NOTES_SHOWN_MAX: usize = 8;

/// Level of detail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// Every rule and every condition, matching or not.
    All,
    /// Only the deciding rules and conditions.
    #[default]
    Brief,
}

/// Renders the explanation, ending with a line break.
pub fn render(answer: &Explanation, detail: Detail) -> String {
    let mut page = Page::default();
    page.request(&answer.request);
    page.outcome(answer);
    page.gap();
    page.choices(answer);
    page.rules(answer, detail);
    page.notes("left out", &answer.unreachable, detail);
    page.authorization(answer.authorization.as_ref(), detail);
    if let Some(tracing) = &answer.tracing {
        page.row("tracing", tracing);
    }
    page.notes("hint", &answer.hints, Detail::All);
    if let Some(action) = &answer.action {
        page.action(action);
    }
    page.destinations(&answer.destinations);
    page.out
}

#[derive(Default)]
struct Page {
    out: String,
}

impl Page {
    fn gap(&mut self) {
        self.out.push('\n');
    }

    /// Writes a line with a label, which may be empty, in the left column.
    fn row(&mut self, label: &str, text: &str) {
        let line = format!("{label:LABEL_WIDTH$}{text}");
        self.out.push_str(line.trim_end());
        self.out.push('\n');
    }

    /// Writes a line below the last one.
    fn under(&mut self, indent: usize, text: &str) {
        self.row("", &format!("{:indent$}{text}", ""));
    }

    fn request(&mut self, asked: &RequestSummary) {
        let query = asked
            .query
            .as_ref()
            .map_or_else(String::new, |q| format!("?{q}"));
        let host = asked.authority.as_deref().unwrap_or_default();
        let (method, sent) = (&asked.method, &asked.original_path);
        self.row("request", &format!("{method} {host}{sent}{query}"));
        if asked.path != asked.original_path {
            self.under(0, &format!("path in normal form: {}", asked.path));
        }
        for (name, value) in &asked.headers {
            self.under(0, &format!("{name}: {value}"));
        }
    }

    fn outcome(&mut self, answer: &Explanation) {
        let text = match &answer.outcome {
            Outcome::DirectResponse { status } => format!("local reply with {status}"),
            Outcome::Forwarded { partly: false } => "forwarded".to_owned(),
            Outcome::Forwarded { partly: true } => {
                "forwarded, but not every destination is available; see below".to_owned()
            }
            Outcome::Unavailable { reason } => format!("no healthy upstream: {reason}"),
            Outcome::Redirected { status, location } => {
                let location = location.as_deref().unwrap_or("nowhere");
                format!("redirected with {status} to {location}")
            }
            Outcome::Rejected {
                status: None,
                reason,
                ..
            } => format!("not accepted: {reason}"),
            Outcome::Rejected {
                status: Some(status),
                flags,
                reason,
            } => format!("rejected with {status} {flags}: {reason}"),
        };
        self.row("outcome", &text);
    }

    fn authorization(&mut self, choice: Option<&AuthorizationChoice>, detail: Detail) {
        let Some(choice) = choice else {
            return;
        };
        let decision = match &choice.denied_by {
            Some(reason) => format!("denied: {reason}"),
            None => "allowed".to_owned(),
        };
        self.row("authorization", &decision);
        let shown = match detail {
            Detail::All => choice.rules.len(),
            Detail::Brief => choice.rules.len().min(MISMATCHES_SHOWN_MAX),
        };
        // matching rules first: they say most
        let (matching, others): (Vec<_>, Vec<_>) =
            choice.rules.iter().partition(|rule| rule.failed.is_none());
        for rule in matching.into_iter().chain(others).take(shown) {
            let PolicyRuleTried {
                stage,
                policy,
                failed,
                source,
            } = rule;
            let verdict = match failed {
                None => "matched".to_owned(),
                Some(failed) => format!("no match: {failed}"),
            };
            let (file, line) = (&source.file, source.line);
            self.under(0, &format!("{stage:8}{policy}  {verdict}  ({file}:{line})"));
        }
        for provider in &choice.asks {
            self.under(0, &format!("asks {provider}; it may deny"));
        }
        let more = choice.rules.len() - shown + choice.rules_not_listed;
        if more > 0 {
            self.under(0, &format!("and {more} more (--all shows them)"));
        }
        if let Some(dry_run) = &choice.dry_run {
            self.under(0, &format!("in dry run it {dry_run}"));
        }
    }

    fn choices(&mut self, answer: &Explanation) {
        if let Some(listener) = &answer.listener {
            let (address, reason) = (&listener.address, &listener.reason);
            self.row("listener", &format!("{address}  ({reason})"));
            self.sources(2, &listener.sources);
            if !listener.others.is_empty() {
                let others = listener.others.join(", ");
                self.under(2, &format!("others: {others} (select one with --listener)"));
            }
        }
        if let Some(host) = &answer.virtual_host {
            self.row("virtual host", &format!("{}  ({})", host.name, host.reason));
            if host.translates_grpc_web {
                self.under(2, "requests of gRPC-Web are translated into gRPC");
            }
            self.rebuilt(2, host.rebuilt_because.as_deref());
        }
    }

    fn rules(&mut self, answer: &Explanation, detail: Detail) {
        let mut label = "rules";
        let mismatches = answer.rules.iter().filter(|rule| !rule.matched).count();
        let fold = detail == Detail::Brief && mismatches > MISMATCHES_SHOWN_MAX;
        let digits = answer.rules.len().to_string().len();
        let mut folded = 0;
        for rule in &answer.rules {
            if fold && !rule.matched && differs_in_path(rule) {
                folded += 1;
                continue;
            }
            self.folded(&mut label, &mut folded);
            self.rule(label, rule, digits, detail);
            label = "";
        }
        self.folded(&mut label, &mut folded);
        if answer.rules_not_tried > 0 {
            let more = answer.rules_not_tried;
            let rules = if more == 1 { "rule" } else { "rules" };
            self.under(0, &format!("{more} later {rules} not evaluated"));
        }
    }

    fn folded(&mut self, label: &mut &str, folded: &mut usize) {
        if *folded > 0 {
            let rules = if *folded == 1 { "rule" } else { "rules" };
            let text = format!("{folded} {rules} for other paths (--all shows them)");
            self.row(label, &text);
            *label = "";
            *folded = 0;
        }
    }

    fn rule(&mut self, label: &str, rule: &RuleTried, digits: usize, detail: Detail) {
        let verdict = if rule.matched { "matched " } else { "no match" };
        let (number, source) = (rule.number, place(&rule.source));
        let name = match &*rule.name {
            "" => "(unnamed)",
            name => name,
        };
        self.row(
            label,
            &format!("{number:digits$}  {verdict}  {name}  {source}"),
        );
        let shown: Vec<&Condition> = rule
            .conditions
            .iter()
            .filter(|condition| rule.matched || detail == Detail::All || !condition.matched)
            .collect();
        let indent = digits + 12;
        if rule.conditions.is_empty() {
            self.under(indent, "no conditions: matches every request");
        }
        let width = shown.iter().map(|one| one.field.len()).max().unwrap_or(0);
        for condition in shown {
            self.under(indent, &condition_line(condition, width));
        }
    }

    fn notes(&mut self, label: &str, notes: &[Note], detail: Detail) {
        let mut label = label;
        let shown = match detail {
            Detail::All => notes.len(),
            Detail::Brief => notes.len().min(NOTES_SHOWN_MAX),
        };
        for note in &notes[..shown] {
            match &note.source {
                None => self.row(label, &note.text),
                Some(source) => {
                    self.row(label, &place(source));
                    self.under(2, &note.text);
                }
            }
            label = "";
        }
        let more = notes.len() - shown;
        if more > 0 {
            self.under(0, &format!("and {more} more (--all shows them)"));
        }
    }

    fn action(&mut self, action: &Action) {
        if *action == Action::default() {
            return;
        }
        self.gap();
        self.row("action", "");
        for fault in &action.faults {
            self.detail("fault", fault);
        }
        for line in &action.cors {
            self.detail("cors", line);
        }
        for line in &action.limits {
            self.detail("limit", line);
        }
        if let Some(url) = &action.check {
            self.detail("check", url);
        }
        if let Some(body) = &action.body {
            self.detail("body", &format!("{body:?}"));
        }
        if let Some(path) = &action.path {
            self.detail("path", &format!("{} -> {}", path.before, path.after));
        }
        if let Some(authority) = &action.authority {
            self.detail("authority", &format!("becomes {authority}"));
        }
        if let Some(timeout) = &action.timeout {
            self.detail("timeout", timeout);
        }
        if let Some(retries) = &action.retries {
            let (attempts, on) = (retries.attempts, retries.on.join(","));
            let each = retries.per_try_timeout.as_ref();
            let each = each.map_or_else(String::new, |time| format!(", {time} each"));
            self.detail("retries", &format!("{attempts} on {on}{each}"));
        }
        for mirror in &action.mirrors {
            let unknown = if mirror.unknown {
                ", which is not known"
            } else {
                ""
            };
            let (percent, name) = (mirror.percent, &mirror.name);
            self.detail("mirror", &format!("{percent} % to {name}{unknown}"));
        }
        self.edits(0, &action.edits);
    }

    /// Writes a line with its label indented in the left column.
    fn detail(&mut self, label: &str, text: &str) {
        self.row(&format!("  {label}"), text);
    }

    fn edits(&mut self, indent: usize, edits: &Edits) {
        let both = [
            ("request", &edits.request_headers),
            ("response", &edits.response_headers),
        ];
        for (which, edits) in both {
            for edit in edits {
                let value = edit
                    .value
                    .as_ref()
                    .map_or_else(String::new, |v| format!(": {v}"));
                let text = format!("{} {}{value}", edit.operation, edit.name);
                if indent == 0 {
                    self.detail(which, &text);
                } else {
                    self.under(indent, &format!("{which} header: {text}"));
                }
            }
        }
    }

    fn destinations(&mut self, destinations: &[DestinationChoice]) {
        if !destinations.is_empty() {
            self.gap();
        }
        let mut label = if destinations.len() == 1 {
            "destination"
        } else {
            "destinations"
        };
        for destination in destinations {
            self.destination(label, destination);
            label = "";
        }
    }

    fn destination(&mut self, label: &str, destination: &DestinationChoice) {
        let share = percent(destination.probability);
        let source = place(&destination.source);
        self.row(label, &format!("{share}  {}  {source}", destination.name));
        if let Some(idle) = &destination.unused_reason {
            self.under(8, idle);
        }
        for filter in &destination.filters {
            self.under(8, filter);
        }
        if let Some(authority) = &destination.authority {
            self.under(8, &format!("authority becomes {authority}"));
        }
        self.edits(8, &destination.edits);
        if let Some(failure) = &destination.failure {
            self.under(8, failure);
        }
        if let Some(grpc_web) = &destination.grpc_web {
            self.under(8, grpc_web);
        }
        if let Some(cluster) = &destination.cluster {
            self.cluster(cluster);
        }
    }

    fn cluster(&mut self, cluster: &ClusterUsed) {
        let (balancer, protocol) = (&cluster.load_balancer, &cluster.protocol);
        let timeout = &cluster.connect_timeout;
        self.under(
            8,
            &format!("{balancer} over {protocol}, connect timeout {timeout}"),
        );
        if !cluster.limits.is_empty() {
            self.under(8, &cluster.limits.join(", "));
        }
        if let Some(tls) = &cluster.tls {
            self.under(8, &format!("TLS {tls}"));
        }
        let led = [&cluster.chosen_pod, &cluster.session_affinity];
        for led in led.into_iter().flatten() {
            self.under(8, led);
        }
        if let Some(check) = &cluster.health_check {
            self.under(8, &format!("health check: {check}"));
        }
        self.sources(8, &cluster.sources);
        self.rebuilt(8, cluster.rebuilt_because.as_deref());
        for (number, priority) in cluster.priorities.iter().enumerate() {
            self.under(8, &priority_line(number, priority));
        }
        for left_out in &cluster.skipped_endpoints {
            self.under(8, left_out);
        }
        let address = |endpoint: &EndpointUsed| endpoint.address.len();
        let width = cluster.endpoints.iter().map(address).max().unwrap_or(0);
        for member in &cluster.member_clusters {
            self.under(8, &member_line(member));
            for endpoint in endpoints_of(cluster, Some(&member.cluster_key)) {
                self.under(10, &endpoint_line(endpoint, width));
            }
        }
        if let Some(failover) = &cluster.failover {
            self.under(8, failover);
        }
        for endpoint in endpoints_of(cluster, None) {
            self.under(8, &endpoint_line(endpoint, width));
        }
        let until = match (
            cluster.endpoints.is_empty(),
            cluster.member_clusters.is_empty(),
        ) {
            (true, true) => "; until then requests get 503 UH",
            _ => "",
        };
        for name in &cluster.unresolved_hosts {
            self.under(8, &format!("     ?  {name}  resolved at run time{until}"));
        }
    }

    fn rebuilt(&mut self, indent: usize, because: Option<&str>) {
        if let Some(resource) = because {
            self.under(indent, &format!("last built again for {resource}"));
        }
    }

    fn sources(&mut self, indent: usize, sources: &[Source]) {
        for source in sources {
            self.under(indent, &place(source));
        }
    }
}

fn differs_in_path(rule: &RuleTried) -> bool {
    let mut uris = rule.conditions.iter();
    uris.any(|condition| condition.field.starts_with("uri.") && !condition.matched)
}

fn priority_line(number: usize, priority: &PriorityUsed) -> String {
    let PriorityUsed {
        load,
        healthy,
        total,
        panic_mode,
        localities,
    } = priority;
    let panics = if *panic_mode {
        ", in panic mode: all endpoints are used"
    } else {
        ""
    };
    let weights = localities.iter();
    let weights = weights.map(|(locality, weight)| format!("{locality} {weight}"));
    let weights = weights.collect::<Vec<_>>().join(", ");
    let weights = match weights.is_empty() {
        true => weights,
        false => format!(", by locality: {weights}"),
    };
    format!(
        "priority {number}: {load}% of the traffic, {healthy} of {total} endpoints healthy{panics}{weights}"
    )
}

/// Returns the endpoints of a Kubernetes cluster, or those without one.
fn endpoints_of<'a>(
    cluster: &'a ClusterUsed,
    member: Option<&'a String>,
) -> impl Iterator<Item = &'a EndpointUsed> {
    let endpoints = cluster.endpoints.iter();
    endpoints.filter(move |endpoint| endpoint.cluster_key.as_ref() == member)
}

fn member_line(member: &MemberUsed) -> String {
    let MemberUsed {
        cluster_key,
        tier,
        weight,
        share,
        healthy,
        total,
        unresolved_hosts,
        ..
    } = member;
    let share = percent(*share);
    let share = share.trim_start();
    let endpoints = match (*total, *unresolved_hosts) {
        (0, 1..) => String::new(),
        _ => format!(", {healthy} of {total} endpoints healthy"),
    };
    let names = match unresolved_hosts {
        0 => String::new(),
        1 => ", 1 unresolved name".to_owned(),
        count => format!(", {count} unresolved names"),
    };
    format!(
        "cluster {cluster_key}: tier {tier}, weight {weight}, {share} of the traffic{endpoints}{names}"
    )
}

fn condition_line(condition: &Condition, width: usize) -> String {
    let mut line = format!("{:width$}  ", condition.field);
    let got = match &condition.actual {
        Some(got) => format!("got {got:?}"),
        None => "got nothing".to_owned(),
    };
    let without = condition.field.starts_with("withoutHeaders");
    let wanted = match (condition.expected.as_str(), without) {
        ("", _) if condition.field.ends_with(".present") => String::new(),
        (wanted, false) => format!("expected {wanted:?}, "),
        (wanted, true) => format!("expected anything but {wanted:?}, "),
    };
    // writing to a string does not fail
    let _ = write!(line, "{wanted}{got}");
    if let Some(hint) = &condition.hint {
        let _ = write!(line, ": {hint}");
    }
    line
}

fn endpoint_line(endpoint: &EndpointUsed, width: usize) -> String {
    let share = endpoint
        .probability
        .map_or_else(|| "     ?".to_owned(), percent);
    let mut line = format!("{share}  {:width$}", endpoint.address);
    if endpoint.weight != 1 {
        let _ = write!(line, "  weight {}", endpoint.weight);
    }
    if let Some(prefix) = &endpoint.path_prefix {
        let _ = write!(line, "  path {prefix}...");
    }
    if let Some(tls) = &endpoint.tls {
        let _ = write!(line, "  tls {tls}");
    }
    if !endpoint.locality.is_empty() {
        let _ = write!(line, "  in {}", endpoint.locality);
    }
    if let Some(priority) = endpoint.priority {
        let _ = write!(line, "  priority {priority}");
    }
    if let Some(out) = &endpoint.unavailable_reason {
        let _ = write!(line, "  {out}");
    }
    if let Some(warmup) = &endpoint.warmup {
        let _ = write!(line, "  warms up: {warmup}");
    }
    if let Some(check) = &endpoint.last_health_check {
        let _ = write!(line, "  checks: {check}");
    }
    if !endpoint.labels.is_empty() {
        let labels = endpoint.labels.iter().map(|(k, v)| format!("{k}={v}"));
        let _ = write!(line, "  {}", labels.collect::<Vec<_>>().join(","));
        if endpoint.labels_from.as_deref() == Some("pod") {
            line.push_str(" (labels of the pod)");
        }
    }
    if let Some(node) = &endpoint.node {
        let _ = write!(line, "  node {node}");
    }
    line
}

/// Renders a probability in six columns.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let text = if (percent - percent.round()).abs() < 0.005 {
        format!("{percent:.0}%")
    } else {
        format!("{percent:.1}%")
    };
    format!("{text:>6}")
}

fn place(source: &Source) -> String {
    format!("{} ({}:{})", source.object, source.file, source.line)
}
