//! Private keys of ssh of the person who runs a command, for recipients of age.
//!
//! In: the paths where the program `sops` looks for such keys. Out: a holder of keys. A key is read
//! once a file is encrypted for an ssh key, and then kept.

use std::cell::OnceCell;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use moorline_sops::{AgeIdentities, KeyHolder, KeyRefusal, KeySource, SecretBytes};

/// Most bytes of a file with a key.
const MAX_KEY_BYTES: u64 = 64 * 1024;
/// Begin of every recipient that is a key of ssh.
const ANY_KIND: &str = "ssh-";
/// Files below the home folder, each with the begin of the recipients that it is for.
const DEFAULTS: [(&str, &str); 2] = [("ssh-ed25519 ", ".ssh/id_ed25519"), ("ssh-rsa ", ".ssh/id_rsa")];
/// Reason if there is no file.
const NONE: &str =
    "there is no ssh key; set SOPS_AGE_SSH_PRIVATE_KEY_FILE, or have ~/.ssh/id_ed25519 or ~/.ssh/id_rsa";

/// Private keys of ssh.
pub(super) struct OwnSshKeys {
    files: Vec<KeyFile>,
}

struct KeyFile {
    /// Begin of the recipients that it is for.
    recipients: &'static str,
    path: PathBuf,
    read: OnceCell<Result<AgeIdentities, String>>,
}

/// True if a recipient of age is a key of ssh.
pub(super) fn is_of_ssh(recipient: &str) -> bool {
    recipient.starts_with(ANY_KIND)
}

impl OwnSshKeys {
    /// Chooses the named file, or else those of the home folder that exist.
    pub(super) fn new(named: Option<PathBuf>, home: Option<PathBuf>) -> Self {
        let file = |recipients, path| KeyFile { recipients, path, read: OnceCell::new() };
        let files = match (named, home) {
            (Some(path), _) => vec![file(ANY_KIND, path)],
            (None, Some(home)) => {
                let all = DEFAULTS.map(|(recipients, path)| file(recipients, home.join(path)));
                all.into_iter().filter(|file| file.path.exists()).collect()
            }
            (None, None) => Vec::new(),
        };
        Self { files }
    }
}

impl KeyFile {
    fn identities(&self) -> Result<&AgeIdentities, KeyRefusal> {
        let read = self.read.get_or_init(|| {
            read_key(&self.path).map_err(|problem| format!("{}: {problem}", self.path.display()))
        });
        read.as_ref().map_err(|problem| KeyRefusal(problem.clone()))
    }
}

impl KeyHolder for OwnSshKeys {
    fn decrypt(&self, source: &KeySource) -> Result<Option<SecretBytes>, KeyRefusal> {
        let KeySource::Age { recipient, .. } = source else { return Ok(None) };
        if !is_of_ssh(recipient) {
            return Ok(None);
        }
        match self.files.iter().find(|file| recipient.starts_with(file.recipients)) {
            Some(file) => file.identities()?.decrypt(source),
            None => Err(KeyRefusal(NONE.to_owned())),
        }
    }
}

/// Reads a key; the problem quotes nothing of the file.
fn read_key(path: &Path) -> Result<AgeIdentities, String> {
    let mut bytes = Vec::with_capacity(MAX_KEY_BYTES as usize + 1);
    let read = File::open(path).and_then(|file| file.take(MAX_KEY_BYTES + 1).read_to_end(&mut bytes));
    let bytes = SecretBytes::new(bytes);
    read.map_err(|error| format!("it cannot be read: {error}"))?;
    if bytes.as_bytes().len() as u64 > MAX_KEY_BYTES {
        return Err("it is too large for a key".to_owned());
    }
    let text = std::str::from_utf8(bytes.as_bytes()).map_err(|_| "it is no text".to_owned())?;
    AgeIdentities::read(text).map_err(|error| error.to_string())
}
