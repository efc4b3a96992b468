use super::super::material::{AuthoritiesPem, IdentityPem};
use super::*;

use crate::pki::Authority;

fn settings(naming: Naming) -> ClientSettings {
    ClientSettings {
        mode: ClientMode::Simple,
        identity: None,
        authorities: Some(AuthoritySource::System { revoked: None }),
        names: Vec::new(),
        trust_domains: Vec::new(),
        naming,
        protocol: Default::default(),
        refused: None,
    }
}

fn believing(ca: &Authority) -> Material {
    let pem = ca.pem();
    let pem = AuthoritiesPem {
        authorities: ("ca.pem", pem.as_bytes()),
        revoked: None,
        is_lenient: true,
    };
    Material {
        identity: None,
        authorities: Some(Arc::new(Authorities::read(pem).unwrap())),
    }
}

fn alpn(tls: &ClientTls, inside: Inside) -> Vec<String> {
    let host = server_name("a.test");
    let (config, _) = tls.terms(inside, host.as_ref()).unwrap();
    let names = config.alpn_protocols.iter();
    names
        .map(|name| String::from_utf8(name.clone()).unwrap())
        .collect()
}

#[test]
fn alpn_protocols_follow_mode_and_port_protocol() {
    let ca = Authority::new("ca");
    for (mode, inside, expected) in [
        (ClientMode::Simple, Inside::Http1, &[][..]),
        (ClientMode::Simple, Inside::Bytes, &[]),
        (ClientMode::Simple, Inside::Http2, &["h2"]),
        (ClientMode::Mutual, Inside::Http1, &[]),
        (ClientMode::Mutual, Inside::Http2, &["h2"]),
        (
            ClientMode::IstioMutual,
            Inside::Http1,
            &["istio-http/1.1", "istio", "http/1.1"],
        ),
        (ClientMode::IstioMutual, Inside::Bytes, &["istio"]),
        (
            ClientMode::Automatic,
            Inside::Http2,
            &["istio-h2", "istio", "h2"],
        ),
    ] {
        let settings = ClientSettings {
            mode,
            ..settings(Naming::Host)
        };
        let tls = ClientTls::new(1, settings, believing(&ca));
        assert_eq!(alpn(&tls, inside), expected, "{mode:?} {inside:?}");
    }
}

#[test]
fn http2_is_negotiated_by_alpn_except_between_sidecars() {
    let ca = Authority::new("ca");
    for (mode, agreed, expected) in [
        (ClientMode::Simple, Some(&b"h2"[..]), true),
        (ClientMode::Simple, Some(b"istio"), false),
        (ClientMode::Simple, None, false),
        (ClientMode::IstioMutual, Some(b"istio"), true),
        (ClientMode::IstioMutual, Some(b"http/1.1"), false),
        (ClientMode::IstioMutual, None, false),
    ] {
        let settings = ClientSettings {
            mode,
            ..settings(Naming::Host)
        };
        let tls = ClientTls::new(1, settings, believing(&ca));
        assert_eq!(tls.agreed_on_http2(agreed), expected, "{mode:?} {agreed:?}");
    }
}

#[test]
fn sni_comes_from_the_rule_or_the_request() {
    let ca = Authority::new("ca");
    let fixed = settings(Naming::Fixed(
        "outbound_.80_._.b.default.svc.cluster.local".into(),
    ));
    let fixed = ClientTls::new(1, fixed, believing(&ca));
    let by_host = ClientTls::new(2, settings(Naming::Host), believing(&ca));
    let host = server_name("A.test.");
    let name = |tls: &ClientTls, inside, host: Option<&ServerName<'static>>| {
        tls.terms(inside, host)
            .map(|(_, name)| name.to_str().into_owned())
    };
    let long = "outbound_.80_._.b.default.svc.cluster.local";
    assert_eq!(name(&fixed, Inside::Http1, host.as_ref()).unwrap(), long);
    assert_eq!(name(&fixed, Inside::Bytes, None).unwrap(), long);
    assert_eq!(
        name(&by_host, Inside::Http1, host.as_ref()).unwrap(),
        "a.test"
    );
    assert_eq!(name(&by_host, Inside::Bytes, None).unwrap(), "0.0.0.0");
    assert!(name(&by_host, Inside::Http1, None).is_err());
    assert!(fixed.serial != by_host.serial && !fixed.wants_host() && by_host.wants_host());
}

#[test]
fn missing_or_invalid_material_prevents_connections() {
    let ca = Authority::new("ca");
    let own = IdentitySource::Secret {
        namespace: "a".into(),
        name: "b".into(),
    };
    let refusal = |settings: ClientSettings, material| {
        let tls = ClientTls::new(1, settings, material);
        assert!(tls.terms(Inside::Bytes, None).is_err());
        tls.refusal().unwrap().to_string()
    };
    let host = || settings(Naming::Host);
    assert_eq!(
        refusal(host(), Material::default()),
        "there are no usable CA certificates"
    );
    let mutual = ClientSettings {
        identity: Some(own),
        ..host()
    };
    assert_eq!(
        refusal(mutual, believing(&ca)),
        "there is no usable client certificate"
    );
    let refused = ClientSettings {
        refused: Some("no".into()),
        ..host()
    };
    assert_eq!(refusal(refused, believing(&ca)), "no");
    let name = settings(Naming::Fixed("no name".into()));
    assert_eq!(
        refusal(name, believing(&ca)),
        "`no name` is no name for SNI"
    );
}

#[test]
fn private_keys_are_not_shown() {
    let ca = Authority::new("ca");
    let pair = ca.server(&["a.test"]);
    let identity = Identity::read(IdentityPem {
        chain: ("chain", pair.chain.as_bytes()),
        key: ("key", pair.key.as_bytes()),
    });
    let material = Material {
        identity: Some(Arc::new(identity.unwrap())),
        ..believing(&ca)
    };
    let tls = ClientTls::new(1, settings(Naming::Host), material);
    let (config, _) = tls.terms(Inside::Bytes, None).unwrap();
    let shown = format!("{tls:?} {config:?}");
    assert!(
        !shown.contains("PRIVATE") && shown.contains("Own"),
        "{shown}"
    );
}

#[test]
fn pages_show_sni_and_verified_names() {
    let ca = Authority::new("ca");
    let system = settings(Naming::Host);
    let named = ClientSettings {
        names: vec!["a".into(), "b".into()],
        ..settings(Naming::Fixed("x.test".into()))
    };
    let nothing = ClientSettings {
        authorities: None,
        ..settings(Naming::Fixed("x.test".into()))
    };
    let by = "verifies by the operating system's CAs";
    for (settings, material, expected) in [
        (
            system.clone(),
            believing(&ca),
            format!("SIMPLE, sni is the host, {by}, for the host"),
        ),
        (
            named,
            believing(&ca),
            format!("SIMPLE, sni x.test, {by}, for a or b"),
        ),
        (
            nothing,
            Material::default(),
            "SIMPLE, sni x.test, verifies nothing".to_owned(),
        ),
        (
            system,
            Material::default(),
            format!(
                "SIMPLE, sni is the host, {by}, for the host; connections fail: there are no usable CA certificates"
            ),
        ),
    ] {
        let shown = ClientTls::new(1, settings, material).to_string();
        assert_eq!(shown, expected);
    }
}
