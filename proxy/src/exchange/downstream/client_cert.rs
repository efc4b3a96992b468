//! `x-forwarded-client-cert`: one element of the list, made from a client's certificate.
//!
//! Keys `By`, `Hash`, `Cert`, `Chain`, `Subject`, `URI`, `DNS`, joined by `;`, as Envoy writes them. A gateway replaces
//! the client's header with its own element; elements of several hops are separated by `,`.

use hyper::header::HeaderValue;

/// A peer's certificate in the formats of the header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerCertificate {
    /// SHA-256 of the certificate's DER, in lower-case hexadecimal.
    pub hash: String,
    /// PEM of the certificate, percent-encoded; empty to omit it.
    pub cert: String,
    /// PEM of the whole chain, the peer's certificate first, percent-encoded; empty to omit it.
    pub chain: String,
    /// Subject in the format of RFC 2253.
    pub subject: String,
    /// URI names, including a SPIFFE id.
    pub uris: Vec<String>,
    /// DNS names.
    pub dns: Vec<String>,
}

/// Formats the element for a peer; `by` is the URI name of the proxy's own certificate.
///
/// Includes `Subject` and `URI` even if the certificate has none, to show that there was a certificate. `None` if a
/// name has bytes that a header must not contain.
pub fn element(by: Option<&str>, peer: &PeerCertificate) -> Option<HeaderValue> {
    let mut out = String::with_capacity(
        128 + peer.hash.len() + peer.cert.len() + peer.chain.len() + peer.subject.len(),
    );
    if let Some(by) = by {
        push(&mut out, "By", by);
    }
    if !peer.hash.is_empty() {
        push(&mut out, "Hash", &peer.hash);
    }
    for (key, pem) in [("Cert", &peer.cert), ("Chain", &peer.chain)] {
        if !pem.is_empty() {
            push_quoted(&mut out, key, pem);
        }
    }
    // quotes are escaped already, by RFC 2253
    begin(&mut out, "Subject");
    out.extend(["\"", &peer.subject, "\""]);
    if peer.uris.is_empty() {
        push(&mut out, "URI", "");
    }
    for uri in &peer.uris {
        push(&mut out, "URI", uri);
    }
    for name in &peer.dns {
        push(&mut out, "DNS", name);
    }
    HeaderValue::try_from(out).ok()
}

/// Appends a pair, and quotes its value only if its end would be ambiguous otherwise.
fn push(out: &mut String, key: &str, value: &str) {
    if value.contains([',', ';', '=', '"']) {
        return push_quoted(out, key, value);
    }
    begin(out, key);
    out.push_str(value);
}

fn push_quoted(out: &mut String, key: &str, value: &str) {
    begin(out, key);
    out.push('"');
    for character in value.chars() {
        if matches!(character, '"' | '\\') {
            out.push('\\');
        }
        out.push(character);
    }
    out.push('"');
}

fn begin(out: &mut String, key: &str) {
    if !out.is_empty() {
        out.push(';');
    }
    out.push_str(key);
    out.push('=');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::peer::percent_encode;

    fn text(by: Option<&str>, peer: &PeerCertificate) -> String {
        let value = element(by, peer).unwrap();
        value.to_str().unwrap().to_owned()
    }

    #[test]
    fn keys_have_the_order_of_envoy() {
        let peer = PeerCertificate {
            hash: "ab12".to_owned(),
            cert: percent_encode("-----BEGIN CERTIFICATE-----\na+/=\n"),
            chain: String::new(),
            subject: "CN=client,O=Example".to_owned(),
            uris: vec!["spiffe://cluster.local/ns/a/sa/b".to_owned()],
            dns: vec!["a.example".to_owned(), "b.example".to_owned()],
        };
        assert_eq!(
            text(Some("spiffe://cluster.local/ns/edge/sa/gw"), &peer),
            "By=spiffe://cluster.local/ns/edge/sa/gw;Hash=ab12;\
             Cert=\"-----BEGIN%20CERTIFICATE-----%0Aa%2B%2F%3D%0A\";Subject=\"CN=client,O=Example\";\
             URI=spiffe://cluster.local/ns/a/sa/b;DNS=a.example;DNS=b.example"
        );
    }

    #[test]
    fn empty_subject_and_uri_are_written() {
        let peer = PeerCertificate {
            hash: "ab12".to_owned(),
            ..PeerCertificate::default()
        };
        assert_eq!(text(None, &peer), "Hash=ab12;Subject=\"\";URI=");
    }

    #[test]
    fn value_that_would_end_early_is_quoted() {
        let peer = PeerCertificate {
            // as RFC 2253 writes a name with quotes and a backslash at its end
            subject: r#"CN=a \"b\"\\"#.to_owned(),
            uris: vec!["urn:a;b=c".to_owned(), r#"urn:\";DNS=x"#.to_owned()],
            ..PeerCertificate::default()
        };
        assert_eq!(
            text(None, &peer),
            r#"Subject="CN=a \"b\"\\";URI="urn:a;b=c";URI="urn:\\\";DNS=x""#
        );
    }

    #[test]
    fn name_invalid_in_a_header_adds_no_element() {
        let peer = PeerCertificate {
            dns: vec!["a\nb".to_owned()],
            ..PeerCertificate::default()
        };
        assert_eq!(element(None, &peer), None);
    }
}
