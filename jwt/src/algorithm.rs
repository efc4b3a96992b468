//! Signature algorithms (RFC 7518, section 3; RFC 8037).

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ECDSA_P521_SHA512_FIXED, ED25519,
    ParsedPublicKey, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384,
    RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384,
    RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents, VerificationAlgorithm,
};

/// Signature algorithm with a public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    EdDsa,
    Es256,
    Es384,
    Es512,
    Ps256,
    Ps384,
    Ps512,
    Rs256,
    Rs384,
    Rs512,
}

/// Every algorithm with its name in `alg`.
const NAMES: [(&str, Algorithm); 10] = [
    ("EdDSA", Algorithm::EdDsa),
    ("ES256", Algorithm::Es256),
    ("ES384", Algorithm::Es384),
    ("ES512", Algorithm::Es512),
    ("PS256", Algorithm::Ps256),
    ("PS384", Algorithm::Ps384),
    ("PS512", Algorithm::Ps512),
    ("RS256", Algorithm::Rs256),
    ("RS384", Algorithm::Rs384),
    ("RS512", Algorithm::Rs512),
];

impl Algorithm {
    /// Returns the algorithm with this name in `alg`.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        NAMES
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, algorithm)| *algorithm)
    }

    /// Returns the name in `alg`.
    pub(crate) fn name(self) -> &'static str {
        NAMES
            .iter()
            .find(|(_, known)| *known == self)
            .map_or("", |(name, _)| name)
    }

    fn rsa(self) -> Option<&'static RsaParameters> {
        Some(match self {
            Self::Ps256 => &RSA_PSS_2048_8192_SHA256,
            Self::Ps384 => &RSA_PSS_2048_8192_SHA384,
            Self::Ps512 => &RSA_PSS_2048_8192_SHA512,
            Self::Rs256 => &RSA_PKCS1_2048_8192_SHA256,
            Self::Rs384 => &RSA_PKCS1_2048_8192_SHA384,
            Self::Rs512 => &RSA_PKCS1_2048_8192_SHA512,
            Self::EdDsa | Self::Es256 | Self::Es384 | Self::Es512 => return None,
        })
    }
}

/// Public key as a key set or certificate has it: the numbers of its type.
#[derive(Debug)]
pub(crate) enum Material {
    /// Uncompressed point on the curve of this algorithm.
    Ec(Algorithm, Vec<u8>),
    /// Key of Ed25519.
    Ed25519(Vec<u8>),
    /// Modulus and exponent, without leading zeros.
    Rsa(Vec<u8>, Vec<u8>),
}

/// Encodings of the y coordinates of points on Curve25519 with a small order, without the sign bit. Anybody can sign for
/// such a key.
const SMALL_ORDER: [[u8; 32]; 7] = {
    /// Returns 32 bytes that are all `middle`, except the first and the last.
    const fn point(first: u8, middle: u8, last: u8) -> [u8; 32] {
        let mut bytes = [middle; 32];
        bytes[0] = first;
        bytes[31] = last;
        bytes
    }
    [
        point(0, 0, 0),
        point(1, 0, 0),
        point(0xec, 0xff, 0x7f),
        point(0xed, 0xff, 0x7f),
        point(0xee, 0xff, 0x7f),
        [
            0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef,
            0x98, 0xf0, 0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88,
            0x6d, 0x53, 0xfc, 0x05,
        ],
        [
            0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10,
            0x67, 0x0f, 0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77,
            0x92, 0xac, 0x03, 0x7a,
        ],
    ]
};

impl Material {
    /// Parses the key for the algorithm that it names, or for each algorithm of its type if it names none.
    ///
    /// # Errors
    ///
    /// A message, if the key is weak or invalid, or names an algorithm of another type.
    pub(crate) fn parse(
        &self,
        named: Option<Algorithm>,
    ) -> Result<Vec<(Algorithm, ParsedPublicKey)>, &'static str> {
        let fits = |algorithm: &Algorithm| match self {
            Self::Ec(curve, _) => algorithm == curve,
            Self::Ed25519(_) => *algorithm == Algorithm::EdDsa,
            Self::Rsa(..) => algorithm.rsa().is_some(),
        };
        let all = NAMES.iter().map(|(_, algorithm)| *algorithm);
        let wanted = all.filter(|one| fits(one) && named.is_none_or(|named| named == *one));
        let parsed: Vec<_> = wanted
            .map(|one| self.parse_for(one).map(|key| (one, key)))
            .collect::<Result<_, _>>()?;
        match parsed.is_empty() {
            true => Err("`alg` is not for this type of key"),
            false => Ok(parsed),
        }
    }

    fn parse_for(&self, algorithm: Algorithm) -> Result<ParsedPublicKey, &'static str> {
        let (known, bytes): (&'static dyn VerificationAlgorithm, _) = match self {
            Self::Rsa(n, e) => {
                let bits =
                    8 * n.len() - n.first().map_or(0, |first| first.leading_zeros() as usize);
                if !(2048..=8192).contains(&bits) {
                    return Err("an RSA key has 2048 to 8192 bits");
                }
                if e.last().is_none_or(|last| last % 2 == 0) || **e == [1] {
                    return Err("the exponent of an RSA key is odd, and 3 or more");
                }
                let parameters = algorithm.rsa().ok_or("not an algorithm of RSA")?;
                let parsed = RsaPublicKeyComponents { n, e }.to_parsed_public_key(parameters);
                return parsed.map_err(|_| "not a key of RSA");
            }
            Self::Ec(Algorithm::Es256, point) => (&ECDSA_P256_SHA256_FIXED, point),
            Self::Ec(Algorithm::Es384, point) => (&ECDSA_P384_SHA384_FIXED, point),
            Self::Ec(_, point) => (&ECDSA_P521_SHA512_FIXED, point),
            Self::Ed25519(key) => {
                let mut point =
                    <[u8; 32]>::try_from(&**key).map_err(|_| "a key of Ed25519 has 32 bytes")?;
                point[31] &= 0x7f;
                if SMALL_ORDER.contains(&point) {
                    return Err("the point has a small order: anybody can sign for it");
                }
                (&ED25519, key)
            }
        };
        ParsedPublicKey::new(known, bytes).map_err(|_| "not a point on its curve")
    }
}
