//! The material in use, by where it comes from: outlives snapshots.
//!
//! Invariant: what is broken or out of its time never takes the place of something good. Time is passed in with the
//! bytes, by [`Store::update`]; everything else only looks up.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::client::Material;
use super::digest::{Sha256, sha256};
use super::material::{AuthoritiesPem, IdentityPem, UnixSeconds};
use super::spiffe::Workload;
use super::{
    Authorities, AuthoritySource, ClientSettings, ClientTls, Identity, IdentitySource, Problem,
    ServerSettings, ServerTls,
};

/// Bytes with the name of their place.
pub type Named = (Arc<str>, Vec<u8>);

/// What was read of a certificate and its key.
#[derive(Default)]
pub struct IdentityBytes {
    /// The chain.
    pub chain: Named,
    /// The key.
    pub key: Named,
    /// The workload that the certificate must be for; none for any.
    pub workload: Option<Workload>,
}

/// What was read of authorities.
#[derive(Default)]
pub struct AuthorityBytes {
    /// The authorities.
    pub authorities: Named,
    /// What they have revoked.
    pub revoked: Option<Named>,
    /// Whether certificates that cannot be used are passed over: an operating system trusts many, of all ages.
    pub is_lenient: bool,
}

/// Everything that is wanted, as it was just read.
#[derive(Default)]
pub struct Read {
    /// Certificates with keys.
    pub identities: BTreeMap<IdentitySource, Result<IdentityBytes, Problem>>,
    /// Authorities.
    pub authorities: BTreeMap<AuthoritySource, Result<AuthorityBytes, Problem>>,
}

/// The material in use.
#[derive(Debug, Default)]
pub struct Store {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    identities: BTreeMap<IdentitySource, StoredMaterial<Identity>>,
    authorities: BTreeMap<AuthoritySource, StoredMaterial<Authorities>>,
    servers: BTreeMap<ServerSettings, Weak<ServerTls>>,
    clients: BTreeMap<ClientSettings, Weak<ClientTls>>,
    /// Given to the last of the clients.
    serial: u64,
    /// How often something changed that clients and servers are made of.
    revision: u64,
}

/// Material of one source.
#[derive(Debug)]
struct StoredMaterial<T> {
    /// Of the bytes read last.
    digest: Option<Sha256>,
    /// What these bytes are; broken bytes are nothing.
    newest: Option<Arc<T>>,
    /// What was in effect when the newest came, for as long as that is not good.
    before: Option<Arc<T>>,
    in_force: Option<Arc<T>>,
    /// What is wrong with the newest.
    problems: Vec<Problem>,
}

impl<T> Default for StoredMaterial<T> {
    fn default() -> Self {
        Self {
            digest: None,
            newest: None,
            before: None,
            in_force: None,
            problems: Vec::new(),
        }
    }
}

/// What can be said of one source.
#[derive(Clone, Debug)]
pub struct Status<S, T> {
    /// The source.
    pub source: S,
    /// What is in effect, if anything is.
    pub in_force: Option<Arc<T>>,
    /// Whether what is in effect is older than what was read last.
    pub is_kept: bool,
    /// What is wrong with what was read last.
    pub problems: Vec<Problem>,
}

impl<S, T> Status<S, T> {
    /// Whether what was read last is not in effect.
    pub fn is_refused(&self) -> bool {
        self.is_kept || self.in_force.is_none()
    }
}

/// Material that time tells on.
trait Timely {
    fn problems_at(&self, now: UnixSeconds) -> Vec<Problem>;
}

impl Timely for Identity {
    fn problems_at(&self, now: UnixSeconds) -> Vec<Problem> {
        let weak = self.weaknesses.iter().cloned();
        self.untimely(now).into_iter().chain(weak).collect()
    }
}

impl Timely for Authorities {
    fn problems_at(&self, now: UnixSeconds) -> Vec<Problem> {
        self.untimely(now)
    }
}

