//! The key that signs the tokens of service accounts.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use ring::{
    rand::SystemRandom,
    signature::{
        ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair,
        UnparsedPublicKey,
    },
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// A subject public key info for a point on P-256, up to the point itself.
const PUBLIC_KEY_HEADER: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// Why a key cannot be used or a token cannot be signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// No key could be made.
    #[error("cannot generate a signing key")]
    Generate,
    /// The key is not a P-256 key in PKCS #8 form.
    #[error("not a P-256 private key in PKCS #8 form")]
    Parse,
    /// The signature failed.
    #[error("cannot sign")]
    Sign,
}

/// An ES256 key: signs and verifies tokens.
pub struct SigningKey {
    pair: EcdsaKeyPair,
    pkcs8: Vec<u8>,
    id: String,
    // Needed by the signature scheme itself. It cannot be seeded, so that a token's signature,
    // and nothing else, differs between two runs of one simulation.
    rng: SystemRandom,
}

impl SigningKey {
    /// A new key.
    pub fn generate() -> Result<Self, KeyError> {
        let document =
            EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new())
                .map_err(|_| KeyError::Generate)?;
        Self::from_pkcs8(document.as_ref())
    }

    /// Reads a key in PKCS #8 DER.
    pub fn from_pkcs8(der: &[u8]) -> Result<Self, KeyError> {
        let rng = SystemRandom::new();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der, &rng)
            .map_err(|_| KeyError::Parse)?;
        let mut info = Sha256::new();
        info.update(PUBLIC_KEY_HEADER);
        info.update(pair.public_key().as_ref());
        let id = BASE64.encode(info.finalize());
        Ok(Self { pair, pkcs8: der.to_vec(), id, rng })
    }

    /// The key in PKCS #8 DER, to be kept for the next start.
    pub fn pkcs8(&self) -> &[u8] {
        &self.pkcs8
    }

    /// The name of the key in tokens.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The signed compact form of some claims.
    pub(super) fn sign(&self, claims: &Value) -> Result<String, KeyError> {
        let header = json!({"alg": "ES256", "kid": self.id});
        let mut token =
            format!("{}.{}", BASE64.encode(header.to_string()), BASE64.encode(claims.to_string()));
        let signature = self.pair.sign(&self.rng, token.as_bytes()).map_err(|_| KeyError::Sign)?;
        token.push('.');
        BASE64.encode_string(signature.as_ref(), &mut token);
        Ok(token)
    }

    /// Whether `signature` is this key's for `message`.
    pub(super) fn verify(&self, message: &str, signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.pair.public_key().as_ref())
            .verify(message.as_bytes(), signature)
            .is_ok()
    }

    /// The public key, as `/openid/v1/jwks` shows it.
    pub fn jwks(&self) -> Value {
        // An uncompressed point: a marker, x, y.
        let point = self.pair.public_key().as_ref();
        let coordinate = |range| BASE64.encode(point.get(range).unwrap_or_default());
        json!({"keys": [{
            "use": "sig",
            "kty": "EC",
            "kid": self.id,
            "crv": "P-256",
            "alg": "ES256",
            "x": coordinate(1..33),
            "y": coordinate(33..65),
        }]})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_survive_a_round_trip() {
        let key = SigningKey::generate().unwrap();
        let token = key.sign(&json!({"a": 1})).unwrap();
        let again = SigningKey::from_pkcs8(key.pkcs8()).unwrap();
        assert_eq!(again.id(), key.id());
        let (message, signature) = token.rsplit_once('.').unwrap();
        let signature = BASE64.decode(signature).unwrap();
        assert!(again.verify(message, &signature));
        assert!(!again.verify("other", &signature));
        assert_eq!(key.jwks()["keys"][0]["kid"], key.id());
        assert_eq!(SigningKey::from_pkcs8(b"x").err(), Some(KeyError::Parse));
    }
}
