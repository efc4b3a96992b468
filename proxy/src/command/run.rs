//! `strait run`: serves traffic, and follows every change of the configuration.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use config_loader::{ReadOptions, parse_log_format};
use ipnet::IpNet;

use super::args::{
    ClientCertHeaderArg, ConfigArgs, ConnectionArgs, HeaderArgs, IdentityArgs, IdentitySourceArgs,
    LimitArgs, MetricsArgs, SwitchArg, TracingArgs, node, socket_address,
};
use super::fit::{self, GivenFlags};
use super::otel::{self, OtelSettings};
use super::pod::PodArgs;
use super::{EXIT_DONE, EXIT_INPUT, EXIT_INTERNAL, EXIT_USAGE, report};
use crate::admin::{ADMIN_HOSTS_MAX, AdminHosts, AppProbers};
use crate::app::{self, Reread, SettingOrigin, Settings, TraceSettings};
use crate::codec::check::Http10;
use crate::codec::{self, handshake, http1};
use crate::control::Started;
use crate::control::key_sets::KeySetSettings;
use crate::exchange::downstream::origin::{
    INTERNAL_ADDRESSES_MAX, InternalAddresses, TRUSTED_HOPS_MAX,
};
use crate::exchange::settings::{
    ClientCertHeader, ExchangeSettings, FAILOVER_REPLAY_BYTES, RETRY_BODY_BYTES,
    RETRY_BODY_BYTES_TOTAL,
};
use crate::identity::{Environment, Identity, Mode};
use crate::runtime::duration::duration;
use crate::runtime::threads;
use crate::telemetry::{AccessLogFormat, AccessLogTarget, LogControl, LogSample};
use crate::worker::WORKERS_MAX;

/// Arguments of `strait run`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  strait run --config ./mesh --labels istio=ingressgateway
  strait run --config gateway.yaml --config routes/ --access-log json --access-log-path /var/log/strait.log
  strait run --control kubernetes:// --labels istio=ingressgateway
  STRAIT_CONFIG=./mesh STRAIT_LABELS=istio=ingressgateway strait run

Changes of the files take effect within milliseconds. A resource that does not validate keeps its last good \
version, and all others follow their files; so does the file of --clusters. SIGTERM drains: readiness fails, after \
--pre-drain nothing new is accepted, what runs is finished, and the process exits with 0. A sidecar serves the connections \
of its workload for up to --termination-drain meanwhile. A second signal exits at once. \
SIGHUP reads all files and reopens the access log, SIGUSR1 only reopens the access log.")]
pub struct RunArgs {
    /// Sources of the configuration.
    #[command(flatten)]
    pub config: ConfigArgs,
    /// Identity of the proxy.
    #[command(flatten)]
    pub identity: IdentityArgs,
    /// Server that issues the identity of the workload.
    #[command(flatten)]
    pub identity_source: IdentitySourceArgs,
    /// Settings of serving.
    #[command(flatten)]
    pub serve: ServeArgs,
    /// Settings of a sidecar in a pod, or beside a process.
    #[command(flatten)]
    pub pod: PodArgs,
    /// Unix socket for upgrades: if a process listens there, this one gets its listening sockets, and it drains once this
    /// one is ready. The next process asks this one there
    #[arg(
        long,
        value_name = "PATH",
        env = "STRAIT_TAKEOVER",
        help_heading = "Serving"
    )]
    pub takeover: Option<PathBuf>,
    /// Sidecar flags that were given.
    #[arg(skip)]
    pub given: GivenFlags,
    /// Origins of settings that resources have values for.
    #[arg(skip)]
    pub origins: Vec<SettingOrigin>,
    /// Reads this command line again.
    #[arg(skip)]
    pub reread: Option<Reread>,
}

