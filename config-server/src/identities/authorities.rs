//! Keys of the CA, and their rotation in three steps. Pure: the time is passed in.
//!
//! Invariants: the whole state is one value, which is replaced at once, so that a process that ends at any time leaves a
//! step that others continue. A root is trusted by everyone before it signs, and signs nothing any more before it goes.

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::profile::Signer;
use super::values::{pem, time};
use crate::clock;
use crate::object;

/// Seconds of a day.
const DAY: i64 = 86_400;
/// Life of a root: ten years.
const ROOT_LIFE: i64 = 3_652 * DAY;
/// Life of an intermediate certificate.
const INTERMEDIATE_LIFE: i64 = 365 * DAY;
/// Time before the issue from which on certificates of the CA are valid, for clocks that are late.
const EARLIER: i64 = 3_600;

type Outcome<T> = Result<T, String>;

/// Root, and the certificate below it that signs, with their keys, in PEM.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Authority {
    root: String,
    root_key: String,
    intermediate: String,
    intermediate_key: String,
}

/// Step of a rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Step {
    /// Both roots are published; the old one signs.
    Publish,
    /// Both roots are published; the new one signs.
    Sign,
}

/// Rotation that goes on.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Rotation {
    next: Authority,
    step: Step,
    /// Start of the step, in seconds since 1970.
    since: i64,
}

/// Keys of the CA.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Authorities {
    current: Authority,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rotation: Option<Rotation>,
    /// Longest life of a certificate that was ever issued, in seconds.
    longest_life: i64,
}

impl std::fmt::Debug for Authorities {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let step = self.rotation.as_ref().map(|rotation| rotation.step);
        let mut shown = f.debug_struct("Authorities");
        shown.field("rotation", &step).finish_non_exhaustive()
    }
}

impl Authority {
    fn new(now: i64) -> Outcome<Self> {
        let name = format!("strait identity CA {}", object::random_suffix());
        let key = KeyPair::generate().map_err(|error| error.to_string())?;
        let root = params(&name, 1, (now, ROOT_LIFE)).self_signed(&key);
        let root = root.map_err(|error| error.to_string())?.pem();
        let root_key = key.serialize_pem();
        let (intermediate, intermediate_key) = intermediate(&root, &root_key, now)?;
        Ok(Self {
            root,
            root_key,
            intermediate,
            intermediate_key,
        })
    }

    /// Returns the authority with a new intermediate certificate, if it is time for one.
    fn renewed(&self, now: i64) -> Outcome<Option<Self>> {
        if !is_due(&self.intermediate, now)? {
            return Ok(None);
        }
        let (intermediate, intermediate_key) = intermediate(&self.root, &self.root_key, now)?;
        Ok(Some(Self {
            intermediate,
            intermediate_key,
            ..self.clone()
        }))
    }

    /// Returns the certificates between the root and those of workloads, and the key that signs.
    pub(crate) fn parts(&self) -> (Vec<String>, &str) {
        (vec![self.intermediate.clone()], &self.intermediate_key)
    }
}

impl Authorities {
    /// Makes the first keys, for certificates of at most this life in seconds.
    ///
    /// # Errors
    /// If the library cannot make them.
    pub(crate) fn new(now: i64, life_max: i64) -> Outcome<Self> {
        Ok(Self {
            current: Authority::new(now)?,
            rotation: None,
            longest_life: life_max,
        })
    }

    /// Returns the authority that signs.
    pub(crate) fn signing(&self) -> &Authority {
        match &self.rotation {
            Some(rotation) if rotation.step == Step::Sign => &rotation.next,
            _ => &self.current,
        }
    }

    /// Returns the signer.
    ///
    /// # Errors
    /// If the stored keys are damaged.
    pub(crate) fn signer(&self) -> Outcome<Signer> {
        let (chain, key) = self.signing().parts();
        Signer::read(&chain, key)
    }

    /// Returns the roots that workloads trust, in PEM.
    pub(crate) fn roots(&self) -> String {
        let next = self.rotation.as_ref().map(|rotation| &rotation.next);
        let all = std::iter::once(&self.current).chain(next);
        all.map(|authority| authority.root.as_str()).collect()
    }

