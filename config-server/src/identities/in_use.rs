//! Keys in use: what signs now and what workloads trust, kept up to date with their place.

use std::sync::Arc;
use std::time::Duration;

use rustls::RootCertStore;
use rustls::crypto::aws_lc_rs;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use tokio::sync::watch;

use super::authorities::Authorities;
use super::keep::{CaFiles, FilesContent, Keep};
use super::profile::Signer;
use super::values::now;
use crate::clock;

/// Pause after an error.
const RETRY: Duration = Duration::from_secs(1);

/// Keys in use.
#[derive(Debug)]
pub(crate) struct InUse {
    pub(super) signer: Signer,
    /// Roots that workloads trust, in PEM.
    pub(super) roots: String,
    /// Verifier of certificates below these roots.
    pub(super) workloads: Arc<dyn ClientCertVerifier>,
}

/// Receiver of the keys in use; `None` until they are loaded.
pub(crate) type KeysInUse = watch::Receiver<Option<Arc<InUse>>>;

impl InUse {
    /// Returns the roots that workloads trust, in PEM.
    pub(crate) fn roots(&self) -> &str {
        &self.roots
    }

    fn new(signer: Signer, roots: String) -> Result<Self, String> {
        let mut store = RootCertStore::empty();
        for root in CertificateDer::pem_slice_iter(roots.as_bytes()) {
            let root = root.map_err(|error| format!("root of the CA: {error}"))?;
            let added = store.add(root);
            added.map_err(|error| format!("root of the CA: {error}"))?;
        }
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(store), provider);
        let workloads = verifier.build();
        Ok(Self {
            signer,
            roots,
            workloads: workloads.map_err(|error| format!("roots of the CA: {error}"))?,
        })
    }
}

/// Times of the CA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// Maximum life of a certificate.
    pub life_max: Duration,
    /// Maximum time from a join to the last renewal without another one.
    pub renewal_chain_max: Duration,
    /// Interval between readings of the keys: within it, a replica uses what another one has written.
    pub interval: Duration,
    /// Time of a step of a rotation beside the longest life: until all replicas have seen it and published the roots.
    pub margin: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            life_max: Duration::from_secs(86_400),
            renewal_chain_max: Duration::from_secs(30 * 86_400),
            interval: Duration::from_secs(10),
            margin: Duration::from_secs(300),
        }
    }
}

/// Source of the keys.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    Files(CaFiles),
    Keep(Keep),
}

/// Last reading of a source.
#[derive(PartialEq)]
enum Reading {
    Files(FilesContent),
    Keys(Authorities),
}

impl Source {
    /// Reads the keys, and replaces those whose time has come.
    async fn read(&self, times: Times) -> Result<Reading, String> {
        let keep = match self {
            Source::Files(files) => return files.read().map(Reading::Files),
            Source::Keep(keep) => keep,
        };
        let seconds = |time: Duration| i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
        let [life_max, margin] = [times.life_max, times.margin].map(seconds);
        let changed = keep.change(|known| {
            let now = now();
            match known {
                None => Authorities::new(now, life_max).map(Some),
                Some(known) => known.advanced(now, life_max, margin),
            }
        });
        let keys = changed.await?.ok_or("they were not made")?;
        Ok(Reading::Keys(keys))
    }
}

impl Reading {
    fn in_use(&self) -> Result<InUse, String> {
        match self {
            Reading::Files(content) => {
                let signer = Signer::read(&content.chain, &content.key)?;
                InUse::new(signer, content.roots.clone())
            }
            Reading::Keys(keys) => InUse::new(keys.signer()?, keys.roots()),
        }
    }
}

/// Keeps the keys up to date until the receiver is dropped. The last good ones stay in use after an error.
pub(super) async fn follow(
    source: Source,
    times: Times,
    in_use: watch::Sender<Option<Arc<InUse>>>,
) {
    let mut last = None;
    while !in_use.is_closed() {
        let step = match source.read(times).await {
            Ok(reading) if last.as_ref() == Some(&reading) => Ok(()),
            Ok(reading) => reading.in_use().map(|new| {
                if last.is_some() {
                    tracing::info!(time = clock::now(), "the keys of the CA have changed");
                }
                let _ = in_use.send(Some(Arc::new(new)));
                last = Some(reading);
            }),
            Err(error) => Err(error),
        };
        if let Err(error) = &step {
            tracing::error!(error, "the keys of the CA are not up to date");
        }
        tokio::time::sleep(if step.is_ok() { times.interval } else { RETRY }).await;
    }
}
