//! `x-forwarded-client-cert`: what a client's certificate said, as one element of the list.
//!
//! Keys `By`, `Hash`, `Cert`, `Chain`, `Subject`, `URI`, `DNS`, joined by `;`, as Envoy writes them. A gateway sets the
//! element in place of whatever the client claimed; elements of several hops are separated by `,`.

use hyper::header::HeaderValue;

/// What a peer's certificate says, in the forms that the header has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerCertificate {
    /// SHA-256 of the certificate's DER, in lower-case hexadecimal.
    pub hash: String,
    /// The certificate in PEM, percent-encoded; empty to leave it out.
    pub cert: String,
    /// The whole chain in PEM, percent-encoded, the peer's own first; empty to leave it out.
    pub chain: String,
    /// Subject, as RFC 2253 writes it.
    pub subject: String,
    /// URI names, an SPIFFE identity among them.
    pub uris: Vec<String>,
    /// DNS names.
    pub dns: Vec<String>,
}

/// The element for a peer; `by` is the URI name of our own certificate.
///
/// `Subject` and `URI` are there even when the certificate has none, so that a reader sees that there was one. `None` when
/// a name has bytes that no header may hold.
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
    // RFC 2253 has escaped its quotes already.
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

/// A pair whose value is quoted only if a reader could not tell its end otherwise.
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
