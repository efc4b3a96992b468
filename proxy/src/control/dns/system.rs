//! DNS configuration of the system: `/etc/resolv.conf`, which may name no server or not exist.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use hickory_resolver::config::{ResolverConfig, ResolverOpts};
use hickory_resolver::{Resolver, system_conf};

use super::lookup::{Answer, Lookup, LookupRequest, ask, lookup_by, resolver_of};
use super::sockets::Sockets;

/// Path of the system's DNS configuration.
pub(super) const RESOLV_CONF: &str = "/etc/resolv.conf";

/// Line that makes a file without servers parseable; the server is removed afterwards.
const ANY_SERVER: &[u8] = b"\nnameserver 192.0.2.1\n";

/// Resolver configuration of the system.
#[derive(Debug, Default)]
pub(super) struct SystemConf {
    /// Domain, search domains and servers.
    pub(super) config: ResolverConfig,
    /// Options such as `ndots`.
    pub(super) options: ResolverOpts,
    /// Reason why there are no servers; `None` if there are some.
    pub(super) no_server: Option<String>,
}

impl SystemConf {
    /// Reads a file in the format of `resolv.conf`. Missing settings have their defaults.
    pub(super) fn read(file: &Path) -> SystemConf {
        let name = file.display();
        let without = |no_server: String| SystemConf {
            no_server: Some(no_server),
            ..SystemConf::default()
        };
        let mut bytes = match std::fs::read(file) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return without(format!("there is no {name}"));
            }
            Err(error) => return without(format!("{name} cannot be read: {error}")),
        };
        if let Ok((config, options)) = system_conf::parse_resolv_conf(&bytes) {
            return SystemConf {
                config,
                options,
                no_server: None,
            };
        }
        bytes.extend_from_slice(ANY_SERVER);
        match system_conf::parse_resolv_conf(&bytes) {
            Ok((config, options)) => {
                let (domain, search, _) = config.into_parts();
                SystemConf {
                    config: ResolverConfig::from_parts(domain, search, Vec::new()),
                    options,
                    no_server: Some(format!("{name} names no server")),
                }
            }
            Err(error) => without(format!("{name} cannot be read: {error}")),
        }
    }
}

/// Makes a lookup that uses `/etc/hosts` as long as `file` names no server. Both files are read at every lookup: an
/// interface that comes up later may add servers.
pub(super) fn lookup_without_servers(file: PathBuf) -> Lookup {
    let later: Arc<OnceLock<Lookup>> = Arc::default();
    Arc::new(move |question: LookupRequest| {
        let (file, later) = (file.clone(), Arc::clone(&later));
        Box::pin(async move {
            match later.get() {
                Some(lookup) => lookup(question).await,
                None => ask_without_servers(&file, &later, question).await,
            }
        })
    })
}

async fn ask_without_servers(
    file: &Path,
    later: &OnceLock<Lookup>,
    question: LookupRequest,
) -> Answer {
    let system = SystemConf::read(file);
    let runtime = Sockets::default();
    let builder =
        Resolver::builder_with_config(system.config, runtime).with_options(system.options);
    let Some(no_server) = system.no_server else {
        let lookup = lookup_by(builder)?;
        return later.get_or_init(|| lookup)(question).await;
    };
    let resolver = resolver_of(builder)?;
    ask(&resolver, &question).await.map_err(|_| {
        format!(
            "not in /etc/hosts, and {no_server}; add a `nameserver` line to it, or give --dns-server IP:PORT"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::{lookup_of, tests::new};
    use super::*;

    #[test]
    fn missing_or_empty_file_has_no_servers_and_keeps_its_search_domains() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("resolv.conf");
        let read = || SystemConf::read(&file);
        let reason = |system: SystemConf| system.no_server.unwrap_or_default();
        assert!(reason(read()).starts_with("there is no "));
        for text in ["", "# nothing\n", "options ndots:3\n"] {
            std::fs::write(&file, text).unwrap();
            assert!(reason(read()).ends_with(" names no server"), "{text:?}");
        }
        std::fs::write(&file, "search ns.test other.test\noptions ndots:3").unwrap();
        let system = read();
        assert_eq!(system.options.ndots, 3);
        let search: Vec<_> = system
            .config
            .search()
            .iter()
            .map(|n| n.to_ascii())
            .collect();
        assert_eq!(search, ["ns.test", "other.test"]);
        assert!(system.config.name_servers().is_empty());
        std::fs::write(&file, "nameserver 192.0.2.7\n").unwrap();
        let system = read();
        assert_eq!(system.config.name_servers().len(), 1);
        assert_eq!(system.no_server, None);
        std::fs::remove_file(&file).unwrap();
        std::fs::create_dir(&file).unwrap();
        assert!(reason(read()).contains(" cannot be read: "));
    }

    #[tokio::test]
    async fn without_name_servers_only_the_hosts_file_is_used() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("resolv.conf");
        for text in [None, Some(""), Some("search ns.test\n")] {
            if let Some(text) = text {
                std::fs::write(&file, text).unwrap();
            }
            let lookup = lookup_of(&[], &file).unwrap();
            let found = lookup(new("localhost")).await.unwrap();
            assert!(
                found.addresses.iter().all(|ip| ip.is_loopback()),
                "{text:?}"
            );
            let reason = lookup(new("svc.invalid")).await.unwrap_err();
            assert!(reason.starts_with("not in /etc/hosts, and "), "{reason}");
            assert!(reason.ends_with("--dns-server IP:PORT"), "{reason}");
        }
        let lookup = lookup_of(&[], &file).unwrap();
        // no server listens on this address
        let servers = "nameserver 127.99.99.99\noptions timeout:1 attempts:1\n";
        std::fs::write(&file, servers).unwrap();
        let reason = lookup(new("svc.invalid.")).await.unwrap_err();
        assert!(!reason.contains("/etc/hosts"), "{reason}");
    }
}
