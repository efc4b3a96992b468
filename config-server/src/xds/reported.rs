//! Report of the proxy on a stream, the same that proxies write over the Kubernetes API.
//!
//! A Strait proxy reports what it has in effect. The report of any other client is derived from its ACKs and NACKs,
//! which say less: accepted resources may take effect later.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use config_loader::proxy_state::{
    ProxySpec, ProxyStatus, REPORT_GROUP, REPORT_PLURAL, REPORT_VERSION, RejectedObject,
};
use config_loader::xds::{Node, report_in};
use http::Method;
use prost_types::value::Kind;

use crate::access::User;
use crate::api::Call;
use crate::api::params::Params;
use crate::api::route::Target;
use crate::metrics::Metrics;
use crate::object;
use crate::proxies::{self, Proxies, REPORT_BYTES_MAX, Report, Reporter, Sender};
use crate::resources;
use crate::store::Revision;

/// Grace period after the end of a stream, in which its proxy may reconnect before it is removed. Streams are renewed
/// regularly.
const LEAVES_AFTER: Duration = Duration::from_secs(5);

/// `user_agent_name` of clients that send reports.
const STRAIT: &str = "strait";

/// Proxy of one stream. It is removed soon after this is dropped.
pub(super) struct ReportedProxy {
    proxies: Arc<Proxies>,
    metrics: Arc<Metrics>,
    user: User,
    reporter: Reporter,
    /// Latest report, received or derived from ACKs and NACKs.
    report: Option<Report>,
    /// Whether the client sends its own reports.
    is_own: bool,
    /// Objects that its NACKs reject.
    rejected: Vec<RejectedObject>,
    /// Whether a rejected report has been logged.
    has_failed: bool,
}

impl Drop for ReportedProxy {
    fn drop(&mut self) {
        self.proxies
            .ended(self.reporter, Instant::now() + LEAVES_AFTER);
    }
}

impl ReportedProxy {
    pub(super) fn new(proxies: &Arc<Proxies>, metrics: &Arc<Metrics>, user: &User) -> Self {
        ReportedProxy {
            proxies: Arc::clone(proxies),
            metrics: Arc::clone(metrics),
            user: user.clone(),
            reporter: proxies.reporter(),
            report: None,
            is_own: false,
            rejected: Vec::new(),
            has_failed: false,
        }
    }

    /// Applies the node of the first request of a stream.
    pub(super) fn apply_node(&mut self, node: &Node) {
        self.is_own = node.user_agent_name == STRAIT;
        if self.is_own {
            return;
        }
        self.report = identity(node);
        if let Some(report) = &mut self.report {
            // A renewed stream continues with the revision that was accepted before.
            let known = self.proxies.get(&report.namespace, &report.name);
            report.status.revision = known.and_then(|known| known.report.status.revision);
        }
        self.publish();
    }

    /// Applies a report of the proxy itself.
    pub(super) fn apply_report(&mut self, node: &Node) {
        match read(node) {
            Ok(report) => {
                self.is_own = true;
                self.report = Some(report);
                self.publish();
            }
            Err(why) => self.log_failure(&why),
        }
    }

    /// Applies ACKs and NACKs: the revision up to which everything is accepted, and the rejected objects.
    pub(super) fn apply_acks(&mut self, accepted: Option<Revision>, rejected: Vec<RejectedObject>) {
        // Until the first state of a newly subscribed type is accepted, the previous revision counts.
        let before = self.report.as_ref();
        let before = before.and_then(|report| report.status.revision.clone());
        let accepted = accepted.map(|revision| revision.to_string()).or(before);
        let is_same = match &self.report {
            None => true,
            Some(report) => self.is_own || report.status.revision == accepted,
        };
        if is_same && rejected == self.rejected {
            return;
        }
        self.rejected = rejected;
        if let Some(report) = self.report.as_mut().filter(|_| !self.is_own) {
            report.status.revision = accepted;
        }
        self.publish();
    }