/// Settings of serving; shared by `run` and `demo`.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Serving")]
pub struct ServeArgs {
    /// Number of workers (threads that carry traffic); default: one per core
    #[arg(long, value_name = "N", env = "STRAIT_CONCURRENCY", value_parser = concurrency)]
    pub concurrency: Option<NonZeroUsize>,
    /// Address of the admin server
    #[arg(
        long,
        value_name = "IP:PORT",
        default_value = "127.0.0.1:15000",
        env = "STRAIT_ADMIN",
        value_parser = socket_address
    )]
    pub admin: SocketAddr,
    /// Host name that the admin server accepts, in addition to localhost and addresses. It refuses others, because a web page
    /// could point its name here. May be repeated
    #[arg(
        long = "admin-host",
        value_name = "NAME",
        env = "STRAIT_ADMIN_HOST",
        value_delimiter = ','
    )]
    pub admin_hosts: Vec<String>,
    /// Address that serves only /healthz/ready, /healthz/live and /stats/prometheus, for probes and scrapers, such as
    /// 0.0.0.0:15021; default: only the admin server has them
    #[arg(long, value_name = "IP:PORT", env = "STRAIT_HEALTH", value_parser = socket_address)]
    pub health: Option<SocketAddr>,
    /// Be ready even if the configuration has no listener
    #[arg(long, env = "STRAIT_ALLOW_EMPTY")]
    pub allow_empty: bool,
    /// Whether a proxy that starts is ready while a resource is rejected of which it has no last good version
    #[arg(long, value_enum, default_value_t = ReadyWithRejectedArg::Yes, env = "STRAIT_READY_WITH_REJECTED")]
    pub ready_with_rejected: ReadyWithRejectedArg,
    /// DNS server for the names of endpoints, instead of those of /etc/resolv.conf. May be repeated
    #[arg(
        long = "dns-server",
        value_name = "IP:PORT",
        env = "STRAIT_DNS_SERVER",
        value_delimiter = ',',
        value_parser = socket_address
    )]
    pub dns_servers: Vec<SocketAddr>,
    /// File with the CA certificates of servers of key sets (`jwksUri`), in PEM; default: those of the operating system
    #[arg(long, value_name = "FILE", env = "STRAIT_JWKS_CA")]
    pub jwks_ca: Option<PathBuf>,
    /// Addresses that key sets are never fetched from
    #[arg(
        long,
        value_name = "CIDR",
        default_value = "169.254.0.0/16",
        env = "STRAIT_JWKS_BLOCKED",
        value_delimiter = ','
    )]
    pub jwks_blocked: Vec<IpNet>,
    /// Maximum time that the start waits for the key sets of issuers; until a key set is there, its tokens get 401
    #[arg(long, value_name = "DURATION", default_value = "5s", env = "STRAIT_JWKS_READY_TIMEOUT", value_parser = duration)]
    pub jwks_ready_timeout: Duration,
    /// Access log where no Telemetry says otherwise: `text` (Istio's format, the default), `json`, `off`, or a format with
    /// operators, which is JSON if it begins with `{`. The mesh configuration counts only without this flag and
    /// `--access-log-path`
    #[arg(long, value_name = "FORMAT", env = "STRAIT_ACCESS_LOG", value_parser = access_log_arg)]
    pub access_log: Option<AccessLogArg>,
    /// Percentage of requests with a line in this log. Failures always have one: status 5xx or none, or a response flag. The
    /// draw is that of traces with the same percentage
    #[arg(
        long,
        value_name = "PERCENT",
        default_value = "100",
        env = "STRAIT_ACCESS_LOG_SAMPLE",
        value_parser = log_sample
    )]
    pub access_log_sample: LogSample,
    /// File that the access log is appended to; default: standard output
    #[arg(long, value_name = "FILE", env = "STRAIT_ACCESS_LOG_PATH")]
    pub access_log_path: Option<PathBuf>,
    /// Level of the process log on standard error: error, warn, info, debug, trace, or target=level,...
    #[arg(
        long,
        value_name = "FILTER",
        default_value = "info",
        env = "STRAIT_LOG_LEVEL",
        value_parser = log_level
    )]
    pub log_level: String,
    /// Time that the proxy goes on serving after SIGTERM while /healthz/ready fails and clients are told to go elsewhere, so
    /// that load balancers stop sending first; in Kubernetes 5s to 15s, within terminationGracePeriodSeconds. Of a sidecar
    /// it ends before, once the workload has closed its ports
    #[arg(long, value_name = "DURATION", default_value = "0s", env = "STRAIT_PRE_DRAIN", value_parser = duration)]
    pub pre_drain: Duration,
    /// Time for requests in flight to finish after SIGTERM and --pre-drain
    #[arg(long, value_name = "DURATION", default_value = "30s", env = "STRAIT_DRAIN_TIME", value_parser = duration)]
    pub drain_time: Duration,
    /// HTTP/1.0 clients: accept them, or refuse them with 426 as Istio does
    #[arg(long, value_enum, default_value_t = Http10Arg::Accept, env = "STRAIT_HTTP10")]
    pub http10: Http10Arg,
    /// Time for a TLS client from connecting to the end of its handshake
    #[arg(long, value_name = "DURATION", default_value = "15s", env = "STRAIT_TLS_HANDSHAKE_TIMEOUT", value_parser = duration)]
    pub tls_handshake_timeout: Duration,
    /// Time that a client of a sidecar gets to speak first where no port declares the protocol; past it, the connection is
    /// carried as bytes
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "5s",
        env = "STRAIT_PROTOCOL_DETECTION_TIMEOUT",
        value_parser = duration,
        help_heading = "Sidecar"
    )]
    pub protocol_detection_timeout: Duration,
    /// Time for open connections of a sidecar to finish that a PeerAuthentication or Sidecar forbids by now, such as those in plain
    /// text after a change to STRICT. HTTP clients are told at once to use other connections
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "45s",
        env = "STRAIT_POLICY_DRAIN",
        value_parser = duration,
        help_heading = "Sidecar"
    )]
    pub policy_drain: Duration,
    /// Put the client's certificate itself (`Cert`) into `x-forwarded-client-cert` at a sidecar, too, after By and Hash. Without it,
    /// the header has By, Hash, Subject, URI and DNS there, as in Istio; at a gateway it always has the certificate
    #[arg(
        long,
        env = "STRAIT_FORWARD_CLIENT_CERTIFICATE",
        help_heading = "Sidecar"
    )]
    pub forward_client_certificate: bool,
    /// Treatment of the header `x-forwarded-client-cert` at a gateway. A sidecar always sends the certificate of a verified
    /// client alone
    #[arg(
        long,
        value_enum,
        ignore_case = true,
        value_name = "DETAILS",
        default_value = "SANITIZE_SET",
        env = "STRAIT_CLIENT_CERT_HEADER"
    )]
    pub client_cert_header: ClientCertHeaderArg,
    /// Value of the `server` response header; empty keeps the upstream's [default: istio-envoy, and envoy in what a sidecar
    /// answers its own workload]
    #[arg(long, value_name = "NAME", env = "STRAIT_SERVER_NAME")]
    pub server_name: Option<String>,
    /// Number of proxies in front of this one that are trusted for the client's address and scheme
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        env = "STRAIT_TRUSTED_HOPS",
        value_parser = clap::value_parser!(u8).range(0..=i64::from(TRUSTED_HOPS_MAX))
    )]
    pub trusted_hops: u8,
    /// Close open raw TCP connections and tunnels, such as WebSockets, when policies change and deny them
    #[arg(long, env = "STRAIT_AUTHZ_RECHECK_TCP")]
    pub authz_recheck_tcp: bool,
    /// Keep security policies in effect for 60 s when the files or a server delete all of a kind at once
    #[arg(long, env = "STRAIT_AUTHZ_KEEP_ON_EMPTY")]
    pub authz_keep_on_empty: bool,
    /// Limits of clients.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Connections of clients.
    #[command(flatten)]
    pub connections: ConnectionArgs,
    /// Traces.
    #[command(flatten)]
    pub tracing: TracingArgs,
    /// Metrics.
    #[command(flatten)]
    pub metrics: MetricsArgs,
    /// Networks whose clients are internal: the proxy trusts their x-envoy- request headers and keeps their
    /// x-request-id; default: none
    #[arg(
        long = "internal-addresses",
        value_name = "CIDR,...",
        env = "STRAIT_INTERNAL_ADDRESSES",
        value_delimiter = ',',
        value_parser = network
    )]
    pub internal_addresses: Vec<Option<IpNet>>,
    /// Keep the x-request-id of external clients, instead of replacing it
    #[arg(long, env = "STRAIT_KEEP_REQUEST_ID")]
    pub keep_request_id: bool,
    /// Send the client's host upstream in x-forwarded-host, if a rule changes the host
    #[arg(long, env = "STRAIT_FORWARDED_HOST")]
    pub forwarded_host: bool,
    /// Headers of requests and responses.
    #[command(flatten)]
    pub headers: HeaderArgs,
    /// Maximum request body that is buffered for retries, in bytes; a longer request is not retried once more has been read
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = RETRY_BODY_BYTES,
        env = "STRAIT_RETRY_BODY_BYTES"
    )]
    pub retry_body_bytes: usize,
    /// Maximum of all request bodies that the process buffers for retries, in bytes
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = RETRY_BODY_BYTES_TOTAL,
        env = "STRAIT_RETRY_BODY_BYTES_TOTAL"
    )]
    pub retry_body_bytes_total: usize,
    /// Maximum request body that is buffered for failover, in bytes; a longer request is not replayed. Never more than
    /// --retry-body-bytes
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = FAILOVER_REPLAY_BYTES,
        env = "STRAIT_FAILOVER_REPLAY_BYTES",
        help_heading = "Several clusters"
    )]
    pub failover_replay_bytes: usize,
    /// Append `-shadow` to the host of copies for mirrors, as Istio did up to 1.27
    #[arg(
        long,
        env = "STRAIT_SHADOW_HOST_SUFFIX",
        help_heading = "Compatibility"
    )]
    pub shadow_host_suffix: bool,
}

