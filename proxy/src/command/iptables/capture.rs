//! Flags that choose the connections to capture, and their parsers.

use std::fmt;
use std::fs;
use std::net::IpAddr;

use clap::{Args, ValueEnum};
use ipnet::IpNet;

/// Ports of Strait and Istio: admin, health and metrics.
const PROXY_PORTS: [u16; 4] = [15_000, 15_020, 15_021, 15_090];

/// Connections to capture. The names of `istio-iptables` work as well.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Capture")]
pub struct CaptureArgs {
    /// Port of the proxy for outbound connections
    #[arg(
        short = 'p', long, alias = "envoy-port", value_name = "PORT", default_value_t = 15_001,
        env = "STRAIT_OUTBOUND_PORT", value_parser = port
    )]
    pub outbound_port: u16,
    /// Port of the proxy for inbound connections
    #[arg(
        short = 'z', long, alias = "inbound-capture-port", value_name = "PORT", default_value_t = 15_006,
        env = "STRAIT_INBOUND_PORT", value_parser = port
    )]
    pub inbound_port: u16,
    /// User of the proxy, whose connections are not captured: number or name
    #[arg(
        short = 'u', long = "proxy-uid", value_name = "UID,...", default_value = "1337", env = "STRAIT_PROXY_UID",
        value_delimiter = ',', value_parser = user
    )]
    pub proxy_uids: Vec<u32>,
    /// Group of the proxy, whose connections are not captured: number or name; default: the numbers of --proxy-uid
    #[arg(
        short = 'g', long = "proxy-gid", value_name = "GID,...", env = "STRAIT_PROXY_GID",
        value_delimiter = ',', value_parser = group
    )]
    pub proxy_gids: Vec<u32>,
    /// Mode in which inbound connections are captured; TPROXY keeps the client's address and needs CAP_NET_ADMIN in the
    /// proxy
    #[arg(
        short = 'm', long, aliases = ["inbound-interception-mode", "istio-inbound-interception-mode"],
        value_name = "MODE", default_value = "REDIRECT", env = "STRAIT_INTERCEPTION_MODE",
        value_enum, ignore_case = true
    )]
    pub interception_mode: InterceptionMode,
    /// Inbound ports to capture: ports and ranges (80,8000-8999), `*` for all, or an empty list for none
    #[arg(
        short = 'b', long, alias = "istio-inbound-ports", value_name = "PORTS", default_value = "*",
        env = "STRAIT_INCLUDE_INBOUND_PORTS", value_parser = selection(port_range)
    )]
    pub include_inbound_ports: Selection<PortRange>,
    /// Inbound ports not to capture; the proxy's own (15000, 15020, 15021, 15090 and those it captures with) and DNS
    /// never are
    #[arg(
        short = 'd', long, alias = "istio-local-exclude-ports", value_name = "PORTS", default_value = "",
        env = "STRAIT_EXCLUDE_INBOUND_PORTS", value_parser = listed(port_range), hide_default_value = true
    )]
    pub exclude_inbound_ports: Selection<PortRange>,
    /// Outbound ports to capture whatever the address
    #[arg(
        short = 'q', long, alias = "istio-outbound-ports", value_name = "PORTS", default_value = "",
        env = "STRAIT_INCLUDE_OUTBOUND_PORTS", value_parser = listed(port_range), hide_default_value = true
    )]
    pub include_outbound_ports: Selection<PortRange>,
    /// Outbound ports not to capture; DNS never is
    #[arg(
        short = 'o', long, alias = "istio-local-outbound-ports-exclude", value_name = "PORTS", default_value = "",
        env = "STRAIT_EXCLUDE_OUTBOUND_PORTS", value_parser = listed(port_range), hide_default_value = true
    )]
    pub exclude_outbound_ports: Selection<PortRange>,
    /// Outbound destinations to capture: IP ranges (10.0.0.0/8,fd00::/8), `*` for all, or an empty list for none
    #[arg(
        short = 'i', long, alias = "istio-service-cidr", value_name = "CIDRS", default_value = "*",
        env = "STRAIT_INCLUDE_OUTBOUND_CIDRS", value_parser = selection(cidr)
    )]
    pub include_outbound_cidrs: Selection<IpNet>,
    /// Outbound destinations not to capture
    #[arg(
        short = 'x', long, alias = "istio-service-exclude-cidr", value_name = "CIDRS", default_value = "",
        env = "STRAIT_EXCLUDE_OUTBOUND_CIDRS", value_parser = listed(cidr), hide_default_value = true
    )]
    pub exclude_outbound_cidrs: Selection<IpNet>,
    /// Network interfaces of which nothing is captured
    #[arg(
        short = 'c', long, alias = "istio-exclude-interfaces", value_name = "NAME,...",
        env = "STRAIT_EXCLUDE_INTERFACES", value_delimiter = ',', value_parser = interface
    )]
    pub exclude_interfaces: Vec<String>,
}