    /// Returns what takes the place of these keys now; `None` while they are good. `life_max` is the longest life of
    /// certificates in seconds, `margin` the time after which every replica has seen a change and published its roots.
    ///
    /// # Errors
    /// If the stored keys are damaged.
    pub(crate) fn advanced(&self, now: i64, life_max: i64, margin: i64) -> Outcome<Option<Self>> {
        if life_max > self.longest_life {
            return Ok(Some(Self {
                longest_life: life_max,
                ..self.clone()
            }));
        }
        let Some(rotation) = &self.rotation else {
            if is_due(&self.current.root, now)? {
                return self.rotated(now).map(Some);
            }
            let renewed = self.current.renewed(now)?;
            return Ok(renewed.map(|current| Self {
                current,
                ..self.clone()
            }));
        };
        if now < rotation.since + self.longest_life + margin {
            return Ok(None);
        }
        Ok(Some(match rotation.step {
            Step::Publish => Self {
                rotation: Some(Rotation {
                    step: Step::Sign,
                    since: now,
                    ..rotation.clone()
                }),
                ..self.clone()
            },
            Step::Sign => Self {
                current: rotation.next.clone(),
                rotation: None,
                ..self.clone()
            },
        }))
    }

    /// Returns the first step of a rotation.
    ///
    /// # Errors
    /// If a rotation goes on already.
    pub(crate) fn rotated(&self, now: i64) -> Outcome<Self> {
        if self.rotation.is_some() {
            return Err("a rotation goes on already".to_owned());
        }
        Ok(Self {
            rotation: Some(Rotation {
                next: Authority::new(now)?,
                step: Step::Publish,
                since: now,
            }),
            ..self.clone()
        })
    }

    /// Returns the state for people and programs, without keys.
    pub(crate) fn status(&self) -> Value {
        let shown = |authority: &Authority| {
            json!({
                "root": certificate(&authority.root),
                "intermediate": certificate(&authority.intermediate),
            })
        };
        let rotation = self.rotation.as_ref().map(|rotation| {
            let next = rotation.since + self.longest_life;
            json!({
                "step": rotation.step,
                "since": clock::rfc3339(rotation.since.try_into().unwrap_or_default()),
                "next_step_after": clock::rfc3339(next.try_into().unwrap_or_default()),
                "next": shown(&rotation.next),
            })
        });
        json!({
            "current": shown(&self.current), "rotation": rotation,
            "longest_certificate_life_seconds": self.longest_life,
        })
    }
}

/// Returns a certificate as the status shows it.
fn certificate(text: &str) -> Value {
    let Ok(der) = pem(text) else {
        return Value::Null;
    };
    let Ok((_, parsed)) = X509Certificate::from_der(&der) else {
        return Value::Null;
    };
    let until = parsed.validity().not_after.timestamp();
    let names = parsed.subject().iter_common_name();
    let mut names = names.filter_map(|name| name.as_str().ok());
    json!({
        "name": names.next(),
        "not_after": clock::rfc3339(until.try_into().unwrap_or_default()),
        "sha256": crate::access::tokens::hash(&der),
    })
}

fn intermediate(root: &str, root_key: &str, now: i64) -> Outcome<(String, String)> {
    let root_key = KeyPair::from_pem(root_key).map_err(|error| format!("root key: {error}"))?;
    let issuer = Issuer::from_ca_cert_pem(root, root_key);
    let issuer = issuer.map_err(|error| format!("root: {error}"))?;
    let name = format!("strait identity CA {}", object::random_suffix());
    let mut params = params(&name, 0, (now, INTERMEDIATE_LIFE));
    params.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate().map_err(|error| error.to_string())?;
    let certificate = params.signed_by(&key, &issuer);
    let certificate = certificate.map_err(|error| error.to_string())?;
    Ok((certificate.pem(), key.serialize_pem()))
}

fn params(name: &str, below: u8, (now, life): (i64, i64)) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(below));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.not_before = time(now - EARLIER).into();
    params.not_after = time(now + life).into();
    params
}

