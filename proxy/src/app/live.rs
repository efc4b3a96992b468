//! Settings that the mesh configuration changes while the proxy runs: values of flags that are not given.

use std::sync::Arc;

use config_loader::diagnostic::codes::istio::TL024;
use config_loader::resource::istio::MeshConfig;
use config_loader::{Diagnostic, ResourceSet};
use tokio::sync::watch;

use super::origins::SettingOrigin;
use super::own_attributes::{MESH_ID, own_attributes};
use super::settings::Settings;

use crate::codec;
use crate::control::mesh_config::AT_START;
use crate::exchange::settings::ExchangeSettings;
use crate::exchange::trace_parts::OwnAttributes;
use crate::identity::FollowedSettings;
use crate::runtime::latest::{Slot, slot};

/// Settings in effect.
#[derive(Clone)]
pub(super) struct LiveSettings {
    /// Settings of the request path.
    pub(super) exchange: Slot<ExchangeSettings>,
    /// Limits and timeouts of connections.
    pub(super) codec: Slot<codec::Settings>,
    /// Attributes of every server span.
    pub(super) attributes: Slot<OwnAttributes>,
    newest: watch::Sender<Arc<Settings>>,
}

impl LiveSettings {
    /// Begins with the settings of the start. Returns a subscription to changes as well.
    pub(super) fn new(started: &Settings) -> (Self, watch::Receiver<Arc<Settings>>) {
        let (newest, changes) = watch::channel(Arc::new(started.clone()));
        let live = Self {
            exchange: slot(started.exchange.clone()),
            codec: slot(started.codec.clone()),
            attributes: slot(own_attributes(started)),
            newest,
        };
        (live, changes)
    }

    /// Returns the newest settings.
    pub(super) fn newest(&self) -> Arc<Settings> {
        Arc::clone(&self.newest.borrow())
    }

    /// Returns findings about values of resources that flags contradict.
    pub(super) fn contradicted(&self) -> Vec<Diagnostic> {
        let newest = self.newest();
        let origins = newest.origins.iter();
        origins.filter_map(SettingOrigin::finding).collect()
    }

    /// Returns the settings of the start with the values of ProxyConfigs, which are in effect from then on.
    pub(super) fn with_proxy_configs(&self, started: Settings, set: &ResourceSet) -> Settings {
        let started = started.with_proxy_configs(set);
        self.replace(|now| started.with_followed(now.clone()));
        started
    }

    /// Puts the values of a mesh configuration into effect. Returns the values that snapshots are made with.
    ///
    /// # Errors
    ///
    /// If flags do not accept a value; then nothing changes.
    pub(super) fn follow(&self, config: &MeshConfig) -> Result<FollowedSettings, String> {
        let now = self.newest();
        if let Some(reread) = &now.reread {
            let new = reread.with(config)?;
            log_notes(
                new.trace_notes
                    .iter()
                    .filter(|note| !now.trace_notes.contains(note)),
            );
            self.replace(|now| now.with_followed(new));
        }
        Ok(self.newest().identity.followed())
    }

    fn replace(&self, change: impl FnOnce(&Settings) -> Settings) {
        self.newest.send_modify(|newest| {
            let settings = change(newest);
            self.exchange.store(Arc::new(settings.exchange.clone()));
            self.codec.store(Arc::new(settings.codec.clone()));
            self.attributes.store(Arc::new(own_attributes(&settings)));
            *newest = Arc::new(settings);
        });
    }
}

impl Settings {
    /// Returns these settings with the values of other ones that take effect without a restart.
    fn with_followed(&self, new: Self) -> Self {
        let (of_start, followed) = (&self.origins, new.origins);
        let at_start = |flag: &str| AT_START.contains(&flag);
        let of_start = of_start.iter().filter(|one| at_start(one.flag)).cloned();
        let followed = followed.into_iter().filter(|one| !at_start(one.flag));
        let mut identity = self.identity.clone();
        identity.follow(&new.identity.followed());
        identity.mesh_config = new.identity.mesh_config;
        let mut environment = Arc::clone(&self.exchange.environment);
        let mesh = new.exchange.environment.get(MESH_ID);
        if environment.get(MESH_ID) != mesh {
            let own = Arc::make_mut(&mut environment);
            own.remove(MESH_ID);
            own.extend(mesh.map(|mesh| (MESH_ID.to_owned(), mesh.clone())));
        }
        Self {
            origins: of_start.chain(followed).collect(),
            identity,
            codec: new.codec,
            compresses: new.compresses,
            connections_max: new.connections_max,
            listener_connections_max: new.listener_connections_max,
            drain_time: new.drain_time,
            outbound_drain: new.outbound_drain,
            traces: new.traces,
            trace_notes: new.trace_notes,
            exchange: ExchangeSettings {
                environment,
                retry_body_bytes_per_worker: self.exchange.retry_body_bytes_per_worker,
                ..new.exchange
            },
            ..self.clone()
        }
    }
}

/// Logs notes about variables and addresses.
pub(super) fn log_notes<'n>(notes: impl Iterator<Item = &'n String>) {
    notes.for_each(|note| tracing::warn!("{TL024}: {note}"));
}