/// `--interception-mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum InterceptionMode {
    /// The kernel redirects the connection; the workload sees the proxy's address
    #[value(name = "REDIRECT")]
    Redirect,
    /// The proxy accepts the connection in place of the workload, which sees the client's address
    #[value(name = "TPROXY")]
    Transparent,
}

impl CaptureArgs {
    /// Returns the groups whose connections are not captured.
    pub fn gids(&self) -> &[u32] {
        if self.proxy_gids.is_empty() {
            &self.proxy_uids
        } else {
            &self.proxy_gids
        }
    }

    /// Returns the inbound ports that are never captured, in order.
    pub fn own_ports(&self) -> Vec<u16> {
        let mut ports = PROXY_PORTS.to_vec();
        ports.extend([self.outbound_port, self.inbound_port]);
        ports.sort_unstable();
        ports.dedup();
        ports
    }

    /// Returns whether the proxy accepts inbound connections in place of the workload (TPROXY).
    pub fn intercepts(&self) -> bool {
        self.interception_mode == InterceptionMode::Transparent
            && !self.include_inbound_ports.is_empty()
    }

    /// Checks the flags for contradictions.
    ///
    /// # Errors
    ///
    /// Names the flags that contradict each other, and the fix.
    pub fn check(&self) -> Result<(), String> {
        if self.outbound_port == self.inbound_port {
            return Err(format!(
                "--outbound-port and --inbound-port are both {}: the proxy tells the directions apart by the port, so \
                 give them different ones",
                self.outbound_port
            ));
        }
        Ok(())
    }
}

/// Set of items: all, or a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection<T> {
    /// `*`.
    All,
    /// Only these items.
    Only(Vec<T>),
}

impl<T> Selection<T> {
    /// Returns the listed items; none for `*`.
    pub fn listed(&self) -> &[T] {
        match self {
            Self::All => &[],
            Self::Only(items) => items,
        }
    }

    /// Returns whether nothing is selected.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Only(items) if items.is_empty())
    }
}

/// Range of ports, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortRange {
    first: u16,
    last: u16,
}

impl PortRange {
    /// Returns the lowest and the highest port.
    pub fn ends(self) -> (u16, u16) {
        (self.first, self.last)
    }
}

impl From<u16> for PortRange {
    fn from(port: u16) -> Self {
        Self {
            first: port,
            last: port,
        }
    }
}

/// Writes the range in the syntax of iptables.
impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            write!(f, "{}", self.first)
        } else {
            write!(f, "{}:{}", self.first, self.last)
        }
    }
}

/// Parser of `*` or a list.
fn selection<T: Clone + Send + Sync + 'static>(
    item: fn(&str) -> Result<T, String>,
) -> impl Fn(&str) -> Result<Selection<T>, String> + Clone {
    move |text| match text.trim() {
        "*" => Ok(Selection::All),
        text => list(text, item).map(Selection::Only),
    }
}

/// Parser of a list; rejects `*`.
fn listed<T: Clone + Send + Sync + 'static>(
    item: fn(&str) -> Result<T, String>,
) -> impl Fn(&str) -> Result<Selection<T>, String> + Clone {
    move |text| match text.trim() {
        "*" => Err("`*` is not possible here: list what is meant".to_owned()),
        text => list(text, item).map(Selection::Only),
    }
}

fn list<T>(text: &str, item: fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    let items = text.split(',').map(str::trim);
    items.filter(|text| !text.is_empty()).map(item).collect()
}

fn port(text: &str) -> Result<u16, String> {
    match text.parse() {
        Ok(port) if port != 0 => Ok(port),
        _ => Err(format!("`{text}` is not a port: ports are 1 to 65535")),
    }
}

fn port_range(text: &str) -> Result<PortRange, String> {
    let (first, last) = text.split_once(['-', ':']).unwrap_or((text, text));
    let range = PortRange {
        first: port(first.trim())?,
        last: port(last.trim())?,
    };
    if range.first > range.last {
        return Err(format!(
            "`{text}` is not a range of ports: write the lower one first"
        ));
    }
    Ok(range)
}

