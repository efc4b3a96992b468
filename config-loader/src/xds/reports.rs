//! Report of a proxy over xDS: a request with its own type URL, whose node metadata contains the report. It is sent
//! only to config servers of Strait, which identify themselves in their first response.

use prost_types::value::Kind;
use prost_types::{Struct, Value as ProtoValue};
use serde_json::Value;

use super::messages::{ControlPlane, Node};

/// Type URL of a request with a report. The request is no subscription and gets no response.
pub const REPORT_TYPE: &str = "strait.io/v1alpha1/Proxy";

/// Field of the node metadata that contains the report, as JSON.
const FIELD: &str = "REPORT";

/// Prefix of the identifier of servers that accept reports.
const SERVER: &str = "strait/";

/// Returns the identity of a server that accepts reports.
pub fn control_plane() -> ControlPlane {
    ControlPlane {
        identifier: format!("{SERVER}{}", env!("CARGO_PKG_VERSION")),
    }
}

/// Whether a server accepts reports.
pub fn takes_reports(server: &ControlPlane) -> bool {
    server.identifier.starts_with(SERVER)
}

/// Returns the node of a request with this report.
pub fn report_node(report: &Value) -> Node {
    let value = ProtoValue {
        kind: Some(Kind::StringValue(report.to_string())),
    };
    Node {
        metadata: Some(Struct {
            fields: [(FIELD.to_owned(), value)].into_iter().collect(),
        }),
        ..Node::default()
    }
}

/// Returns the report from the node of a request, as JSON.
pub fn report_in(node: &Node) -> Option<&str> {
    let fields = &node.metadata.as_ref()?.fields;
    match fields.get(FIELD)?.kind.as_ref()? {
        Kind::StringValue(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn report_is_read_as_it_is_written() {
        let report = json!({"kind": "Proxy", "status": {"revision": "7"}});
        let text = report.to_string();
        assert_eq!(report_in(&report_node(&report)), Some(&*text));
        assert_eq!(report_in(&Node::default()), None);
        assert!(takes_reports(&control_plane()));
        let other = ControlPlane {
            identifier: "{\"Component\":\"istiod\"}".to_owned(),
        };
        assert!(!takes_reports(&other));
    }
}
