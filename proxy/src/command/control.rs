//! `strait control`: the config server, its tokens, and its objects as files.

mod args;
mod data;
mod gateways;
mod identities;
mod imports;
mod inject;
mod injected;
mod roles;
mod status;
mod transfer;
mod wait;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;

use config_loader::catalog::gateway_api::status::CrdBundle;
use config_server::access::tokens;
use config_server::conditions::GatewayController;
use config_server::lease::Times;
use config_server::store::etcd::{EtcdSettings, Shared};
use config_server::{Settings, StatusFor, start};
use tokio::runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use super::exit::show;
use super::{EXIT_DONE, EXIT_INPUT, report};
use crate::runtime::open_files;
use crate::telemetry::LogControl;
use args::{ControlCommand, ServerArgs, TokenCommand};
pub(super) use wait::block_on;

pub use args::ControlArgs;

/// Default address of the server of a data directory.
const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 6444);

/// Runs `strait control`.
pub fn run(args: &ControlArgs) -> u8 {
    let outcome = match &args.command {
        None => serve(&args.server),
        Some(ControlCommand::Status(args)) => return asked(block_on(status::run(args))),
        Some(ControlCommand::Injected(args)) => return asked(block_on(injected::run(args))),
        Some(ControlCommand::Identity(args)) => block_on(identities::run(args)),
        Some(ControlCommand::Token(token)) => change_tokens(&token.command),
        Some(ControlCommand::Import { paths, data }) => transfer::import(paths, data),
        Some(ControlCommand::Export { directory, data }) => transfer::export(directory, data),
        Some(ControlCommand::Backup { file, data }) => transfer::backup(file, data),
        Some(ControlCommand::Restore { file, data }) => transfer::restore(file, data),
    };
    match outcome {
        Ok(()) => EXIT_DONE,
        Err(error) => {
            report(&error);
            EXIT_INPUT
        }
    }
}

/// Returns the exit code of a command that asks a server: 0 if the answer is as it should be.
fn asked(answer: Result<bool, String>) -> u8 {
    match answer {
        Ok(true) => EXIT_DONE,
        Ok(false) => EXIT_INPUT,
        Err(error) => {
            report(&error);
            EXIT_INPUT
        }
    }
}

fn serve(args: &ServerArgs) -> Result<(), String> {
    let log = LogControl::install(&args.log_level).map_err(|error| error.to_string())?;
    let runtime = runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start threads: {error}"))?;
    let outcome = runtime.block_on(async {
        let imports = imports::imports_between(args, identity())?;
        if let Some(roles) = roles::roles(args, connections_max, || status_for(args))? {
            return until_stopped(|stop| roles.run(None, stop)).await;
        }
        let has_writer = args.status_for.is_some() || imports.is_some();
        if args.identities.issue_identities && has_writer {
            return Err(roles::NEEDS_SERVE.to_owned());
        }
        match (status_for(args), imports) {
            (Some(writer), _) => until_stopped(|stop| writer.run(stop)).await,
            (None, Some(writer)) => until_stopped(|stop| writer.run(stop)).await,
            (None, None) => run_server(args).await,
        }
    });
    log.flush();
    outcome
}

async fn run_server(args: &ServerArgs) -> Result<(), String> {
    let settings = Settings {
        tls: args.files(),
        names: args.tls_name.clone(),
        etcd: args.data.etcd.settings(),
        identities: args.identities.settings(),
        context: args.context.clone(),
        connections_max: connections_max(),
        controller: GatewayController {
            // the schemas of the server have the fields of both channels
            crds: CrdBundle {
                is_experimental: true,
                version: None,
            },
            ..args.gateways.controller()
        },
        ..Settings::new(args.data.data.clone(), args.listen.unwrap_or(LISTEN))
    };
    let server = start(&settings).await?;
    tracing::info!(address = %server.address, data = %args.data.data.display(), "the config server listens");
    tokio::select! {
        () = server.serve() => Ok(()),
        stopped = stopped() => stopped,
    }
}

/// Raises the limit of open files and returns the number of connections that it has room for.
fn connections_max() -> usize {
    let limit = open_files::raise_limit().unwrap_or_else(|error| {
        tracing::warn!(%error, "the limit of open files cannot be raised");
        open_files::limit()
    });
    open_files::connections_max_of_server(limit)
}

/// Waits for a signal to end.
pub(super) async fn stopped() -> Result<(), String> {
    let stop = |kind| signal(kind).map_err(|error| format!("cannot wait for signals: {error}"));
    let (mut terminate, mut interrupt) = (
        stop(SignalKind::terminate())?,
        stop(SignalKind::interrupt())?,
    );
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

fn status_for(args: &ServerArgs) -> Option<StatusFor> {
    let server = args.status_for.clone()?;
    Some(StatusFor {
        server,
        kubeconfig: args.kubeconfig.clone(),
        lease_namespace: args.lease_namespace.clone(),
        identity: identity(),
        times: Times::default(),
        controller: args.gateways.controller(),
    })
}

/// Makes the name of this instance in leader elections.
fn identity() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{}-{:08x}", host.trim(), rand::random::<u32>())
}

/// Runs the writer of other servers' objects until a signal to end.
async fn until_stopped<R: Future<Output = Result<(), String>>>(
    run: impl FnOnce(oneshot::Receiver<()>) -> R,
) -> Result<(), String> {
    let (sender, stop) = oneshot::channel();
    let waits = tokio::spawn(async move {
        let outcome = stopped().await;
        let _ = sender.send(());
        outcome
    });
    let outcome = run(stop).await;
    waits.abort();
    outcome
}

fn change_tokens(command: &TokenCommand) -> Result<(), String> {
    let (TokenCommand::Create { data, .. }
    | TokenCommand::List { data }
    | TokenCommand::Revoke { data, .. }) = command;
    match data.etcd.settings() {
        Some(etcd) => block_on(change_shared_tokens(command, &etcd)),
        None => change_tokens_in(command, &tokens::file_in(&data.data)),
    }
}

fn change_tokens_in(command: &TokenCommand, path: &Path) -> Result<(), String> {
    let said = |error: std::io::Error| error.to_string();
    match command {
        TokenCommand::Create {
            name,
            role,
            expires,
            ..
        } => {
            let expires = expires.map(tokens::expiry);
            let token = tokens::create(path, name, role.clone(), expires).map_err(said)?;
            show(&token);
        }
        TokenCommand::List { .. } => {
            for token in tokens::load(path).map_err(said)? {
                show(&token.to_string());
            }
        }
        TokenCommand::Revoke { name, .. } => tokens::revoke(path, name).map_err(said)?,
    }
    Ok(())
}

async fn change_shared_tokens(command: &TokenCommand, etcd: &EtcdSettings) -> Result<(), String> {
    let shared = Shared::new(etcd)?;
    match command {
        TokenCommand::Create {
            name,
            role,
            expires,
            ..
        } => {
            let expires = expires.map(tokens::expiry);
            let created = tokens::create_shared(&shared, name, role.clone(), expires).await?;
            show(&created.ok_or_else(|| format!("there is a token named {name:?} already"))?);
        }
        TokenCommand::List { .. } => {
            for token in tokens::load_shared(&shared).await? {
                show(&token.to_string());
            }
        }
        TokenCommand::Revoke { name, .. } => {
            let removed = shared.remove_token(name).await;
            if !removed.map_err(|error| error.to_string())? {
                return Err(format!("there is no token named {name:?}"));
            }
        }
    }
    Ok(())
}