fn cidr(text: &str) -> Result<IpNet, String> {
    let network = text.parse::<IpNet>();
    let network = network.or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
    let network = network
        .map_err(|_| format!("`{text}` is not an IP range such as 10.0.0.0/8 or fd00::/8"))?;
    Ok(network.trunc())
}

/// Parses the name of an interface within the kernel's limit; a `+` at the end matches any rest.
fn interface(text: &str) -> Result<String, String> {
    let fits =
        |char: char| char.is_ascii_graphic() && !matches!(char, '/' | '"' | '\'' | '!' | '\\');
    if text.is_empty() || text.len() > 15 || !text.chars().all(fits) {
        return Err(format!(
            "`{text}` is not the name of a network interface such as eth0"
        ));
    }
    Ok(text.to_owned())
}

fn user(text: &str) -> Result<u32, String> {
    number_or_name(text, "user", "/etc/passwd")
}

fn group(text: &str) -> Result<u32, String> {
    number_or_name(text, "group", "/etc/group")
}

/// Looks the ID up in `file` if it is a name. Both files have it in the third field.
fn number_or_name(text: &str, what: &str, file: &str) -> Result<u32, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err(format!(
            "the {what} is empty: give a number such as 1337, or a name, or leave the flag out"
        ));
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        let number: Option<u32> = text.parse().ok();
        // the kernel reserves the highest number for "none"
        return number.filter(|number| *number != u32::MAX).ok_or_else(|| {
            format!(
                "`{text}` is not the number of a {what}: they are 0 to {}",
                u32::MAX - 1
            )
        });
    }
    let known = fs::read_to_string(file).unwrap_or_default();
    let found = known.lines().find_map(|line| {
        let mut fields = line.split(':');
        let is_it = fields.next() == Some(text);
        is_it.then(|| fields.nth(1))?
    });
    found.and_then(|number| number.parse().ok()).ok_or_else(|| {
        format!(
            "no {what} `{text}` in {file}: give its number, or run this where the {what} exists"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(selection: &Selection<PortRange>) -> Vec<String> {
        selection.listed().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn ports_and_ranges_are_read() {
        let read = selection(port_range);
        assert_eq!(read("*").unwrap(), Selection::All);
        assert!(read("").unwrap().is_empty());
        let some = read("80, 8000-8999,9000:9010,").unwrap();
        assert_eq!(texts(&some), ["80", "8000:8999", "9000:9010"]);
    }

    #[test]
    fn wrong_lists_are_refused_with_the_reason() {
        let ports = listed(port_range);
        for (text, reason) in [
            ("0", "ports are 1 to 65535"),
            ("65536", "ports are 1 to 65535"),
            ("80,http", "`http` is not a port"),
            ("90-80", "lower one first"),
            ("*", "list what is meant"),
        ] {
            let error = ports(text).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
        let error = selection(cidr)("10.0.0.0/33").unwrap_err();
        assert!(error.contains("is not an IP range"), "{error}");
        for wrong in ["", "a-name-that-is-too-long", "eth0 -j ACCEPT"] {
            assert!(interface(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn ranges_lose_their_host_bits_and_addresses_become_ranges() {
        let read = selection(cidr)("10.1.2.3/8,192.0.2.1,2001:db8::1").unwrap();
        let read: Vec<_> = read.listed().iter().map(ToString::to_string).collect();
        assert_eq!(read, ["10.0.0.0/8", "192.0.2.1/32", "2001:db8::1/128"]);
    }

    #[test]
    fn users_and_groups_are_numbers_or_names() {
        assert_eq!(user("1337"), Ok(1337));
        assert_eq!(user("root"), Ok(0));
        assert_eq!(group("root"), Ok(0));
        let error = user("no-such-user").unwrap_err();
        assert!(
            error.contains("no user `no-such-user` in /etc/passwd"),
            "{error}"
        );
        assert!(error.contains("give its number"), "{error}");
        for wrong in ["", " "] {
            let error = group(wrong).unwrap_err();
            assert!(error.contains("the group is empty"), "{error}");
        }
        for wrong in ["4294967295", "4294967296", "99999999999999999999"] {
            let error = user(wrong).unwrap_err();
            assert!(error.contains("0 to 4294967294"), "{error}");
        }
        assert!(user("-1").is_err() && user("+5").is_err());
    }
}
