use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P256_SHA256_FIXED_SIGNING,
    ECDSA_P384_SHA384_FIXED_SIGNING, ECDSA_P521_SHA512_FIXED_SIGNING, EcdsaKeyPair,
    EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RSA_PKCS1_SHA384,
    RSA_PKCS1_SHA512, RSA_PSS_SHA256, RSA_PSS_SHA384, RSA_PSS_SHA512, RsaEncoding, RsaKeyPair,
};
use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};

use super::*;

/// Signs with a key.
type Sign = Box<dyn Fn(&[u8]) -> Vec<u8>>;

const NOW: UnixSeconds = 1_000_000;
const CLAIMS: &str = r#"{"iss":"i","sub":"ann","aud":"shop","exp":1000100}"#;

fn encode(bytes: impl AsRef<[u8]>) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// Keys of the issuer.
struct World {
    rsa: RsaKeyPair,
    ec: EcdsaKeyPair,
    ed: Ed25519KeyPair,
}

impl World {
    fn new() -> Self {
        Self {
            rsa: RsaKeyPair::generate(KeySize::Rsa2048).expect("generates"),
            ec: EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("generates"),
            ed: Ed25519KeyPair::generate().expect("generates"),
        }
    }

    fn rsa_jwk(&self, more: &str) -> String {
        let key = self.rsa.public_key();
        let (n, e) = (key.modulus(), key.exponent());
        let (n, e) = (
            encode(n.big_endian_without_leading_zero()),
            encode(e.big_endian_without_leading_zero()),
        );
        format!(r#"{{"kty":"RSA","n":"{n}","e":"{e}"{more}}}"#)
    }

    fn rsa_signed(&self, encoding: &'static dyn RsaEncoding, signed: &str) -> Vec<u8> {
        let mut signature = vec![0; self.rsa.public_modulus_len()];
        let random = SystemRandom::new();
        self.rsa
            .sign(encoding, &random, signed.as_bytes(), &mut signature)
            .expect("signs");
        signature
    }

    /// Signs by RS256.
    fn token(&self, header: &str, claims: &str) -> String {
        let signed = format!("{}.{}", encode(header), encode(claims));
        let signature = self.rsa_signed(&RSA_PKCS1_SHA256, &signed);
        format!("{signed}.{}", encode(signature))
    }
}

fn ec_jwk(key: &EcdsaKeyPair, curve: &str, more: &str) -> String {
    let point = &key.public_key().as_ref()[1..];
    let (x, y) = point.split_at(point.len() / 2);
    format!(
        r#"{{"kty":"EC","crv":"{curve}","x":"{}","y":"{}"{more}}}"#,
        encode(x),
        encode(y)
    )
}

fn set(keys: &[&str]) -> Keys {
    Keys::parse(format!(r#"{{"keys":[{}]}}"#, keys.join(",")).as_bytes()).expect("a key set")
}

fn verify(token: &str, keys: &Keys) -> Result<(), &'static str> {
    let rule = Rule {
        issuer: "i".into(),
        audiences: Box::new(["shop".into()]),
        ..Rule::default()
    };
    let verified = Token::parse(token).and_then(|token| rule.verify(&token, Ok(keys), NOW));
    verified.map(drop).map_err(Refusal::text)
}

const FORM: &str =
    "Jwt is not in the form of Header.Payload.Signature with two dots and 3 sections";
const NO_KEY: &str = "Jwks doesn't have key to match kid or alg from Jwt";
const FAILS: &str = "Jwt verification fails";

#[test]
fn claims_are_checked_in_the_order_of_envoy() {
    let world = World::new();
    let keys = set(&[&world.rsa_jwk("")]);
    let header = r#"{"alg":"RS256"}"#;
    let with = |more: &str| format!(r#"{{"iss":"i","aud":"shop",{more}}}"#);
    for (claims, expected) in [
        (CLAIMS.to_owned(), Ok(())),
        (with(r#""exp":999970"#), Ok(())),
        (with(r#""exp":999940"#), Ok(())),
        (with(r#""exp":999939"#), Err("Jwt is expired")),
        (with(r#""exp":999910"#), Err("Jwt is expired")),
        (with(r#""exp":0"#), Err("Jwt is expired")),
        (with(r#""exp":1000000.9"#), Ok(())),
        (with(r#""nbf":1000030"#), Ok(())),
        (with(r#""nbf":1000060"#), Ok(())),
        (with(r#""nbf":1000061"#), Err("Jwt not yet valid")),
        (with(r#""iat":2000000"#), Ok(())),
        (
            with(r#""iat":"now""#),
            Err("Jwt payload [iat] field is not an integer"),
        ),
        (
            with(r#""exp":1e300"#),
            Err("Jwt payload [exp] field is not a positive 64 bit integer"),
        ),
        (
            with(r#""exp":-1"#),
            Err("Jwt payload [exp] field is not a positive 64 bit integer"),
        ),
        (
            with(r#""exp":9223372036854775808"#),
            Err("Jwt payload [exp] field is not a positive 64 bit integer"),
        ),
        (
            with(r#""exp":"9""#),
            Err("Jwt payload [exp] field is not an integer"),
        ),
        (
            with(r#""exp":null"#),
            Err("Jwt payload [exp] field is not an integer"),
        ),
        (
            with(r#""sub":1"#),
            Err("Jwt payload [sub] field is not a string"),
        ),
        (
            with(r#""jti":1"#),
            Err("Jwt payload [jti] field is not a string"),
        ),
        (
            r#"{"aud":"shop"}"#.into(),
            Err("Jwt issuer is not configured"),
        ),
        (
            r#"{"iss":"I","aud":"shop"}"#.into(),
            Err("Jwt issuer is not configured"),
        ),
        (
            r#"{"iss":"i/","aud":"shop"}"#.into(),
            Err("Jwt issuer is not configured"),
        ),
        (
            r#"{"iss":"i\u0000","aud":"shop"}"#.into(),
            Err("Jwt issuer is not configured"),
        ),
        (
            r#"{"iss":["i"],"aud":"shop"}"#.into(),
            Err("Jwt payload [iss] field is not a string"),
        ),
        (
            r#"{"iss":"i"}"#.into(),
            Err("Audiences in Jwt are not allowed"),
        ),
        (
            r#"{"iss":"i","aud":"other"}"#.into(),
            Err("Audiences in Jwt are not allowed"),
        ),
        (
            r#"{"iss":"i","aud":"Shop"}"#.into(),
            Err("Audiences in Jwt are not allowed"),
        ),
        (
            r#"{"iss":"i","aud":[]}"#.into(),
            Err("Audiences in Jwt are not allowed"),
        ),
        (
            r#"{"iss":"i","aud":["other","https://shop/"]}"#.into(),
            Ok(()),
        ),
        (
            r#"{"iss":"i","aud":"shop//"}"#.into(),
            Err("Audiences in Jwt are not allowed"),
        ),
        (
            r#"{"iss":"i","aud":5}"#.into(),
            Err("Jwt payload [aud] field is not a string or string list"),
        ),
        (
            with(r#""exp":1,"exp":1000100"#),
            Err("Jwt payload is an invalid JSON"),
        ),
        (
            with(r#""role":{"a":1,"a":2}"#),
            Err("Jwt payload is an invalid JSON"),
        ),
        (
            r#"{"iss":"i","aud":"shop",}"#.into(),
            Err("Jwt payload is an invalid JSON"),
        ),
        (
            r#"[{"iss":"i"}]"#.into(),
            Err("Jwt payload is an invalid JSON"),
        ),
        (
            with(&format!(
                r#""a":{}{}"#,
                "[".repeat(10_000 / 4),
                "]".repeat(10_000 / 4)
            )),
            Err("Jwt payload is an invalid JSON"),
        ),
    ] {
        assert_eq!(
            verify(&world.token(header, &claims), &keys),
            expected,
            "{claims:.80}"
        );
    }
}

#[test]
fn headers_are_checked() {
    let world = World::new();
    let keys = set(&[&world.rsa_jwk(r#","kid":"k1""#)]);
    let long = format!(r#"{{"alg":"RS256","kid":"{}"}}"#, "k".repeat(8192));
    const UNKNOWN: &str = "Jwt header [alg] is not supported";
    const REQUIRED: &str = "Jwt header [alg] field is required and must be a string";
    for (header, expected) in [
        (r#"{"alg":"RS256","kid":"k1"}"#, Ok(())),
        (r#"{"alg":"RS256","kid":""}"#, Ok(())),
        (r#"{"alg":"RS256"}"#, Ok(())),
        (r#"{"alg":"RS256","kid":"other"}"#, Err(NO_KEY)),
        (r#"{"alg":"RS256","kid":"K1"}"#, Err(NO_KEY)),
        (r#"{"alg":"RS256","kid":"../../x"}"#, Err(NO_KEY)),
        (r#"{"alg":"RS256","kid":"k1' OR"}"#, Err(NO_KEY)),
        (&long, Err(NO_KEY)),
        (
            r#"{"alg":"RS256","kid":1}"#,
            Err("Jwt header [kid] field is not a string"),
        ),
        (r#"{"alg":"none"}"#, Err(UNKNOWN)),
        (r#"{"alg":"None"}"#, Err(UNKNOWN)),
        (r#"{"alg":"nOnE"}"#, Err(UNKNOWN)),
        (r#"{"alg":"HS256"}"#, Err(UNKNOWN)),
        (r#"{"alg":"rs256"}"#, Err(UNKNOWN)),
        (r#"{}"#, Err(REQUIRED)),
        (r#"{"alg":5}"#, Err(REQUIRED)),
        (r#"{"alg":"ES256"}"#, Err(NO_KEY)),
        (r#"{"alg":"PS256"}"#, Err(FAILS)),
        (
            r#"{"alg":"RS256","crit":["b64"],"b64":false}"#,
            Err("Jwt header [crit] is not supported"),
        ),
        (
            r#"{"alg":"RS256","b64":false}"#,
            Err("Jwt header [crit] is not supported"),
        ),
        (
            r#"{"alg":"RS256","alg":"none"}"#,
            Err("Jwt header is an invalid JSON"),
        ),
    ] {
        assert_eq!(
            verify(&world.token(header, CLAIMS), &keys),
            expected,
            "{header:.80}"
        );
    }
    let attacker = World::new();
    for claim in ["jwk", "jku", "x5u", "x5c"] {
        let header = format!(r#"{{"alg":"RS256","{claim}":{}}}"#, attacker.rsa_jwk(""));
        assert_eq!(
            verify(&attacker.token(&header, CLAIMS), &keys),
            Err(FAILS),
            "{claim}"
        );
    }
}

#[test]
fn parts_are_strict_base64() {
    let world = World::new();
    let keys = set(&[&world.rsa_jwk("")]);
    let good = world.token(r#"{"alg":"RS256"}"#, CLAIMS);
    assert_eq!(verify(&good, &keys), Ok(()));
    let [header, payload, signature] = good.split('.').collect::<Vec<_>>()[..] else {
        panic!("three parts");
    };
    for (token, expected) in [
        (format!("{header}..{payload}.{signature}"), FORM),
        (format!(".{header}.{payload}.{signature}"), FORM),
        (format!("{header}.{payload}.{signature}."), FORM),
        (format!("{header}.{payload}."), FORM),
        (format!("{header}.{payload}"), FORM),
        (String::new(), FORM),
        (
            format!("{header}=.{payload}.{signature}"),
            "Jwt header is an invalid Base64url encoded",
        ),
        (
            format!("{header}.{payload}==.{signature}"),
            "Jwt payload is an invalid Base64url encoded",
        ),
        (
            format!("{header}.{payload}.{signature}=="),
            "Jwt signature is an invalid Base64url encoded",
        ),
        (
            format!("{header}.{payload}.+{}", &signature[1..]),
            "Jwt signature is an invalid Base64url encoded",
        ),
        (
            format!("{header}.{payload}./{}", &signature[1..]),
            "Jwt signature is an invalid Base64url encoded",
        ),
        (
            format!("{header}.{payload}.{signature}\n"),
            "Jwt signature is an invalid Base64url encoded",
        ),
        (
            format!("{good}{}", "A".repeat(TOKEN_BYTES_MAX)),
            "Jwt is too long",
        ),
    ] {
        assert_eq!(verify(&token, &keys), Err(expected), "{token:.80}");
    }
    let filled = |bytes: usize| {
        let claims = format!(
            r#"{{"iss":"i","aud":"shop","fill":"{}"}}"#,
            "x".repeat(bytes)
        );
        verify(&world.token(r#"{"alg":"RS256"}"#, &claims), &keys)
    };
    assert_eq!(filled(11_900), Ok(()));
    assert_eq!(filled(12_300), Err("Jwt is too long"));
}

#[test]
fn every_algorithm_verifies_with_its_type_of_key_only() {
    let world = World::new();
    let rsa = [
        ("RS256", &RSA_PKCS1_SHA256 as &'static dyn RsaEncoding),
        ("RS384", &RSA_PKCS1_SHA384),
        ("RS512", &RSA_PKCS1_SHA512),
        ("PS256", &RSA_PSS_SHA256),
        ("PS384", &RSA_PSS_SHA384),
        ("PS512", &RSA_PSS_SHA512),
    ];
    let plain = set(&[&world.rsa_jwk("")]);
    let only = set(&[&world.rsa_jwk(r#","alg":"RS256""#)]);
    let ec_only = set(&[&ec_jwk(&world.ec, "P-256", "")]);
    for (name, encoding) in rsa {
        let signed = format!(
            "{}.{}",
            encode(format!(r#"{{"alg":"{name}"}}"#)),
            encode(CLAIMS)
        );
        let token = format!("{signed}.{}", encode(world.rsa_signed(encoding, &signed)));
        assert_eq!(verify(&token, &plain), Ok(()), "{name}");
        assert_eq!(
            verify(&token, &only),
            if name == "RS256" { Ok(()) } else { Err(NO_KEY) },
            "{name}"
        );
        assert_eq!(verify(&token, &ec_only), Err(NO_KEY), "{name}");
    }
    let curves: [(&str, &str, &'static EcdsaSigningAlgorithm); 3] = [
        ("ES256", "P-256", &ECDSA_P256_SHA256_FIXED_SIGNING),
        ("ES384", "P-384", &ECDSA_P384_SHA384_FIXED_SIGNING),
        ("ES512", "P-521", &ECDSA_P521_SHA512_FIXED_SIGNING),
    ];
    for (name, curve, algorithm) in curves {
        let key = EcdsaKeyPair::generate(algorithm).expect("generates");
        let signed = format!(
            "{}.{}",
            encode(format!(r#"{{"alg":"{name}"}}"#)),
            encode(CLAIMS)
        );
        let signature = key
            .sign(&SystemRandom::new(), signed.as_bytes())
            .expect("signs");
        let token = |signature: &[u8]| format!("{signed}.{}", encode(signature));
        let keys = set(&[&ec_jwk(&key, curve, "")]);
        let bytes = signature.as_ref();
        assert_eq!(verify(&token(bytes), &keys), Ok(()), "{name}");
        assert_eq!(
            verify(&token(&vec![0; bytes.len()]), &keys),
            Err(FAILS),
            "{name}: zeros"
        );
        assert_eq!(
            verify(&token(&vec![0xff; bytes.len()]), &keys),
            Err(FAILS),
            "{name}: r >= n"
        );
        assert_eq!(
            verify(&token(&bytes[1..]), &keys),
            Err(FAILS),
            "{name}: short"
        );
        assert_eq!(
            verify(&token(bytes), &plain),
            Err(NO_KEY),
            "{name} and a key of RSA"
        );
    }
    let der = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).expect("generates");
    let signed = format!("{}.{}", encode(r#"{"alg":"ES256"}"#), encode(CLAIMS));
    let signature = der
        .sign(&SystemRandom::new(), signed.as_bytes())
        .expect("signs");
    let token = format!("{signed}.{}", encode(signature));
    assert_eq!(
        verify(&token, &set(&[&ec_jwk(&der, "P-256", "")])),
        Err(FAILS),
        "DER"
    );

    let ed_jwk = |x: &[u8]| format!(r#"{{"kty":"OKP","crv":"Ed25519","x":"{}"}}"#, encode(x));
    let signed = format!("{}.{}", encode(r#"{"alg":"EdDSA"}"#), encode(CLAIMS));
    let signature = world.ed.sign(signed.as_bytes());
    let keys = set(&[&ed_jwk(world.ed.public_key().as_ref())]);
    assert_eq!(
        verify(&format!("{signed}.{}", encode(signature)), &keys),
        Ok(())
    );
    assert_eq!(
        verify(
            &format!("{signed}.{}", encode(&signature.as_ref()[1..])),
            &keys
        ),
        Err(FAILS)
    );
    let mut identity = [0; 32];
    identity[0] = 1;
    for sign in [0, 0x80] {
        identity[31] = sign;
        let text = format!(r#"{{"keys":[{}]}}"#, ed_jwk(&identity));
        assert!(Keys::parse(text.as_bytes()).is_err(), "small order");
    }
}

#[test]
fn shared_secrets_are_no_keys() {
    let world = World::new();
    let keys = set(&[&world.rsa_jwk(""), r#"{"kty":"oct","k":"c2VjcmV0"}"#]);
    assert_eq!(keys.remarks.len(), 1, "{:?}", keys.remarks);
    let der: PublicKeyX509Der<'_> = world.rsa.public_key().as_der().expect("encodes");
    let pem = format!(
        "-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n",
        BASE64_STANDARD.encode(der.as_ref())
    );
    let modulus = world
        .rsa
        .public_key()
        .modulus()
        .big_endian_without_leading_zero()
        .to_vec();
    for secret in [der.as_ref(), pem.as_bytes(), &modulus, b"secret"] {
        let signed = format!("{}.{}", encode(r#"{"alg":"HS256"}"#), encode(CLAIMS));
        let signature = hmac::sign(
            &hmac::Key::new(hmac::HMAC_SHA256, secret),
            signed.as_bytes(),
        );
        let token = format!("{signed}.{}", encode(signature));
        assert_eq!(
            verify(&token, &keys),
            Err("Jwt header [alg] is not supported")
        );
    }
}

#[test]
fn key_sets_are_read_without_their_bad_keys() {
    let world = World::new();
    let good = world.rsa_jwk(r#","kid":"k1","use":"sig","key_ops":["verify"],"x5c":["x"]"#);
    for bad in [
        world.rsa_jwk(r#","use":"enc""#),
        world.rsa_jwk(r#","key_ops":["encrypt"]"#),
        world.rsa_jwk(r#","alg":"RSA-OAEP""#),
        world.rsa_jwk(r#","alg":"ES256""#),
        world.rsa_jwk(r#","kid":5"#),
        r#"{"kty":"RSA","n":"AQAB","e":"AQAB"}"#.into(),
        world.rsa_jwk("").replace(r#""e":"AQAB""#, r#""e":"AQ""#),
        world.rsa_jwk("").replace(r#""e":"AQAB""#, r#""e":"Ag""#),
        world.rsa_jwk("").replace(r#""e":"AQAB""#, r#""e":"!""#),
        ec_jwk(&world.ec, "P-384", ""),
        ec_jwk(&world.ec, "secp256k1", ""),
        format!(
            r#"{{"kty":"EC","crv":"P-256","x":"{0}","y":"{0}"}}"#,
            encode([7; 32])
        ),
        r#"{"kty":"OKP","crv":"X25519","x":"AA"}"#.into(),
        r#"{"kty":"OKP","crv":"Ed25519","x":"AA"}"#.into(),
        r#"{"kty":"AKP"}"#.into(),
        "5".into(),
    ] {
        let keys = set(&[&good, &bad]);
        assert_eq!(
            (
                keys.remarks.len(),
                verify(&world.token(r#"{"alg":"RS256","kid":"k1"}"#, CLAIMS), &keys)
            ),
            (1, Ok(())),
            "{bad}"
        );
        let alone = Keys::parse(format!(r#"{{"keys":[{bad}]}}"#).as_bytes());
        assert!(alone.is_err(), "{bad}");
    }
    let private = set(&[
        &world.rsa_jwk(r#","kid":"k","d":"AQAB""#),
        &world.rsa_jwk(r#","kid":"k""#),
    ]);
    assert_eq!(
        private.remarks,
        [
            "key `k` is private: remove its private parts",
            "key `k` is there more than once"
        ]
    );
    let many = vec!["5"; 101].join(",");
    for text in [
        "",
        "{}",
        "[]",
        r#"{"keys":{}}"#,
        r#"{"keys":[]}"#,
        &format!(r#"{{"keys":[{many}]}}"#),
    ] {
        assert!(Keys::parse(text.as_bytes()).is_err(), "{text:.60}");
    }
    assert!(Keys::parse(&vec![b' '; KEYS_BYTES_MAX + 1]).is_err());
}

#[test]
fn certificates_by_kid_are_keys() {
    for algorithm in [&rcgen::PKCS_ECDSA_P256_SHA256, &rcgen::PKCS_ED25519] {
        let pair = rcgen::KeyPair::generate_for(algorithm).expect("generates");
        let pem = rcgen::CertificateParams::default()
            .self_signed(&pair)
            .expect("signs")
            .pem();
        let text = format!(
            r#"{{"k1":"{}","k2":"no certificate"}}"#,
            pem.replace('\n', "\\n").replace('\r', "")
        );
        let keys = Keys::parse(text.as_bytes()).expect("a key set");
        assert_eq!(
            keys.remarks,
            ["key `k2` is not used: not a certificate in PEM"]
        );
        let (name, signature): (_, Sign) = match *algorithm == rcgen::PKCS_ED25519 {
            true => {
                let key = Ed25519KeyPair::from_pkcs8(&pair.serialize_der()).expect("a key");
                (
                    "EdDSA",
                    Box::new(move |signed| key.sign(signed).as_ref().to_vec()),
                )
            }
            false => {
                let key = EcdsaKeyPair::from_pkcs8(
                    &ECDSA_P256_SHA256_FIXED_SIGNING,
                    &pair.serialize_der(),
                );
                let key = key.expect("a key");
                (
                    "ES256",
                    Box::new(move |signed| {
                        key.sign(&SystemRandom::new(), signed)
                            .expect("signs")
                            .as_ref()
                            .to_vec()
                    }),
                )
            }
        };
        for (kid, expected) in [("k1", Ok(())), ("k2", Err(NO_KEY))] {
            let header = format!(r#"{{"alg":"{name}","kid":"{kid}"}}"#);
            let signed = format!("{}.{}", encode(header), encode(CLAIMS));
            let token = format!("{signed}.{}", encode(signature(signed.as_bytes())));
            assert_eq!(verify(&token, &keys), expected, "{name} {kid}");
        }
    }
}

#[test]
fn missing_keys_are_named_after_claims_are_checked() {
    let world = World::new();
    let rule = Rule {
        issuer: "i".into(),
        ..Rule::default()
    };
    let verify = |claims: &str| {
        let token = world.token(r#"{"alg":"RS256"}"#, claims);
        let token = Token::parse(&token).expect("a token");
        rule.verify(&token, Err(Refusal::Fetch), NOW).map(drop)
    };
    assert_eq!(verify(CLAIMS), Err(Refusal::Fetch));
    assert_eq!(verify(r#"{"iss":"i","exp":1}"#), Err(Refusal::Expired));
}
