//! Users of the test control plane, and their credentials.
//!
//! Out: the files that the API server and the controller manager read (tokens, the key of service
//! account tokens), and a kubeconfig for each user. Keys are generated here, so that no machine
//! needs openssl.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::json;

/// The test itself, which may do everything.
pub const ADMIN: &str = "admin";
/// The daemon under test: all requests of this user are Moorline's.
pub const MOORLINE: &str = "moorline";
/// A user without any rights except those that a test grants.
pub const TENANT: &str = "tenant";
/// The controllers, so that no other user has their requests.
pub const CONTROLLERS: &str = "system:kube-controller-manager";

/// All users, with their groups. A user without a group gets rights by RBAC.
const USERS: [(&str, &str); 4] =
    [(ADMIN, "system:masters"), (MOORLINE, ""), (TENANT, ""), (CONTROLLERS, "system:masters")];

/// DER header of a public key on the curve P-256, before the point.
const P256_PUBLIC_KEY_HEADER: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86,
    0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// Credential files of one control plane, and each user's token.
pub struct Credentials {
    /// Users and tokens in the format of `--token-auth-file`.
    pub token_file: PathBuf,
    /// Key that signs service account tokens.
    pub private_key: PathBuf,
    /// Key that verifies them.
    pub public_key: PathBuf,
    tokens: BTreeMap<&'static str, String>,
}

impl Credentials {
    /// Generates tokens and a key, and writes them into `directory`.
    pub fn write_into(directory: &Path) -> Result<Self, String> {
        let random = SystemRandom::new();
        let mut tokens = BTreeMap::new();
        let mut lines = String::new();
        for (user, groups) in USERS {
            let token = random_token(&random)?;
            let _ = writeln!(lines, "{token},{user},{user},\"{groups}\"");
            tokens.insert(user, token);
        }
        let write = |name: &str, text: &str| {
            let path = directory.join(name);
            std::fs::write(&path, text)
                .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
            Ok::<_, String>(path)
        };
        let (private_key, public_key) = service_account_key(&random)?;
        Ok(Self {
            token_file: write("tokens.csv", &lines)?,
            private_key: write("service-account.key", &private_key)?,
            public_key: write("service-account.pub", &public_key)?,
            tokens,
        })
    }

    /// Returns the user of a token.
    pub fn user_of(&self, token: &str) -> Option<&'static str> {
        self.tokens.iter().find(|(_, known)| *known == token).map(|(user, _)| *user)
    }

    /// Returns a kubeconfig of a user, as JSON, which is valid YAML. `authority` is PEM, and empty
    /// for a server without TLS.
    pub fn kubeconfig(&self, user: &str, server: &str, authority: &str) -> String {
        let token = self.tokens.get(user).unwrap_or_else(|| panic!("the control plane has no user {user}"));
        let mut cluster = json!({"server": server});
        if !authority.is_empty() {
            cluster["certificate-authority-data"] = STANDARD.encode(authority).into();
        }
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": user, "user": {"token": token}}],
            "contexts": [{"name": user, "context": {"cluster": "test", "user": user}}],
            "current-context": user,
        })
        .to_string()
    }
}

fn random_token(random: &SystemRandom) -> Result<String, String> {
    let mut bytes = [0; 16];
    random.fill(&mut bytes).map_err(|_| "no random numbers for a token".to_owned())?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Generates a key pair as PEM. The API server accepts a private key in this form only for signing.
fn service_account_key(random: &SystemRandom) -> Result<(String, String), String> {
    let failed = |what: &str| format!("cannot make the service account key: {what}");
    let private = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, random)
        .map_err(|_| failed("no random numbers"))?;
    let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, private.as_ref(), random)
        .map_err(|error| failed(&error.to_string()))?;
    let public = [&P256_PUBLIC_KEY_HEADER, pair.public_key().as_ref()].concat();
    Ok((pem("PRIVATE KEY", private.as_ref()), pem("PUBLIC KEY", &public)))
}

fn pem(label: &str, der: &[u8]) -> String {
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", STANDARD.encode(der))
}