/// `--access-log`: the format of a line; `None` for no log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLogArg(pub Option<AccessLogFormat>);

/// Parses `--access-log-sample`.
fn log_sample(text: &str) -> Result<LogSample, String> {
    let percent = text.parse().ok().and_then(LogSample::of);
    percent.ok_or_else(|| "write a percentage from 0 to 100, such as 1 or 0.5".to_owned())
}

/// Parses `--access-log`.
fn access_log_arg(text: &str) -> Result<AccessLogArg, String> {
    Ok(AccessLogArg(match text {
        "json" => Some(AccessLogFormat::Json),
        "off" => None,
        "text" => Some(AccessLogFormat::Text),
        format if format.contains('%') || format.starts_with('{') => {
            Some(AccessLogFormat::Custom(parse_log_format(format)?))
        }
        _ => {
            return Err(
                "write text, json, off, or a format with operators, such as %PROTOCOL%".to_owned(),
            );
        }
    }))
}

/// `--ready-with-rejected`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReadyWithRejectedArg {
    /// Ready: what the resource describes is missing
    Yes,
    /// Not ready: proxies that started before it was rejected may serve what this one does not
    No,
}

/// `--http10`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Http10Arg {
    /// Serve them
    Accept,
    /// Answer 426 and close
    Refuse,
}

