//! Certificates, keys and authorities in effect, by source; outlives snapshots.
//!
//! Invariant: invalid material, or material outside its validity period, never replaces valid material.
//! [`Store::update`] receives the time with the bytes; all other functions only look up.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::client::Material;
use super::digest::{Sha256, sha256};
use super::material::{AuthoritiesPem, IdentityPem, UnixSeconds};
use super::spiffe::Workload;
use super::{
    Authorities, AuthoritySource, ClientSettings, ClientTls, Identity, IdentitySource, Problem,
    ProblemKind, ServerSettings, ServerTls,
};

/// Content with the name of its file or secret.
pub type NamedContent = (Arc<str>, Vec<u8>);

/// Content of a certificate and its key.
#[derive(Default)]
pub struct IdentityBytes {
    /// Certificate chain.
    pub chain: NamedContent,
    /// Private key.
    pub key: NamedContent,
    /// Workload that the certificate must identify; `None` for any.
    pub workload: Option<Workload>,
    /// Problem of a source that has not delivered a newer certificate.
    pub problem: Option<Problem>,
}

/// Content of authorities.
#[derive(Default)]
pub struct AuthorityBytes {
    /// Authorities.
    pub authorities: NamedContent,
    /// Authorities by trust domain, all of which are in `authorities` as well; empty if that verifies all peers.
    pub bundles: BTreeMap<Arc<str>, Vec<u8>>,
    /// Revocation lists.
    pub revoked: Option<NamedContent>,
    /// Whether unusable certificates are skipped: an operating system trusts many, old ones included.
    pub is_lenient: bool,
}

/// Content of all sources in use, as just read.
#[derive(Default)]
pub struct MaterialContent {
    /// Certificates with keys.
    pub identities: BTreeMap<IdentitySource, Result<IdentityBytes, Problem>>,
    /// Source of the workload's identity; `None` without one.
    pub own: Option<IdentitySource>,
    /// Authorities.
    pub authorities: BTreeMap<AuthoritySource, Result<AuthorityBytes, Problem>>,
}

/// Material in effect.
#[derive(Debug, Default)]
pub struct Store {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    own: Option<IdentitySource>,
    identities: BTreeMap<IdentitySource, StoredMaterial<Identity>>,
    authorities: BTreeMap<AuthoritySource, StoredMaterial<Authorities>>,
    servers: BTreeMap<ServerSettings, Weak<ServerTls>>,
    clients: BTreeMap<ClientSettings, Weak<ClientTls>>,
    /// Serial of the newest client configuration.
    serial: u64,
    /// Number of changes to the material of clients and servers.
    revision: u64,
}

/// Material of one source.
#[derive(Debug)]
struct StoredMaterial<T> {
    /// Hash of the content read last.
    digest: Option<Sha256>,
    /// Material parsed from that content; `None` if it is invalid.
    newest: Option<Arc<T>>,
    /// Material in effect before the newest was read, as long as the newest is not valid.
    before: Option<Arc<T>>,
    in_force: Option<Arc<T>>,
    /// Problems with the newest.
    problems: Vec<Problem>,
    /// Problem of the source.
    source_problem: Option<Problem>,
    /// Time since which a chain and its key do not fit.
    unfit_since: Option<UnixSeconds>,
}

impl<T> Default for StoredMaterial<T> {
    fn default() -> Self {
        Self {
            digest: None,
            newest: None,
            before: None,
            in_force: None,
            problems: Vec::new(),
            source_problem: None,
            unfit_since: None,
        }
    }
}

/// Status of one source.
#[derive(Clone, Debug)]
pub struct Status<S, T> {
    /// Source.
    pub source: S,
    /// Material in effect, if any.
    pub in_force: Option<Arc<T>>,
    /// Whether the material in effect is older than the content read last.
    pub is_kept: bool,
    /// Problems with the content read last, and of its source.
    pub problems: Vec<Problem>,
    /// Problem of a source that has not delivered a newer certificate.
    pub source_problem: Option<Problem>,
}

impl<S, T> Status<S, T> {
    /// Whether the content read last is not in effect.
    pub fn is_refused(&self) -> bool {
        self.is_kept || self.in_force.is_none()
    }
}

/// Material whose problems depend on the time.
trait Timely {
    fn problems_at(&self, now: UnixSeconds) -> Vec<Problem>;

    /// Whether the material may be used at this time, even if there is nothing better.
    fn is_usable_at(&self, now: UnixSeconds) -> bool;
}

impl Timely for Identity {
    fn problems_at(&self, now: UnixSeconds) -> Vec<Problem> {
        let weak = self.weaknesses.iter().cloned();
        self.untimely(now).into_iter().chain(weak).collect()
    }

    fn is_usable_at(&self, now: UnixSeconds) -> bool {
        !self.is_of_workload || now <= self.facts.not_after
    }
}

impl Timely for Authorities {
    fn problems_at(&self, now: UnixSeconds) -> Vec<Problem> {
        self.untimely(now)
    }

    fn is_usable_at(&self, _: UnixSeconds) -> bool {
        true
    }
}

/// Time in which a key that does not fit its certificate is taken for the half of a change.
const UNFIT_MAX: UnixSeconds = 5;