/// Returns whether four fifths of the life of a certificate are over.
fn is_due(text: &str, now: i64) -> Outcome<bool> {
    let der = pem(text)?;
    let (_, parsed) = X509Certificate::from_der(&der).map_err(|error| error.to_string())?;
    let (start, end) = (
        parsed.validity().not_before.timestamp(),
        parsed.validity().not_after.timestamp(),
    );
    Ok(now >= start + (end - start) / 5 * 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000;
    const LIFE: i64 = DAY;
    const MARGIN: i64 = 60;

    fn advanced(authorities: &Authorities, now: i64) -> Option<Authorities> {
        authorities.advanced(now, LIFE, MARGIN).unwrap()
    }

    fn root_count(authorities: &Authorities) -> usize {
        authorities.roots().matches("BEGIN CERTIFICATE").count()
    }

    fn stored(authorities: &Authorities) -> Authorities {
        let text = serde_json::to_string(authorities).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn new_root_is_trusted_a_life_before_it_signs_and_the_old_one_a_life_after() {
        let first = Authorities::new(NOW, LIFE).unwrap();
        assert_eq!(advanced(&first, NOW + 100 * DAY), None);
        assert_eq!(root_count(&first), 1);
        let at = NOW + 100 * DAY;
        let publish = stored(&first.rotated(at).unwrap());
        assert_eq!(root_count(&publish), 2);
        assert!(publish.roots().starts_with(&first.roots()));
        assert!(publish.signing() == first.signing());
        assert!(publish.rotated(at).is_err());
        assert_eq!(advanced(&publish, at + LIFE + MARGIN - 1), None);
        // late, as after a stop
        let at = at + 7 * LIFE;
        let sign = stored(&advanced(&publish, at).unwrap());
        assert_eq!((root_count(&sign), sign.roots()), (2, publish.roots()));
        assert!(sign.signing() != first.signing());
        assert_eq!(advanced(&sign, at + LIFE + MARGIN - 1), None);
        let last = stored(&advanced(&sign, at + LIFE + MARGIN).unwrap());
        assert_eq!(root_count(&last), 1);
        assert!(last.signing() == sign.signing() && sign.roots().ends_with(&last.roots()));
        assert_eq!(advanced(&last, at + LIFE + MARGIN), None);
    }

    #[test]
    fn steps_wait_for_the_longest_life_that_was_ever_granted() {
        let first = Authorities::new(NOW, LIFE).unwrap();
        let longer = first.advanced(NOW, 3 * LIFE, MARGIN).unwrap().unwrap();
        let publish = longer.rotated(NOW).unwrap();
        assert_eq!(advanced(&publish, NOW + 3 * LIFE + MARGIN - 1), None);
        assert!(advanced(&publish, NOW + 3 * LIFE + MARGIN).is_some());
    }

    #[test]
    fn intermediate_and_root_are_replaced_at_four_fifths_of_their_life() {
        let first = Authorities::new(NOW, LIFE).unwrap();
        assert_eq!(advanced(&first, NOW + 291 * DAY), None);
        let second = advanced(&first, NOW + 293 * DAY).unwrap();
        assert_eq!(second.roots(), first.roots());
        assert!(second.signing() != first.signing());
        assert_eq!(advanced(&second, NOW + 293 * DAY), None);
        let late = NOW + ROOT_LIFE / 5 * 4;
        let rotating = advanced(&second, late).unwrap();
        assert_eq!(root_count(&rotating), 2);
    }

    #[test]
    fn status_and_debug_text_have_no_key() {
        let first = Authorities::new(NOW, LIFE).unwrap();
        let text = format!("{} {first:?}", first.rotated(NOW).unwrap().status());
        assert!(text.contains("\"step\":\"publish\""), "{text}");
        assert!(!text.contains("PRIVATE"), "{text}");
        let keys = serde_json::to_value(&first).unwrap();
        let key = keys["current"]["intermediate_key"].as_str().unwrap();
        assert!(key.contains("PRIVATE") && !text.contains(key));
    }
}
