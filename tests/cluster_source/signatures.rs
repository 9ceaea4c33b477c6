//! Trusted signatures: commits and tags that real tools signed (`tests/signatures/record.sh`), and what somebody could
//! do to them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use moorline::source::{
    Address, Error, Reference, Repositories, SignaturePolicy, SignatureProblem, TrustedKeys,
};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/signatures");

fn recorded(path: &str) -> Vec<u8> {
    std::fs::read(Path::new(FOLDER).join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The keys with these names.
fn keys(names: &[&str]) -> Arc<TrustedKeys> {
    Arc::new(
        TrustedKeys::from_secret(names.iter().map(|name| (*name, recorded(&format!("keys/{name}")))))
            .unwrap(),
    )
}

/// A repository of recorded objects.
struct Ground {
    _root: tempfile::TempDir,
    folder: PathBuf,
    repositories: Repositories,
}

impl Ground {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("repository");
        let repositories =
            Repositories::new(&root.path().join("data"), None, moorline::source::HostPolicy::allow_all())
                .unwrap();
        let ground = Self { _root: root, folder, repositories };
        std::fs::create_dir(&ground.folder).unwrap();
        ground.git(&["-c", "init.defaultBranch=main", "init", "-q"], b"");
        ground.object("tree", b"");
        ground
    }

    fn git(&self, arguments: &[&str], input: &[u8]) -> String {
        use std::io::Write as _;
        let mut git = Command::new("git")
            .args(arguments)
            .current_dir(&self.folder)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        git.stdin.take().unwrap().write_all(input).unwrap();
        let output = git.wait_with_output().unwrap();
        assert!(output.status.success(), "git {arguments:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Puts an object into the repository, as its bytes are.
    fn object(&self, kind: &str, bytes: &[u8]) -> String {
        self.git(&["hash-object", "-t", kind, "-w", "--stdin", "--literally"], bytes)
    }

    fn refer(&self, name: &str, id: &str) {
        self.git(&["update-ref", name, id], b"");
    }

    /// Checks if the revision of a reference is trusted; the reason and the sentence where it is not.
    async fn check(
        &self,
        reference: Reference,
        signed: SignaturePolicy,
        keys: &Arc<TrustedKeys>,
    ) -> Result<(), (&'static str, String)> {
        let address = Address::local_or_remote(&self.folder.display().to_string()).unwrap();
        let repository = self.repositories.repository(&address, "", &Default::default()).unwrap();
        let by = moorline_test_support::git_bench::soon();
        let revision = repository.resolve(&reference, by).await.unwrap();
        repository.verify(&revision, signed, keys, by).await.map_err(|error| {
            assert!(matches!(error, Error::Unsigned(_)) && error.needs_new_input(), "{error:?}");
            (error.reason(), error.to_string())
        })
    }

    async fn commit(&self, bytes: &[u8], keys: &Arc<TrustedKeys>) -> Result<(), (&'static str, String)> {
        self.refer("refs/heads/main", &self.object("commit", bytes));
        self.check(Reference::branch("main").unwrap(), SignaturePolicy::Commit, keys).await
    }

    async fn tag(
        &self,
        name: &str,
        signed: SignaturePolicy,
        keys: &Arc<TrustedKeys>,
    ) -> Result<(), (&'static str, String)> {
        self.check(Reference::tag(name).unwrap(), signed, keys).await
    }
}

#[tokio::test]
async fn what_a_trusted_key_signed_is_taken_up() {
    let ground = Ground::new();
    for (commit, key) in [
        ("ssh-ann", "ann.pub"),
        ("ssh-bob", "bob.pub"),
        ("ssh-rsa", "rsa.pub"),
        ("openpgp-gina", "gina.asc"),
        ("openpgp-hugo", "hugo.asc"),
    ] {
        let bytes = recorded(&format!("objects/{commit}.commit"));
        assert_eq!(ground.commit(&bytes, &keys(&[key])).await, Ok(()), "{commit}");
        let all = keys(&["ann.pub", "bob.pub", "rsa.pub", "gina.asc", "hugo.asc"]);
        assert_eq!(ground.commit(&bytes, &all).await, Ok(()), "{commit} among others");
        let (reason, told) = ground.commit(&bytes, &keys(&["eve.pub", "gone.asc"])).await.unwrap_err();
        assert_eq!(reason, "SignerUnknown", "{told}");
        assert!(told.contains("is not among the keys of the Secret"), "{told}");
    }
}

#[tokio::test]
async fn what_nobody_signed_or_somebody_changed_is_refused() {
    let ground = Ground::new();
    let all = keys(&["ann.pub", "bob.pub", "rsa.pub", "gina.asc", "hugo.asc", "late.asc", "gone.asc"]);
    let refused = async |bytes: &[u8]| ground.commit(bytes, &all).await.unwrap_err();
    let (reason, told) = refused(&recorded("objects/unsigned.commit")).await;
    assert_eq!(reason, "SignatureMissing");
    assert!(told.ends_with(" is not signed; the last applied revision stays"), "{told}");
    for name in ["ssh-ann", "ssh-bob", "ssh-rsa", "openpgp-gina", "openpgp-hugo"] {
        let text = String::from_utf8(recorded(&format!("objects/{name}.commit"))).unwrap();
        let (reason, told) = refused(text.replace("signed: ", "signed; ").as_bytes()).await;
        assert_eq!(reason, "SignatureInvalid", "{name}: {told}");
        assert!(told.contains("does not fit its signature by "), "{told}");
        // Every byte of the signature counts.
        let cut = text.replacen("gpgsig -----BEGIN", "gpgsig -----BEGUN", 1);
        assert_eq!(refused(cut.as_bytes()).await.0, "SignatureInvalid", "{name}");
    }
    let (reason, told) = refused(&recorded("objects/ssh-file.commit")).await;
    assert_eq!(reason, "SignatureInvalid");
    assert!(told.contains("was not made for Git"), "{told}");
    for (name, why) in
        [("openpgp-late", "a key that has expired"), ("openpgp-gone", "a key that was revoked")]
    {
        let (reason, told) = refused(&recorded(&format!("objects/{name}.commit"))).await;
        assert_eq!(reason, "SignerUnknown", "{told}");
        assert!(told.contains(why), "{told}");
    }
}

#[tokio::test]
async fn a_tag_counts_under_its_own_name_and_for_its_own_commit() {
    let ground = Ground::new();
    let trusted = keys(&["ann.pub", "gina.asc"]);
    let commit = ground.object("commit", &recorded("objects/unsigned.commit"));
    let tags = ["v1", "v2"].map(|name| ground.object("tag", &recorded(&format!("objects/{name}.tag"))));
    for (name, tag) in ["v1", "v2"].iter().zip(&tags) {
        ground.refer(&format!("refs/tags/{name}"), tag);
        assert_eq!(ground.tag(name, SignaturePolicy::Tag, &trusted).await, Ok(()), "{name}");
        let (reason, told) = ground.tag(name, SignaturePolicy::Both, &trusted).await.unwrap_err();
        assert_eq!(reason, "SignatureMissing", "its commit is not signed: {told}");
        assert!(told.starts_with(&format!("commit {commit}")), "{told}");
        assert_eq!(
            ground.tag(name, SignaturePolicy::Tag, &keys(&["eve.pub"])).await.unwrap_err().0,
            "SignerUnknown"
        );
    }
    // An old tag that stands for a new one.
    ground.refer("refs/tags/v3", &tags[0]);
    let (reason, told) = ground.tag("v3", SignaturePolicy::Tag, &trusted).await.unwrap_err();
    assert_eq!(reason, "SignatureInvalid");
    assert!(told.contains("it has another name"), "{told}");
    ground.refer("refs/tags/light", &commit);
    let (reason, told) = ground.tag("light", SignaturePolicy::Tag, &trusted).await.unwrap_err();
    assert_eq!(reason, "SignatureMissing");
    assert!(told.contains("not an annotated tag"), "{told}");
    let changed = String::from_utf8(recorded("objects/v1.tag")).unwrap().replace("release v1", "release v9");
    ground.refer("refs/tags/v1", &ground.object("tag", changed.as_bytes()));
    assert_eq!(ground.tag("v1", SignaturePolicy::Tag, &trusted).await.unwrap_err().0, "SignatureInvalid");
}

#[test]
fn a_secret_holds_public_keys_and_nothing_else() {
    let read = |value: &str| {
        TrustedKeys::from_secret([("team", value)]).map(drop).map_err(|error| error.to_string())
    };
    let ann = String::from_utf8(recorded("keys/ann.pub")).unwrap();
    let gina = String::from_utf8(recorded("keys/gina.asc")).unwrap();
    assert_eq!(read(&ann), Ok(()));
    assert_eq!(read(&format!("# the team\n\n{ann}{ann}")), Ok(()));
    assert_eq!(read(&format!("ann@example.com namespaces=\"git\" {ann}")), Ok(()));
    assert_eq!(read(&format!("{gina}{gina}")), Ok(()));
    let refused = |value: &str, why: &str| {
        let told = read(value).unwrap_err();
        assert!(told.contains(why), "{told}");
        assert!(!told.contains("hunter2"), "{told}");
    };
    refused("", "has no public keys");
    refused("hunter2", "the Secret's key team has in line 1 no ssh public key");
    refused("ssh-ed25519 hunter2", "an ssh public key that cannot be read");
    refused(&format!("ann cert-authority {ann}"), "an option that is not understood");
    refused(&format!("ann namespaces=\"file\" {ann}"), "an option that is not understood");
    refused(
        "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nhunter2\n-----END PGP PUBLIC KEY BLOCK-----",
        "no OpenPGP public key",
    );
    assert!(
        TrustedKeys::from_secret([("team", [0xff_u8, 0xfe])]).unwrap_err().to_string().contains("is no text")
    );
    assert_eq!(SignatureProblem::Missing.reason(), "SignatureMissing");
}
