//! Settings of the mesh configuration, which change while the proxy runs and serves requests.

mod connections;
mod followed;
mod paths;
mod proxies;
mod retries;
mod scope;
mod tls;
mod together;

use std::fs;

use tempfile::NamedTempFile;

use crate::support::eventually;
use crate::support::proxy::{Proxy, Start};

/// A proxy with a file of `--mesh-config`.
struct Mesh {
    proxy: Proxy,
    config: NamedTempFile,
}

impl Mesh {
    /// Starts a proxy with this mesh configuration.
    fn start(start: Start, config: &str) -> Self {
        let file = NamedTempFile::new().unwrap();
        fs::write(file.path(), config).unwrap();
        let path = file.path().to_str().unwrap().to_owned();
        let proxy = start.args(["--mesh-config", &path]).start();
        Self {
            proxy,
            config: file,
        }
    }

    /// Puts a mesh configuration into effect.
    fn configure(&self, config: &str) {
        let generation = || self.proxy.metric("strait_config_generation", &[]);
        let before = generation();
        fs::write(self.config.path(), config).unwrap();
        eventually("the change is in effect", || generation() > before);
    }
}
