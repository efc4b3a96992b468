//! Public keys of an issuer: a JSON Web Key Set (RFC 7517), or an object from `kid` to a certificate in PEM.

use std::fmt;

use aws_lc_rs::signature::ParsedPublicKey;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use traffic::claims::{Claim, Claims};
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::public_key::PublicKey;

use crate::algorithm::{Algorithm, Material};
use crate::refusal::Refusal;
use crate::token::Token;

/// Maximum size of a key set, in bytes.
pub const KEYS_BYTES_MAX: usize = 1 << 20;
/// Maximum number of keys in a set.
const KEYS_MAX: usize = 100;
/// Maximum number of keys that are tried for a token without `kid`.
const TRIED_MAX: usize = 16;

/// Public keys of an issuer.
#[derive(Debug)]
pub struct Keys {
    keys: Vec<Key>,
    /// Problems for the user that do not prevent the use of the set: keys that are not used, are private, or have a `kid` twice.
    pub remarks: Vec<String>,
}

#[derive(Debug)]
struct Key {
    /// Identifier that tokens name in `kid`; empty for a key that is tried for every token.
    kid: Box<str>,
    /// Public key in the form that each of its algorithms needs.
    parsed: Vec<(Algorithm, ParsedPublicKey)>,
}

/// Error: a text is not a key set, or none of its keys can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadKeys(pub String);

impl fmt::Display for BadKeys {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for BadKeys {}

impl Keys {
    /// Reads a key set. Keys that cannot be used are left out.
    ///
    /// # Errors
    ///
    /// The text is not a key set, is too long, or has no usable key.
    pub fn parse(text: &[u8]) -> Result<Self, BadKeys> {
        if text.len() > KEYS_BYTES_MAX {
            return Err(BadKeys(format!("more than {KEYS_BYTES_MAX} bytes")));
        }
        let set =
            Claims::parse(text).map_err(|error| BadKeys(format!("not a JSON object: {error}")))?;
        let read: Vec<(Box<str>, Result<Key, String>)> = match set.get("keys") {
            Some(Claim::List(list)) => list.iter().map(|key| (kid_of(key), jwk(key))).collect(),
            Some(_) => return Err(BadKeys("`keys` is not a list".into())),
            None => set
                .iter()
                .map(|(kid, pem)| (kid.into(), certificate(kid, pem)))
                .collect(),
        };
        if read.len() > KEYS_MAX {
            return Err(BadKeys(format!("more than {KEYS_MAX} keys")));
        }
        let mut keys = Self {
            keys: Vec::new(),
            remarks: Vec::new(),
        };
        for (kid, key) in read {
            match key {
                Ok(key) => keys.keys.push(key),
                Err(reason) => keys
                    .remarks
                    .push(format!("key `{kid}` is not used: {reason}")),
            }
        }
        if keys.keys.is_empty() {
            let reasons = keys.remarks.iter().map(|remark| format!("; {remark}"));
            return Err(BadKeys(format!(
                "no usable key{}",
                reasons.collect::<String>()
            )));
        }
        keys.add_remarks(&set);
        Ok(keys)
    }

    /// Adds remarks on keys that are used although they are private, or share their `kid`.
    fn add_remarks(&mut self, set: &Claims) {
        let list = match set.get("keys") {
            Some(Claim::List(list)) => &**list,
            _ => &[],
        };
        for key in list {
            if matches!(key, Claim::Object(key) if key.get("d").is_some()) {
                self.remarks.push(format!(
                    "key `{}` is private: remove its private parts",
                    kid_of(key)
                ));
            }
        }
        let mut kids: Vec<&str> = self
            .keys
            .iter()
            .map(|key| &*key.kid)
            .filter(|kid| !kid.is_empty())
            .collect();
        kids.sort_unstable();
        let twice = kids
            .windows(2)
            .filter(|pair| pair[0] == pair[1])
            .map(|pair| pair[0]);
        self.remarks
            .extend(twice.map(|kid| format!("key `{kid}` is there more than once")));
    }