impl RunArgs {
    pub(super) fn settings(&self) -> Result<Settings, String> {
        let mut settings = self
            .serve
            .settings(self.config.files.paths.clone(), self.identity.identity())?;
        settings.control = self.config.control.settings(
            node(&settings.identity),
            settings.identity.ingress.is_some(),
        )?;
        if !self.config.control.reads_pods() {
            settings.identity.pod = None;
        }
        let members = settings.with_clusters_of_servers(&settings.identity.members);
        settings.identity.members = members;
        let cluster = self.identity.cluster.as_deref();
        let source = &self.identity_source;
        let control = &self.config.control;
        settings.identity_source = source.settings(&settings.identity, cluster, control)?;
        settings.identity.workload.kind = source.identity.into();
        settings.takeover.clone_from(&self.takeover);
        settings.is_service = true;
        settings.exit_with.clone_from(&self.pod.exit_with_pid);
        settings.app_probers = self.pod.app_probers()?;
        fit::check(&self.given, &self.pod, &settings)?;
        if settings.identity.mode == Mode::Sidecar {
            settings.outbound_drain = Some(self.pod.outbound_drain());
        }
        settings.read = self.config.reading.options(&settings.identity);
        settings
            .clusters
            .clone_from(&self.identity.members.clusters);
        settings.mesh_config.clone_from(&self.identity.mesh_config);
        settings.pod_labels.clone_from(&self.identity.pod_labels);
        settings.started.findings = self.identity.own_warnings();
        settings.exports.annotated = self.identity.resource();
        let contradicted = self.origins.iter().filter_map(SettingOrigin::finding);
        settings.started.contradicted = contradicted.collect();
        settings.started.read_namespaces = settings.read_namespaces();
        settings.origins.clone_from(&self.origins);
        settings.reread.clone_from(&self.reread);
        Ok(settings)
    }
}

