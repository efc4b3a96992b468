//! PeerAuthentication: validation.

use std::collections::BTreeMap;

use super::{Check, shared};
use crate::diagnostic::codes::common::CM016;
use crate::diagnostic::codes::istio::PA301;
use crate::raw::{self, Field, Map};
use crate::resource::istio::{MutualTls, PeerAuthentication, PortMutualTls};
use crate::validate::scalar;

/// Mutual TLS modes by name; `UNSET` inherits.
const MODES: [(&str, Option<MutualTls>); 4] = [
    ("STRICT", Some(MutualTls::Strict)),
    ("PERMISSIVE", Some(MutualTls::Permissive)),
    ("DISABLE", Some(MutualTls::Disable)),
    ("UNSET", None),
];

/// Checks a PeerAuthentication.
pub fn peer_authentication(
    raw: &raw::istio::PeerAuthentication,
    check: &mut Check<'_>,
) -> PeerAuthentication {
    let selector = raw
        .selector
        .get()
        .map(|selector| shared::selector(&selector.match_labels, raw.selector.span(), check));
    let selector = selector.unwrap_or_default();
    let ports = ports(&raw.port_level_mtls, check);
    if selector.is_empty() && !ports.is_empty() {
        check
            .error(
                PA301,
                raw.port_level_mtls.span(),
                "portLevelMtls needs a selector",
            )
            .help("write `selector: {matchLabels: ...}`, or remove `portLevelMtls`");
    }
    let mtls = raw.mtls.get();
    PeerAuthentication {
        selector,
        mode: mtls.and_then(|mtls| mode(mtls, check)),
        ports,
        line: shared::line(&raw.mtls, check),
    }
}

fn mode(raw: &raw::istio::MutualTls, check: &mut Check<'_>) -> Option<MutualTls> {
    scalar::enum_of(&raw.mode, &MODES, check).flatten()
}

fn ports(
    field: &Field<Map<raw::istio::MutualTls>>,
    check: &mut Check<'_>,
) -> BTreeMap<u16, PortMutualTls> {
    let mut ports = BTreeMap::new();
    for (text, key, value) in field.get().into_iter().flat_map(Map::iter) {
        let port = text.parse::<u16>().ok().filter(|port| *port > 0);
        let Some(port) = port else {
            check
                .error(
                    CM016,
                    key.span(),
                    format!("`{text}` is not a port from 1 to 65535"),
                )
                .help("write the number of a port of the workload, not of its service");
            continue;
        };
        let mode = value.get().and_then(|value| mode(value, check));
        let line = check.line(key.span());
        ports.insert(port, PortMutualTls { mode, line });
    }
    ports
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validate::istio::testing::{check_of, load};

    fn document(body: &str) -> String {
        let body = body.replace('\n', "\n  ");
        format!(
            "apiVersion: security.istio.io/v1\nkind: PeerAuthentication\n\
             metadata: {{name: own, namespace: ns}}\nspec:\n  {body}\n"
        )
    }

    #[test]
    fn modes_selectors_and_ports_are_checked() {
        const SELECTOR: &str = "selector: {matchLabels: {app: a}}\n";
        for (body, expected) in [
            ("mtls: {mode: STRICT}", vec![]),
            ("mtls: {mode: PERMISSIVE}", vec![]),
            ("mtls: {mode: DISABLE}", vec![]),
            ("mtls: {mode: UNSET}", vec![]),
            ("mtls: {}", vec![]),
            ("mtls: {mode: STRCIT}", vec!["E CM017 5"]),
            ("mtls: {mod: STRICT}", vec!["E CM021 5"]),
            ("selector: {}\nmtls: {mode: STRICT}", vec!["W CM013 5"]),
            ("selector: {matchLabels: {app: '*'}}", vec!["E CM012 5"]),
            ("portLevelMtls: {8080: {mode: DISABLE}}", vec!["E PA301 5"]),
            ("portLevelMtls: {}", vec![]),
            (
                &format!("{SELECTOR}portLevelMtls:\n  8080: {{mode: DISABLE}}\n  0: {{}}"),
                vec!["E CM016 8"],
            ),
            (
                &format!("{SELECTOR}portLevelMtls:\n  http: {{mode: DISABLE}}"),
                vec!["E CM016 7"],
            ),
            (
                &format!("{SELECTOR}portLevelMtls:\n  80: {{mode: OFTEN}}"),
                vec!["E CM017 7"],
            ),
        ] {
            check_of(&document(body), &expected);
        }
    }

    #[test]
    fn every_field_of_a_peer_authentication_is_read() {
        let (set, found) = load(&document(
            "selector: {matchLabels: {app: a}}\nmtls: {mode: STRICT}\n\
             portLevelMtls: {'8080': {mode: DISABLE}, 9090: {mode: UNSET}}",
        ));
        assert!(found.is_empty(), "{found:#?}");
        let mut policies = set.peer_authentications.values();
        let policy = &policies.next().expect("it is good").spec;
        assert_eq!(policy.selector["app"], "a");
        assert_eq!(policy.mode, Some(MutualTls::Strict));
        assert_eq!(policy.ports[&8080].mode, Some(MutualTls::Disable));
        assert_eq!(policy.ports[&9090].mode, None);
    }
}