impl<T: Timely> StoredMaterial<T> {
    /// Takes in what was read; returns whether what is in effect is another.
    fn take(
        &mut self,
        digest: Option<Sha256>,
        read: impl FnOnce() -> Result<T, Problem>,
        now: UnixSeconds,
    ) -> bool {
        if digest.is_none() || digest != self.digest {
            self.digest = digest;
            self.before = self.in_force.clone();
            match read() {
                Ok(read) => self.newest = Some(Arc::new(read)),
                Err(problem) => {
                    self.newest = None;
                    self.problems = vec![problem];
                }
            }
        }
        let chosen = self.choose(now);
        let same = match (&chosen, &self.in_force) {
            (Some(new), Some(old)) => Arc::ptr_eq(new, old),
            (None, None) => true,
            _ => false,
        };
        self.in_force = chosen;
        !same
    }

    /// The newest, unless it is out of its time and what was before is not.
    fn choose(&mut self, now: UnixSeconds) -> Option<Arc<T>> {
        let Some(newest) = &self.newest else {
            return self.before.clone();
        };
        self.problems = newest.problems_at(now);
        let is_timely = |of: &T| {
            let problems = of.problems_at(now);
            !problems.iter().any(|problem| problem.kind.is_untimely())
        };
        if is_timely(newest) {
            self.before = None;
        } else if let Some(before) = self.before.as_ref().filter(|before| is_timely(before)) {
            return Some(Arc::clone(before));
        }
        Some(Arc::clone(newest))
    }

    fn status<S>(&self, source: S) -> Status<S, T> {
        let is_newest = match (&self.in_force, &self.newest) {
            (Some(in_force), Some(newest)) => Arc::ptr_eq(in_force, newest),
            (in_force, _) => in_force.is_none(),
        };
        Status {
            source,
            in_force: self.in_force.clone(),
            is_kept: !is_newest,
            problems: self.problems.clone(),
        }
    }
}

impl Store {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in all that is wanted, as it was just read; forgets everything else. Returns whether anything that is in
    /// force has changed.
    pub fn update(&self, read: Read, now: UnixSeconds) -> bool {
        let mut inner = self.lock();
        let inner = &mut *inner;
        let known = inner.identities.keys().eq(read.identities.keys())
            && inner.authorities.keys().eq(read.authorities.keys());
        inner
            .identities
            .retain(|source, _| read.identities.contains_key(source));
        inner
            .authorities
            .retain(|source, _| read.authorities.contains_key(source));
        inner.servers.retain(|_, server| server.strong_count() > 0);
        inner.clients.retain(|_, client| client.strong_count() > 0);
        let mut changed = false;
        for (source, bytes) in read.identities {
            let slot = inner.identities.entry(source).or_default();
            let digest = bytes.as_ref().ok().map(IdentityBytes::digest);
            changed |= slot.take(digest, || bytes.as_ref().map_err(Clone::clone)?.read(), now);
        }
        for (source, bytes) in read.authorities {
            let slot = inner.authorities.entry(source).or_default();
            let digest = bytes.as_ref().ok().map(AuthorityBytes::digest);
            changed |= slot.take(
                digest,
                || Authorities::read(bytes.as_ref().map_err(Clone::clone)?.pem()),
                now,
            );
        }
        inner.revision += u64::from(changed || !known);
        changed
    }

    /// Grows whenever [`Store::client`] or [`Store::identity`] may say something else than before.
    pub fn revision(&self) -> u64 {
        self.lock().revision
    }

    /// What a server with these settings handshakes with; the same as before if nothing that it is made of has changed.
    ///
    /// `None` when there is no certificate that can be used, or no authorities although they are asked for.
    pub fn server(&self, settings: &ServerSettings) -> Option<Arc<ServerTls>> {
        let mut inner = self.lock();
        let sources = settings.identities.iter();
        let slots = sources.filter_map(|source| inner.identities.get(source));
        let identities: Vec<Arc<Identity>> =
            slots.filter_map(|slot| slot.in_force.clone()).collect();
        if identities.is_empty() {
            return None;
        }
        let source = settings
            .clients
            .as_ref()
            .and_then(|clients| clients.authorities.as_ref());
        let slot = source.and_then(|source| inner.authorities.get(source));
        let authorities = slot.and_then(|slot| slot.in_force.clone());
        let before = inner.servers.get(settings).and_then(Weak::upgrade);
        if let Some(before) = before
            && before.is_made_of(&identities, authorities.as_ref())
        {
            return Some(before);
        }
        let made = ServerTls::new(settings, identities, authorities)
            .ok()
            .map(Arc::new)?;
        inner
            .servers
            .insert(settings.clone(), Arc::downgrade(&made));
        Some(made)
    }