impl ServeArgs {
    /// Returns the identity with what these arguments say of telemetry.
    fn with_telemetry(
        &self,
        identity: Identity,
        exchange: &ExchangeSettings,
        traces: Option<&TraceSettings>,
    ) -> Identity {
        let is_fallback = traces.is_some_and(|traces| traces.is_fallback);
        let has_collector = traces.is_some_and(|traces| traces.collector.is_some());
        Identity {
            environment: Environment(Arc::clone(&exchange.environment)),
            counts_rules: self.metrics.rule_metrics == SwitchArg::On,
            logs_by_flags: self.access_log.is_some() || self.access_log_path.is_some(),
            tracing: traces.map(|traces| Arc::clone(&traces.tracing)),
            traces_by_flags: has_collector && !is_fallback,
            traces_by_address: is_fallback,
            samples_by_flags: self.tracing.trace_sampling.is_some()
                || exchange.environment.contains_key("OTEL_TRACES_SAMPLER"),
            ..identity
        }
    }

    /// Returns the settings that these arguments describe.
    ///
    /// # Errors
    ///
    /// Fails when a value cannot be used; the text is for users.
    pub fn settings(&self, paths: Vec<PathBuf>, identity: Identity) -> Result<Settings, String> {
        let exchange = self.exchange(&identity)?;
        let forwards = self.forward_client_certificate || identity.mode == Mode::Gateway;
        let zipkin = identity.mesh_config.zipkin_address();
        let reader = otel::Reader::new(&self.tracing, &exchange.environment);
        let reader = reader.with_zipkin(zipkin.map(|address| &**address));
        let OtelSettings {
            traces,
            exports,
            notes: trace_notes,
        } = reader.read()?;
        let identity = self.with_telemetry(identity, &exchange, traces.as_ref());
        Ok(Settings {
            paths,
            control: None,
            takeover: None,
            is_service: false,
            read: ReadOptions::default(),
            keeps_policies: self.authz_keep_on_empty,
            clusters: None,
            pod_labels: None,
            mesh_config: None,
            started: Started::default(),
            origins: Vec::new(),
            reread: None,
            identity,
            identity_source: None,
            concurrency: self.concurrency(),
            admin: self.admin,
            admin_hosts: self.admin_hosts()?,
            health: self.health,
            metrics: self.metrics.metrics,
            duration_bounds: self.metrics.duration_buckets.clone().unwrap_or_default(),
            compresses: self.metrics.stats_compression == SwitchArg::On,
            allow_empty: self.allow_empty,
            ready_with_rejected: self.ready_with_rejected == ReadyWithRejectedArg::Yes,
            dns_servers: self.dns_servers.clone(),
            key_sets: KeySetSettings {
                authorities: self.jwks_ca.clone(),
                blocked: self.jwks_blocked.clone(),
                ready_timeout: self.jwks_ready_timeout,
            },
            access_log: match &self.access_log {
                Some(AccessLogArg(format)) => format.clone(),
                None => Some(AccessLogFormat::Text),
            },
            access_log_sample: self.access_log_sample,
            access_log_target: match &self.access_log_path {
                None => AccessLogTarget::Stdout,
                Some(path) => AccessLogTarget::File(path.clone()),
            },
            traces,
            exports,
            trace_notes,
            log_level: self.log_level.clone(),
            pre_drain: self.pre_drain,
            drain_time: self.drain_time,
            outbound_drain: None,
            exit_with: None,
            app_probers: AppProbers::default(),
            connections_max: usize::try_from(self.connections.max_connections)
                .unwrap_or(usize::MAX),
            listener_connections_max: self.connections.listener_connections_max(),
            codec: self.codec(forwards),
            exchange,
        })
    }