    /// Writes the report to the table of proxies.
    pub(super) fn publish(&mut self) {
        let Some(mut report) = self.report.clone() else {
            return;
        };
        let status = &mut report.status;
        for one in &self.rejected {
            let is_known = status
                .rejected
                .iter()
                .any(|known| known.object == one.object);
            if !is_known {
                status.rejected_count += 1;
                status.rejected.push(one.clone());
            }
        }
        status
            .rejected
            .truncate(config_loader::proxy_state::REJECTED_MAX);
        let told = match as_kubernetes_write(&report).check(&self.user) {
            Ok(()) => {
                self.metrics.report();
                let sender = Sender {
                    reporter: Some(self.reporter),
                    subject: self.user.subject(),
                };
                let taken = self.proxies.report_by(report, sender, Instant::now());
                taken.map(|_| ()).map_err(|why| why.to_string())
            }
            Err(failure) => Err(failure.message.clone()),
        };
        match told {
            Ok(()) => self.has_failed = false,
            Err(why) => self.log_failure(&why),
        }
    }

    fn log_failure(&mut self, why: &str) {
        if !std::mem::replace(&mut self.has_failed, true) {
            let user = &*self.user.name;
            tracing::warn!(user, why, "the report of a proxy over xDS is not taken");
        }
    }
}

/// Parses the report in a request.
fn read(node: &Node) -> Result<Report, String> {
    let text = report_in(node).ok_or("its node has no report")?;
    if text.len() > REPORT_BYTES_MAX {
        return Err(format!(
            "it has {} bytes, and the limit is {REPORT_BYTES_MAX}",
            text.len()
        ));
    }
    let object = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let report = proxies::read(&object).map_err(|(field, why)| format!("{field}: {why}"))?;
    for (field, name) in [("namespace", &report.namespace), ("name", &report.name)] {
        if !object::is_name(name) {
            return Err(format!("metadata.{field}: {name:?} is no name"));
        }
    }
    Ok(report)
}

/// Returns the identity of a client that sends no report; `None` if its node has no valid name and namespace.
fn identity(node: &Node) -> Option<Report> {
    let fields = &node.metadata.as_ref()?.fields;
    let text = |name: &str| match fields.get(name).and_then(|value| value.kind.as_ref()) {
        Some(Kind::StringValue(text)) => text.clone(),
        _ => String::new(),
    };
    let named = text("NAME");
    // Istio: TYPE~IP~NAME.NAMESPACE~DOMAIN.
    let mut parts = node.id.split('~');
    let mode = match parts.next() {
        Some("sidecar") => "sidecar",
        _ => "gateway",
    };
    let full = parts.nth(1).unwrap_or(&node.id);
    let short = full.split_once('.').map_or(full, |(name, _)| name);
    let name = if named.is_empty() { short } else { &named };
    let (name, namespace) = (name.to_ascii_lowercase(), text("NAMESPACE"));
    let is_known = object::is_name(&name) && object::is_name(&namespace);
    is_known.then(|| Report {
        namespace,
        name,
        spec: ProxySpec {
            cluster: text("CLUSTER_ID"),
            mode: mode.to_owned(),
            version: node.user_agent_version.clone(),
            ..ProxySpec::default()
        },
        status: ProxyStatus::default(),
    })
}

/// Returns the equivalent write of a report over the Kubernetes API, which needs the same permission.
fn as_kubernetes_write(report: &Report) -> Call {
    let resource = resources::find(REPORT_GROUP, REPORT_VERSION, REPORT_PLURAL);
    let (resource, version) = resource.expect("the table of resources has reports");
    Call {
        content_type: String::new(),
        user_agent: String::new(),
        method: Method::PUT,
        target: Target {
            resource,
            version,
            namespace: Some(report.namespace.clone()),
            name: Some(report.name.clone()),
            is_status: false,
        },
        params: Params::default(),
        body: Bytes::new(),
    }
}
