//! ServiceImports as YAML documents.

use std::fmt::Write;
use std::net::IpAddr;

use config_loader::imports::Import;
use config_loader::resource::core::{Host, SessionAffinity};
use config_loader::resource::flomesh::{
    ImportPort, ImportTarget, ImportType, ServiceAccount, ServiceImport,
};

/// Renders one document for each import, in their order; an empty text for no imports.
pub(super) fn documents(imports: &[Import]) -> String {
    let mut out = String::new();
    for (index, import) in imports.iter().enumerate() {
        if index > 0 {
            out.push_str("---\n");
        }
        let (name, group) = (&import.name, import.group);
        let _ = writeln!(out, "apiVersion: {group}/v1alpha1\nkind: ServiceImport");
        let (name, namespace) = (scalar(&name.name), scalar(&name.namespace));
        let _ = writeln!(out, "metadata:\n  name: {name}\n  namespace: {namespace}");
        spec(&mut out, &import.spec);
    }
    out
}

fn spec(out: &mut String, import: &ServiceImport) {
    let import_type = match import.import_type {
        ImportType::ClusterSetIp => "ClusterSetIP",
        ImportType::Headless => "Headless",
    };
    let _ = writeln!(out, "spec:\n  type: {import_type}");
    if !import.vips.is_empty() {
        out.push_str("  ips:\n");
    }
    for vip in &import.vips {
        let _ = writeln!(out, "    - {}", address(*vip));
    }
    if let SessionAffinity::ClientIp { timeout } = import.session_affinity {
        out.push_str("  sessionAffinity: ClientIP\n");
        if timeout != SessionAffinity::TIMEOUT_DEFAULT {
            let _ = writeln!(
                out,
                "  sessionAffinityConfig:\n    clientIP:\n      timeoutSeconds: {}",
                timeout.as_secs()
            );
        }
    }
    match &import.service_account {
        None => (),
        Some(ServiceAccount::Any) => out.push_str("  serviceAccountName: \"*\"\n"),
        Some(ServiceAccount::Named(name)) => {
            let _ = writeln!(out, "  serviceAccountName: {}", scalar(name));
        }
    }
    if import.ports.is_empty() {
        out.push_str("  ports: []\n");
        return;
    }
    out.push_str("  ports:\n");
    import.ports.iter().for_each(|one| port(out, one));
}

fn port(out: &mut String, port: &ImportPort) {
    let mut begin = "    - ";
    if !port.name.is_empty() {
        let _ = writeln!(out, "{begin}name: {}", scalar(&port.name));
        begin = "      ";
    }
    let _ = writeln!(out, "{begin}port: {}", port.port);
    let _ = writeln!(out, "      protocol: {}", port.protocol);
    if let Some(speaks) = &port.app_protocol {
        let _ = writeln!(out, "      appProtocol: {}", scalar(speaks));
    }
    if port.endpoints.is_empty() {
        out.push_str("      endpoints: []\n");
        return;
    }
    out.push_str("      endpoints:\n");
    for endpoint in &port.endpoints {
        let key = scalar(endpoint.cluster.as_str());
        let _ = writeln!(out, "        - clusterKey: {key}\n          target:");
        target(out, &endpoint.target);
    }
}

/// Renders a target with all fields, including empty ones, as the API requires.
fn target(out: &mut String, target: &ImportTarget) {
    let host = target.server_name.as_deref().unwrap_or_default();
    let ip = match target.address {
        Host::Dns(_) => "\"\"".to_owned(),
        Host::Ip(ip) => address(ip),
    };
    let lines = [
        ("host", scalar(host)),
        ("ip", ip),
        ("port", target.port.to_string()),
        ("path", scalar(&target.path_prefix)),
    ];
    for (name, value) in lines {
        let _ = writeln!(out, "            {name}: {value}");
    }
}

/// Renders an address. IPv6 is quoted, since its colons would be read as keys.
fn address(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("\"{ip}\""),
    }
}

/// Renders a text as a scalar: plain where every reader takes it for a string, in double quotes otherwise.
fn scalar(text: &str) -> String {
    let first = |byte: u8| byte.is_ascii_alphabetic() || byte == b'/';
    let further = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
    let is_plain = text.bytes().next().is_some_and(first) && text.bytes().all(further);
    match is_plain && !is_word(text) {
        true => text.to_owned(),
        false => quoted(text),
    }
}

/// Returns whether a reader of YAML 1.1 or 1.2 takes a plain text for a boolean or null.
fn is_word(text: &str) -> bool {
    let words = ["false", "n", "no", "null", "off", "on", "true", "y", "yes"];
    words.iter().any(|word| word.eq_ignore_ascii_case(text))
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match (character, u32::from(character)) {
            ('"' | '\\', _) => out.extend(['\\', character]),
            (' '..='~', _) => out.push(character),
            (_, code @ 0..=0xff) => _ = write!(out, "\\x{code:02x}"),
            (_, code @ 0..=0xffff) => _ = write!(out, "\\u{code:04x}"),
            (_, code) => _ = write!(out, "\\U{code:08x}"),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests;