    fn codec(&self, forwards: bool) -> codec::Settings {
        self.connections.apply(codec::Settings {
            http1: http1::Settings {
                http10: match self.http10 {
                    Http10Arg::Accept => Http10::Accept,
                    Http10Arg::Refuse => Http10::Refuse,
                },
                ..http1::Settings::default()
            },
            tls: handshake::Settings {
                timeout: self.tls_handshake_timeout,
                forward_certificate: forwards,
                ..handshake::Settings::default()
            },
            timeouts: codec::Timeouts {
                drain: self.drain_time,
                policy_drain: self.policy_drain,
                detection: self.protocol_detection_timeout,
                ..codec::Timeouts::default()
            },
            ..codec::Settings::default()
        })
    }

    fn concurrency(&self) -> NonZeroUsize {
        self.concurrency
            .unwrap_or_else(threads::default_concurrency)
    }

    fn admin_hosts(&self) -> Result<AdminHosts, String> {
        let count = self.admin_hosts.len();
        if count > ADMIN_HOSTS_MAX {
            return Err(format!(
                "--admin-host: {count} names, at most {ADMIN_HOSTS_MAX} are allowed"
            ));
        }
        Ok(self.admin_hosts.iter().cloned().collect())
    }

    fn internal_addresses(&self) -> Result<InternalAddresses, String> {
        let networks = self.internal_addresses.iter().flatten();
        let count = networks.clone().count();
        if count > INTERNAL_ADDRESSES_MAX {
            return Err(format!(
                "--internal-addresses: {count} networks, at most {INTERNAL_ADDRESSES_MAX} are allowed; join adjacent ones"
            ));
        }
        Ok(networks.copied().collect())
    }

    fn exchange(&self, identity: &Identity) -> Result<ExchangeSettings, String> {
        let is_sidecar = identity.mode == Mode::Sidecar;
        let server_name = |default: &'static str| match self.server_name.as_deref() {
            None => Ok(Some(http::HeaderValue::from_static(default))),
            Some("") => Ok(None),
            Some(name) => http::HeaderValue::from_str(name)
                .map(Some)
                .map_err(|_| format!("--server-name: {name:?} is not a header value")),
        };
        let variables = std::env::vars_os();
        let own = variables.filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        let proxies = &identity.mesh_config.proxies;
        let mesh_id = proxies.mesh_id.iter();
        let mesh_id = mesh_id.map(|id| ("ISTIO_META_MESH_ID".to_owned(), id.to_string()));
        let mut environment: BTreeMap<String, String> = mesh_id.collect();
        environment.extend(proxies.variables.clone());
        environment.extend(own);
        Ok(ExchangeSettings {
            server_name: server_name("istio-envoy")?,
            outbound_server_name: server_name("envoy")?,
            is_sidecar,
            client_cert_header: match is_sidecar {
                true => ClientCertHeader::SanitizeSet,
                false => self.client_cert_header.into(),
            },
            keep_request_id: self.keep_request_id,
            internal_addresses: self.internal_addresses()?,
            trusted_hops: usize::from(self.trusted_hops),
            ipv6_client_prefix: self.limits.rate_limit_ipv6_prefix,
            limits_before_authorization: self.limits.rate_limit_before_authorization,
            recheck_tcp: self.authz_recheck_tcp,
            rate_limit_domain: Arc::from(&*self.limits.rate_limit_domain),
            rate_limit_timeout: self.limits.rate_limit_timeout,
            rate_limit_fail_closed: self.limits.rate_limit_fail_closed,
            forwarded_host: self.forwarded_host,
            forwarded_port: self.headers.forwarded_port,
            omitted: self.headers.omitted(),
            request_time_max: self
                .connections
                .http_max_stream_duration
                .filter(|time| !time.is_zero()),
            request_receive_max: self
                .connections
                .http_request_timeout
                .filter(|time| !time.is_zero()),
            exemplars: self.metrics.exemplars == SwitchArg::On,
            metric_series_max: self.metrics.metric_series_max,
            hostname: rustix::system::uname().nodename().to_string_lossy().into(),
            environment: Arc::new(environment),
            shadow_host_suffix: self.shadow_host_suffix,
            retry_body_bytes: self.retry_body_bytes,
            retry_body_bytes_per_worker: self.retry_body_bytes_total / self.concurrency(),
            failover_replay_bytes: self.failover_replay_bytes.min(self.retry_body_bytes),
        })
    }
}

