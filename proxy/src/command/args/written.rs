//! Identity of a proxy that a file describes, as far as it differs from that of the flags.

use config_loader::WrittenProxy;

use super::IdentityArgs;
use crate::identity::{Identity, Mode};

impl IdentityArgs {
    /// Returns the identity of a proxy that a file describes.
    pub fn identity_of(&self, written: &WrittenProxy) -> Identity {
        let mut identity = self.identity();
        if let Some(is_sidecar) = written.is_sidecar {
            identity.mode = match is_sidecar {
                true => Mode::Sidecar,
                false => Mode::Gateway,
            };
            identity.sockets = self.sidecar.sockets(identity.mode);
        }
        let texts = [
            (&written.namespace, &mut identity.namespace),
            (&written.cluster, &mut identity.cluster),
            (&written.locality, &mut identity.locality),
            (&written.network, &mut identity.network),
        ];
        for (written, text) in texts {
            if let Some(written) = written {
                *text = written.to_string();
            }
        }
        if let Some(labels) = &written.labels {
            identity.labels.clone_from(labels);
        }
        identity
    }
}
