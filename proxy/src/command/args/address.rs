//! Addresses as arguments.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Parses an address to listen on or to connect to. The error names the missing part and a complete address.
pub(in crate::command) fn socket_address(text: &str) -> Result<SocketAddr, String> {
    let text = text.trim();
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let (host, port) = match text.rsplit_once(':') {
        _ if text.parse::<IpAddr>().is_ok() => (text, ""),
        Some(parts) => parts,
        None if text.bytes().all(|byte| byte.is_ascii_digit()) => ("", text),
        None => (text, ""),
    };
    let (host, problem) = match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(host) => (host, "the address lacks a port"),
        Err(_) if host.is_empty() => (Ipv4Addr::LOCALHOST.into(), "the address lacks an IP"),
        Err(_) => (
            Ipv4Addr::LOCALHOST.into(),
            "the address is not an IP and a port",
        ),
    };
    let port = match port.parse::<u16>() {
        Ok(port) => SocketAddr::new(host, port).to_string(),
        Err(_) if !port.is_empty() => return Err("a port is a number up to 65535".to_owned()),
        Err(_) => match host {
            IpAddr::V4(host) => format!("{host}:PORT"),
            IpAddr::V6(host) => format!("[{host}]:PORT"),
        },
    };
    Err(format!("{problem}; write for example {port}"))
}