impl<T: Timely> StoredMaterial<T> {
    /// Processes newly read content; returns whether the material in effect changed.
    fn take(
        &mut self,
        digest: Option<Sha256>,
        read: impl FnOnce() -> Result<T, Problem>,
        now: UnixSeconds,
    ) -> bool {
        if digest.is_none() || digest != self.digest {
            let read = read();
            let is_waited_for = self.is_half_of_a_change(&read, now);
            if !is_waited_for {
                self.digest = digest;
                self.before = self.in_force.clone();
                match read {
                    Ok(read) => self.newest = Some(Arc::new(read)),
                    Err(problem) => {
                        self.newest = None;
                        if problem.kind == ProblemKind::Withdrawn {
                            self.before = None;
                        }
                        self.problems = vec![problem];
                    }
                }
            }
        }
        let chosen = self.choose(now).filter(|one| one.is_usable_at(now));
        let same = match (&chosen, &self.in_force) {
            (Some(new), Some(old)) => Arc::ptr_eq(new, old),
            (None, None) => true,
            _ => false,
        };
        self.in_force = chosen;
        !same
    }

    /// Returns whether a chain and its key do not fit since a short time: they are written one after the other. What
    /// is in effect stays, and both are read again.
    fn is_half_of_a_change(&mut self, read: &Result<T, Problem>, now: UnixSeconds) -> bool {
        let is_unfit = matches!(read, Err(problem) if problem.kind == ProblemKind::Mismatch);
        if !is_unfit || self.in_force.is_none() {
            self.unfit_since = None;
            return false;
        }
        now - *self.unfit_since.get_or_insert(now) < UNFIT_MAX
    }

    /// Returns the newest material, unless it is outside its validity period and the previous one is not.
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
        let problems = self.problems.iter().chain(&self.source_problem);
        Status {
            source,
            in_force: self.in_force.clone(),
            is_kept: !is_newest,
            problems: problems.cloned().collect(),
            source_problem: self.source_problem.clone(),
        }
    }
}

impl Store {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Processes the content of all sources in use, and forgets all others. Returns whether any material in effect
    /// changed.
    pub fn update(&self, read: MaterialContent, now: UnixSeconds) -> bool {
        let mut inner = self.lock();
        let inner = &mut *inner;
        inner.own = read.own;
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
            let problem = bytes.as_ref().ok().and_then(|bytes| bytes.problem.clone());
            slot.source_problem = problem;
            changed |= slot.take(digest, || bytes.as_ref().map_err(Clone::clone)?.read(), now);
        }
        for (source, bytes) in read.authorities {
            let slot = inner.authorities.entry(source).or_default();
            let digest = bytes.as_ref().ok().map(AuthorityBytes::digest);
            changed |= slot.take(digest, || bytes.as_ref().map_err(Clone::clone)?.read(), now);
        }
        inner.revision += u64::from(changed || !known);
        changed
    }

    /// Counter that grows whenever results of [`Store::client`] or [`Store::identity`] may change.
    pub fn revision(&self) -> u64 {
        self.lock().revision
    }

    /// Returns the TLS configuration of a server with these settings; the same one while its material is unchanged.
    ///
    /// `None` without a usable certificate, or without authorities that the settings require.
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

    /// Returns the TLS configuration of connections with these settings; the same one while its material is unchanged.
    /// It refuses connections if required material is missing.
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

    /// Returns the status of one certificate, if it is in use.
    pub fn identity(&self, source: &IdentitySource) -> Option<Status<IdentitySource, Identity>> {
        let inner = self.lock();
        let slot = inner.identities.get(source)?;
        Some(slot.status(source.clone()))
    }

    /// Returns the status of the workload's identity, if the proxy has a source of one.
    pub fn own(&self) -> Option<Status<IdentitySource, Identity>> {
        let inner = self.lock();
        let source = inner.own.as_ref()?;
        Some(inner.identities.get(source)?.status(source.clone()))
    }

    /// Returns the status of all certificates.
    pub fn identities(&self) -> Vec<Status<IdentitySource, Identity>> {
        let inner = self.lock();
        let each = inner.identities.iter();
        each.map(|(source, slot)| slot.status(source.clone()))
            .collect()
    }

    /// Returns the status of all authorities.
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
    /// Parses and checks the certificate, its key and its workload.
    fn read(&self) -> Result<Identity, Problem> {
        let mut read = Identity::read(self.pem())?;
        if let Some(workload) = &self.workload {
            workload.check(&read.facts, &self.chain.0)?;
            read.is_of_workload = true;
        }
        Ok(read)
    }

    fn pem(&self) -> IdentityPem<'_> {
        IdentityPem {
            chain: (&self.chain.0, &self.chain.1),
            key: (&self.key.0, &self.key.1),
        }
    }

    fn digest(&self) -> Sha256 {
        digest([&*self.chain.1, &*self.key.1])
    }
}

impl AuthorityBytes {
    fn read(&self) -> Result<Authorities, Problem> {
        Authorities::read(self.pem())?.with_bundles(&self.authorities.0, &self.bundles)
    }

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
        let bundles = self.bundles.iter();
        let bundles = bundles.flat_map(|(domain, pem)| [domain.as_bytes(), pem]);
        let parts = [&*self.authorities.1].into_iter().chain(bundles);
        let revoked = self.revoked.as_ref().map(|(_, bytes)| &**bytes);
        digest(parts.chain(revoked))
    }
}

fn digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Sha256 {
    let each: Vec<u8> = parts.into_iter().flat_map(sha256).collect();
    sha256(&each)
}

#[cfg(test)]
mod tests;