/// Serves until a signal ends it.
pub fn run(args: &RunArgs) -> u8 {
    let settings = match args.settings() {
        Ok(settings) => settings,
        Err(error) => {
            report(&error);
            return EXIT_USAGE;
        }
    };
    serve(settings)
}

/// Runs the proxy until it ends. Returns the exit code.
pub(super) fn serve(settings: Settings) -> u8 {
    let Err(error) = app::run(settings) else {
        return EXIT_DONE;
    };
    report(&error.to_string());
    if error.internal {
        EXIT_INTERNAL
    } else {
        EXIT_INPUT
    }
}

/// Checks a filter of the process log and returns it unchanged.
fn log_level(text: &str) -> Result<String, String> {
    LogControl::check(text).map_err(|error| error.to_string())?;
    Ok(text.to_owned())
}

/// Parses a number of workers.
fn concurrency(text: &str) -> Result<NonZeroUsize, String> {
    let number = text.parse().ok().and_then(NonZeroUsize::new);
    number
        .filter(|number| number.get() <= WORKERS_MAX)
        .ok_or_else(|| format!("expected a number from 1 to {WORKERS_MAX}"))
}

/// Parses `10.0.0.0/8` or a single address; `None` for empty text, as manifests leave variables empty.
fn network(text: &str) -> Result<Option<IpNet>, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let network = match text.parse::<IpAddr>() {
        Ok(address) => IpNet::from(address),
        Err(_) => text.parse().map_err(|_| {
            "expected a network or an address; write for example 10.0.0.0/8 or fd00::/8".to_owned()
        })?,
    };
    if network != network.trunc() {
        let network = network.trunc();
        return Err(format!("has bits set behind its prefix; write {network}"));
    }
    match network.addr().to_canonical() {
        IpAddr::V4(_) if network.addr().is_ipv6() => {
            Err("clients over IPv4 have IPv4 addresses; write the network in IPv4".to_owned())
        }
        _ => Ok(Some(network)),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn networks_are_parsed_with_a_prefix_or_as_one_address() {
        for (text, network) in [
            ("10.0.0.0/8", Some("10.0.0.0/8")),
            (" fd00::/8", Some("fd00::/8")),
            ("192.0.2.1", Some("192.0.2.1/32")),
            ("::1", Some("::1/128")),
            ("0.0.0.0/0", Some("0.0.0.0/0")),
            ("", None),
        ] {
            let parsed = super::network(text).unwrap();
            let written = parsed.map(|network| network.to_string());
            assert_eq!(written.as_deref(), network, "{text:?}");
        }
        for (wrong, message) in [
            ("10.0.0.1/8", "write 10.0.0.0/8"),
            ("10.0.0.0/33", "expected a network"),
            ("10/8", "expected a network"),
            ("localhost", "expected a network"),
            ("::ffff:10.0.0.0/104", "in IPv4"),
        ] {
            let error = super::network(wrong).unwrap_err();
            assert!(error.contains(message), "{wrong}: {error}");
        }
    }
}
