//! `strait demo`: two versions of a service and the gateway in front of them, in one process.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use clap::Args;

use super::run::ServeArgs;
use super::{EXIT_DONE, EXIT_INPUT, backend, report};
use crate::app;
use crate::identity::Identity;

/// The quickstart as it stands in `examples`, for when the demo is not started inside the repository.
const QUICKSTART: &str = include_str!("../../../examples/quickstart/mesh.yaml");

/// Where the quickstart lies in the repository.
const QUICKSTART_PATH: &str = "examples/quickstart";

/// Ports of the demo's backends, as the quickstart names them.
const BACKENDS: [(&str, u16); 2] = [("v1", 9101), ("v2", 9102)];

/// Arguments of `strait demo`.
#[derive(Debug, Args)]
#[command(after_help = "\
Starts two versions of an echo service on 127.0.0.1:9101 and :9102 and a gateway on 127.0.0.1:8080 that splits
traffic between them by examples/quickstart. Edit that file while it runs. Ctrl-C ends it.")]
pub struct DemoArgs {
    /// How it serves.
    #[command(flatten)]
    pub serve: ServeArgs,
    /// Directory with the configuration to serve; default: examples/quickstart, or a copy of it in a new directory
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// Runs the demo until a signal ends it.
pub fn run(args: &DemoArgs) -> u8 {
    match start(args) {
        Ok(()) => EXIT_DONE,
        Err(error) => {
            report(&error);
            EXIT_INPUT
        }
    }
}

fn start(args: &DemoArgs) -> Result<(), String> {
    let dir = match &args.dir {
        Some(dir) => dir.clone(),
        None => quickstart_dir()?,
    };
    let mut identity = Identity::default();
    identity
        .labels
        .insert("istio".to_owned(), "ingressgateway".to_owned());
    let settings = args.serve.settings(vec![dir.clone()], identity)?;
    for (version, port) in BACKENDS {
        backend::spawn(version, SocketAddr::from((Ipv4Addr::LOCALHOST, port))).map_err(
            |error| format!("the demo's backend {version} cannot listen on port {port}: {error}"),
        )?;
    }
    introduce(&dir, args.serve.admin);
    app::run(settings).map_err(|error| error.to_string())
}

/// The repository's quickstart if we stand in the repository, else a copy in a new directory.
fn quickstart_dir() -> Result<PathBuf, String> {
    let in_repository = Path::new(QUICKSTART_PATH);
    if in_repository.join("mesh.yaml").is_file() {
        return Ok(in_repository.to_owned());
    }
    let dir = std::env::temp_dir().join(format!("strait-demo-{}", std::process::id()));
    let failed = |error: std::io::Error| format!("cannot write {}: {error}", dir.display());
    std::fs::create_dir_all(&dir).map_err(failed)?;
    std::fs::write(dir.join("mesh.yaml"), QUICKSTART).map_err(failed)?;
    Ok(dir)
}

fn introduce(dir: &Path, admin: SocketAddr) {
    let file = dir.join("mesh.yaml");
    let file = file.display();
    let text = format!(
        "\
Strait demo: a gateway on http://127.0.0.1:8080 and two versions of one service behind it.

Try, in another terminal:
  curl http://127.0.0.1:8080/                            four in five answers come from v1
  curl -H 'x-preview: yes' http://127.0.0.1:8080/        always v2
  curl http://{admin}/clusters                    endpoints and what they are doing
  curl http://{admin}/stats/prometheus | grep istio_requests_total

Change the weights in {file} while requests run:
the next request follows, and none is dropped. A mistake in the file is reported here and changes nothing.

Why does a request go where it goes?
  strait explain --config {dir} --labels istio=ingressgateway GET http://127.0.0.1:8080/

Ctrl-C ends the demo.

",
        dir = dir.display(),
    );
    // without a terminal to read it, nobody misses it
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}