    /// Verifies the signature of a token.
    ///
    /// # Errors
    ///
    /// No key fits, or no fitting key verifies it.
    pub fn verify(&self, token: &Token<'_>) -> Result<(), Refusal> {
        let named =
            |key: &&Key| token.kid.is_empty() || key.kid.is_empty() || *key.kid == *token.kid;
        let ready = self.keys.iter().filter(named).flat_map(|key| &key.parsed);
        let mut fitting = ready
            .filter(|(algorithm, _)| *algorithm == token.algorithm)
            .take(TRIED_MAX)
            .peekable();
        if fitting.peek().is_none() {
            return Err(Refusal::Key);
        }
        let verifies = |key: &ParsedPublicKey| {
            key.verify_sig(token.signed.as_bytes(), &token.signature)
                .is_ok()
        };
        match fitting.any(|(_, key)| verifies(key)) {
            true => Ok(()),
            false => Err(Refusal::Signature),
        }
    }
}

fn kid_of(key: &Claim) -> Box<str> {
    let kid = match key {
        Claim::Object(key) => key.get("kid").and_then(Claim::text),
        _ => None,
    };
    kid.unwrap_or_default().into()
}

fn jwk(key: &Claim) -> Result<Key, String> {
    let Claim::Object(jwk) = key else {
        return Err("not an object".into());
    };
    let text = |name: &str| match jwk.get(name) {
        None => Ok(None),
        Some(claim) => claim
            .text()
            .map(Some)
            .ok_or_else(|| format!("`{name}` is not a text")),
    };
    if text("use")?.is_some_and(|used| used != "sig") {
        return Err("`use` is not `sig`".into());
    }
    if jwk
        .get("key_ops")
        .is_some_and(|claim| !claim.texts().any(|op| op == "verify"))
    {
        return Err("`key_ops` lacks `verify`".into());
    }
    let kid = text("kid")?.unwrap_or_default().into();
    let algorithm = match text("alg")? {
        Some(name) => Some(
            Algorithm::from_name(name)
                .ok_or_else(|| format!("algorithm `{name}` is not supported"))?,
        ),
        None => None,
    };
    let number = |name: &str| {
        let digits = text(name)?.ok_or_else(|| format!("`{name}` is missing"))?;
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(digits.trim_end_matches('='));
        bytes.map_err(|_| format!("`{name}` is not base64url"))
    };
    let material = match (
        text("kty")?.unwrap_or_default(),
        text("crv")?.unwrap_or_default(),
    ) {
        ("RSA", _) => Material::Rsa(trimmed(number("n")?), trimmed(number("e")?)),
        ("EC", curve) => {
            let (algorithm, bytes) = match curve {
                "P-256" => (Algorithm::Es256, 32),
                "P-384" => (Algorithm::Es384, 48),
                "P-521" => (Algorithm::Es512, 66),
                _ => return Err(format!("curve `{curve}` is not supported")),
            };
            let (x, y) = (number("x")?, number("y")?);
            if x.len() != bytes || y.len() != bytes {
                return Err(format!("a coordinate on {curve} has {bytes} bytes"));
            }
            Material::Ec(algorithm, [&[4][..], &x, &y].concat())
        }
        ("OKP", "Ed25519") => Material::Ed25519(number("x")?),
        ("oct", _) => return Err("a shared secret lets every verifier sign".into()),
        (kind, _) => return Err(format!("type `{kind}` is not supported")),
    };
    Ok(Key {
        kid,
        parsed: material.parse(algorithm)?,
    })
}

fn certificate(kid: &str, pem: &Claim) -> Result<Key, String> {
    let pem = pem.text().ok_or("not a text")?;
    let der =
        CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|_| "not a certificate in PEM")?;
    let (_, certificate) = X509Certificate::from_der(&der).map_err(|_| "not a certificate")?;
    let key = certificate.public_key();
    let material = match key.parsed().map_err(|_| "its key cannot be read")? {
        PublicKey::RSA(rsa) => {
            Material::Rsa(trimmed(rsa.modulus.into()), trimmed(rsa.exponent.into()))
        }
        PublicKey::EC(point) => {
            let algorithm = match point.data().len() {
                65 => Algorithm::Es256,
                97 => Algorithm::Es384,
                133 => Algorithm::Es512,
                _ => return Err("its curve is not supported".into()),
            };
            Material::Ec(algorithm, point.data().into())
        }
        _ if key.algorithm.algorithm.to_id_string() == "1.3.101.112" => {
            Material::Ed25519(key.subject_public_key.data.to_vec())
        }
        _ => return Err("its type of key is not supported".into()),
    };
    Ok(Key {
        kid: kid.into(),
        parsed: material.parse(None)?,
    })
}

/// Removes leading zeros.
fn trimmed(mut number: Vec<u8>) -> Vec<u8> {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    number.drain(..zeros);
    number
}
