//! `strait backend`: workload for trials. A server responds with its identity, a client counts the servers that
//! respond.

mod args;

mod client;

mod end;

mod server;

mod tcp;

mod workload;

use std::net::TcpListener;
use std::sync::Arc;

pub use args::BackendArgs;
pub use server::spawn;
pub use workload::Workload;

use super::{EXIT_DONE, EXIT_INPUT, EXIT_USAGE, report};

/// Serves, or sends requests, until a signal ends the command.
pub fn run(args: &BackendArgs) -> u8 {
    let ended = match args.target() {
        Ok(Some(target)) => client::run(args, target),
        Ok(None) => serve(args).map(|()| EXIT_DONE),
        Err(error) => {
            report(&error);
            return EXIT_USAGE;
        }
    };
    ended.unwrap_or_else(|error| {
        report(&error);
        EXIT_INPUT
    })
}

fn serve(args: &BackendArgs) -> Result<(), String> {
    let workload = Arc::new(args.workload());
    let bind = |address: &std::net::SocketAddr| {
        let listener = TcpListener::bind(address).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        listener.map_err(|error| format!("cannot listen on {address}: {error}"))
    };
    let http: Vec<_> = args.listen.iter().map(bind).collect::<Result<_, _>>()?;
    let tcp: Vec<_> = args.tcp.iter().map(bind).collect::<Result<_, _>>()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start: {error}"))?;
    tokio::task::LocalSet::new().block_on(&runtime, async move {
        let (trigger, drain) = crate::runtime::drain::pair();
        let mut end = end::End::listen()?;
        for listener in http {
            say("HTTP/1.1 and HTTP/2", &workload, &listener);
            let (workload, drain) = (Arc::clone(&workload), drain.clone());
            tokio::task::spawn_local(server::serve(listener, workload, drain));
        }
        for listener in tcp {
            say("TCP", &workload, &listener);
            tokio::task::spawn_local(tcp::serve(listener, Arc::clone(&workload)));
        }
        end.signal().await;
        trigger.drain();
        // a second signal, or the timeout for connections that stay open
        tokio::select! {
            () = trigger.finished() => (),
            () = end.signal() => (),
            () = tokio::time::sleep(end::DRAIN_MAX) => (),
        }
        Ok(())
    })
}

fn say(what: &str, workload: &Workload, listener: &TcpListener) {
    use std::io::Write;
    let at = listener.local_addr().map(|at| at.to_string());
    let text = format!("{workload} serves {what} on {}\n", at.unwrap_or_default());
    // without a terminal, there is no reader
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}