    /// What connections with these settings handshake with; the same as before if nothing that it is made of has
    /// changed. What is wanted and not there makes it refuse them.
    pub fn client(&self, settings: &ClientSettings) -> Arc<ClientTls> {
        let mut inner = self.lock();
        let identity = settings.identity.as_ref();
        let authorities = settings.authorities.as_ref();
        let material = Material {
            identity: identity.and_then(|source| inner.identities.get(source)?.in_force.clone()),
            authorities: authorities
                .and_then(|source| inner.authorities.get(source)?.in_force.clone()),
        };
        let before = inner.clients.get(settings).and_then(Weak::upgrade);
        if let Some(before) = before.filter(|before| before.is_made_of(&material)) {
            return before;
        }
        inner.serial += 1;
        let made = Arc::new(ClientTls::new(inner.serial, settings.clone(), material));
        inner
            .clients
            .insert(settings.clone(), Arc::downgrade(&made));
        made
    }

    /// What can be said of one certificate, if it was asked for.
    pub fn identity(&self, source: &IdentitySource) -> Option<Status<IdentitySource, Identity>> {
        let inner = self.lock();
        let slot = inner.identities.get(source)?;
        Some(slot.status(source.clone()))
    }

    /// What can be said of the certificates.
    pub fn identities(&self) -> Vec<Status<IdentitySource, Identity>> {
        let inner = self.lock();
        let each = inner.identities.iter();
        each.map(|(source, slot)| slot.status(source.clone()))
            .collect()
    }

    /// What can be said of the authorities.
    pub fn authorities(&self) -> Vec<Status<AuthoritySource, Authorities>> {
        let inner = self.lock();
        let each = inner.authorities.iter();
        each.map(|(source, slot)| slot.status(source.clone()))
            .collect()
    }
}

impl ServerTls {
    fn is_made_of(
        &self,
        identities: &[Arc<Identity>],
        authorities: Option<&Arc<Authorities>>,
    ) -> bool {
        let same_authorities = match (&self.authorities, authorities) {
            (Some(own), Some(other)) => Arc::ptr_eq(own, other),
            (own, other) => own.is_none() && other.is_none(),
        };
        same_authorities
            && self.identities.len() == identities.len()
            && self
                .identities
                .iter()
                .zip(identities)
                .all(|(own, other)| Arc::ptr_eq(own, other))
    }
}

impl IdentityBytes {
    /// The certificate and its key, if they can be used and are for the workload.
    fn read(&self) -> Result<Identity, Problem> {
        let read = Identity::read(self.pem())?;
        match &self.workload {
            Some(workload) => workload.check(&read.facts, &self.chain.0).map(|()| read),
            None => Ok(read),
        }
    }

    fn pem(&self) -> IdentityPem<'_> {
        IdentityPem {
            chain: (&self.chain.0, &self.chain.1),
            key: (&self.key.0, &self.key.1),
        }
    }

    fn digest(&self) -> Sha256 {
        digest(&[&self.chain, &self.key])
    }
}

impl AuthorityBytes {
    fn pem(&self) -> AuthoritiesPem<'_> {
        AuthoritiesPem {
            authorities: (&self.authorities.0, &self.authorities.1),
            revoked: self
                .revoked
                .as_ref()
                .map(|(place, bytes)| (&**place, &**bytes)),
            is_lenient: self.is_lenient,
        }
    }

    fn digest(&self) -> Sha256 {
        match &self.revoked {
            Some(revoked) => digest(&[&self.authorities, revoked]),
            None => digest(&[&self.authorities]),
        }
    }
}

fn digest(parts: &[&Named]) -> Sha256 {
    let each: Vec<u8> = parts.iter().flat_map(|(_, bytes)| sha256(bytes)).collect();
    sha256(&each)
}

#[cfg(test)]
mod tests;
