//! Validates the signatures that a Sync requires: of commits, of artifacts, and of charts.
//!
//! In: the fields `verify` of the spec. Out: [`Verification`], or an error.

use serde_json::Value;

use super::{SpecError, named, refuse};
use crate::api::{
    ArtifactVerification, ConfigMapRef, GitSource, SignatureVerification, SignerIdentity, TrustedRoot,
    ValuesKind, VerifyMode,
};
use crate::source::SignaturePolicy;

/// Fields that require signatures.
const OF_GIT: &str = "spec.source.git.verify";
const OF_ARTIFACT: &str = "spec.source.oci.verify";
const OF_CHART: &str = "spec.render.helm.chart.verify";

/// Most identities of one field.
const MAX_IDENTITIES: usize = 64;

/// Most bytes of an issuer or a subject.
const MAX_IDENTITY_BYTES: usize = 1024;

/// Signatures that are required, and those who may make them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verification {
    /// The field, such as `spec.source.git.verify`.
    pub field: &'static str,
    /// The object that must be signed.
    pub signed: SignaturePolicy,
    /// Kind of the object in the Sync's namespace with the keys or the trust root.
    pub kind: ValuesKind,
    /// Its name.
    pub name: Box<str>,
    /// The identities that may sign; none if the object has keys.
    pub identities: Option<Vec<TrustedIdentity>>,
}

/// An identity that may sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedIdentity {
    /// The service that vouches for the subject.
    pub issuer: Box<str>,
    /// The subject, such as the URL of a workflow.
    pub subject: Box<str>,
}

impl Verification {
    /// Returns the Secret with the keys or the trust root, if it is one.
    pub fn secret(&self) -> Option<&str> {
        (self.kind == ValuesKind::Secret).then_some(&*self.name)
    }

    /// Returns the ConfigMap with the trust root, if it is one.
    pub fn config_map(&self) -> Option<&str> {
        (self.kind == ValuesKind::ConfigMap).then_some(&*self.name)
    }
}

/// Validates the signatures of a repository against the ref.
pub(super) fn of_git(git: &GitSource) -> Result<Option<Verification>, SpecError> {
    let Some(verify) = &git.verify else { return Ok(None) };
    let has_tag = git.reference.as_ref().is_some_and(|it| it.tag.is_some() || it.semver.is_some());
    let chooses = git.reference.as_ref().is_some_and(|it| it.semver.is_some());
    match verify.mode {
        VerifyMode::Head if chooses => refuse(
            OF_GIT,
            "write the mode Tag or TagAndHEAD with ref.semver: anyone who may push could tag an old signed commit \
             with any version",
        ),
        VerifyMode::Tag | VerifyMode::TagAndHead if !has_tag => {
            refuse(OF_GIT, "set ref.tag or ref.semver: the mode requires a signed tag")
        }
        VerifyMode::Head | VerifyMode::Tag | VerifyMode::TagAndHead => commits(verify).map(Some),
    }
}

fn commits(verify: &SignatureVerification) -> Result<Verification, SpecError> {
    let signed = match verify.mode {
        VerifyMode::Head => SignaturePolicy::Commit,
        VerifyMode::Tag => SignaturePolicy::Tag,
        VerifyMode::TagAndHead => SignaturePolicy::Both,
    };
    let name = named("spec.source.git.verify.secretRef.name", Some(&verify.secret_ref.name))?;
    let (kind, name) = (ValuesKind::Secret, name.unwrap_or_default());
    Ok(Verification { field: OF_GIT, signed, kind, name, identities: None })
}

/// Validates the signatures of an artifact.
pub(super) fn of_artifact(verify: Option<&ArtifactVerification>) -> Result<Option<Verification>, SpecError> {
    verify.map(|verify| artifacts(OF_ARTIFACT, verify)).transpose()
}

/// Validates the signatures of a chart. Only a registry has them, and a digest already stands for
/// one content.
pub(super) fn of_chart(
    verify: Option<&ArtifactVerification>,
    (url, digest): (&str, Option<&str>),
) -> Result<Option<Verification>, SpecError> {
    let Some(verify) = verify else { return Ok(None) };
    if !url.starts_with("oci://") {
        return refuse(
            OF_CHART,
            "remove verify: only charts in registries (oci://) have signatures that can be verified",
        );
    }
    if digest.is_some() {
        return refuse(
            OF_CHART,
            "write verify or digest, not both: a digest names one content, so it needs no signature",
        );
    }
    artifacts(OF_CHART, verify).map(Some)
}

fn artifacts(field: &'static str, verify: &ArtifactVerification) -> Result<Verification, SpecError> {
    let signed = SignaturePolicy::Artifact;
    match (&verify.keys, &verify.keyless, &verify.trusted_root) {
        (Some(keys), None, None) => {
            let name = object(&format!("{field}.keys.secretRef.name"), &keys.secret_ref.name)?;
            Ok(Verification { field, signed, kind: ValuesKind::Secret, name, identities: None })
        }
        (None, Some(keyless), Some(root)) => {
            let identities = Some(identities(field, keyless)?);
            let (kind, name) = trust_root(field, root)?;
            Ok(Verification { field, signed, kind, name, identities })
        }
        (Some(_), Some(_), _) | (None, None, _) => refuse(field, "write exactly one of keys and keyless"),
        (Some(_), None, Some(_)) | (None, Some(_), None) => refuse(
            format!("{field}.trustedRoot"),
            "write trustedRoot with keyless, and only with it: it holds the authorities that prove an identity",
        ),
    }
}

fn identities(field: &str, keyless: &[SignerIdentity]) -> Result<Vec<TrustedIdentity>, SpecError> {
    if keyless.is_empty() || keyless.len() > MAX_IDENTITIES {
        return refuse(format!("{field}.keyless"), format!("write 1 to {MAX_IDENTITIES} identities"));
    }
    let is_sound = |text: &str| (1..=MAX_IDENTITY_BYTES).contains(&text.len());
    if let Some(at) = keyless.iter().position(|it| !is_sound(&it.issuer) || !is_sound(&it.subject)) {
        return refuse(
            format!("{field}.keyless[{at}]"),
            "write an issuer and a subject, as in the certificate",
        );
    }
    let identity = |it: &SignerIdentity| TrustedIdentity {
        issuer: it.issuer.as_str().into(),
        subject: it.subject.as_str().into(),
    };
    Ok(keyless.iter().map(identity).collect())
}

fn trust_root(field: &str, root: &TrustedRoot) -> Result<(ValuesKind, Box<str>), SpecError> {
    match (&root.config_map_ref, &root.secret_ref) {
        (Some(ConfigMapRef { name }), None) => {
            let name = object(&format!("{field}.trustedRoot.configMapRef.name"), name)?;
            Ok((ValuesKind::ConfigMap, name))
        }
        (None, Some(secret)) => {
            let name = object(&format!("{field}.trustedRoot.secretRef.name"), &secret.name)?;
            Ok((ValuesKind::Secret, name))
        }
        (Some(_), Some(_)) | (None, None) => {
            refuse(format!("{field}.trustedRoot"), "write exactly one of configMapRef and secretRef")
        }
    }
}

fn object(field: &str, name: &str) -> Result<Box<str>, SpecError> {
    match named(field, Some(name))?.filter(|name| !name.is_empty()) {
        Some(name) => Ok(name),
        None => refuse(field, "write the name of an object in the Sync's own namespace"),
    }
}

/// Returns the signatures of the source and of the chart that a spec requires, of which other
/// fields may be invalid; none if these fields are invalid themselves.
pub(super) fn of_unsound(spec: &Value) -> Option<(Option<Verification>, Option<Verification>)> {
    let at = |pointer: &str| spec.pointer(pointer).filter(|value| !value.is_null()).cloned();
    let artifact = |field: &'static str, value: Value| {
        artifacts(field, &serde_json::from_value::<ArtifactVerification>(value).ok()?).ok()
    };
    let source = match (at("/source/git/verify"), at("/source/oci/verify")) {
        (None, None) => None,
        (Some(verify), None) => Some(commits(&serde_json::from_value(verify).ok()?).ok()?),
        (None, Some(verify)) => Some(artifact(OF_ARTIFACT, verify)?),
        (Some(_), Some(_)) => return None,
    };
    let chart = match at("/render/helm/chart/verify") {
        None => None,
        Some(verify) => Some(artifact(OF_CHART, verify)?),
    };
    Some((source, chart))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{ValidatedSpec, validate};
    use super::*;
    use crate::api::{SyncName, SyncSpec};

    fn validated(spec: Value) -> Result<ValidatedSpec, String> {
        let spec: SyncSpec = serde_json::from_value(spec).unwrap();
        validate(&SyncName::new("ops", "shop"), &spec).map_err(|error| error.to_string())
    }

    fn artifact(verify: &Value) -> Result<Option<Verification>, String> {
        let source = json!({"source": {"oci": {"url": "oci://host/shop", "verify": verify}}});
        validated(source).map(|spec| spec.verify)
    }

    fn chart(url: &str, digest: Option<&str>, verify: &Value) -> Result<Option<Verification>, String> {
        let mut chart = json!({"url": url, "version": "1.2.3", "verify": verify});
        if !url.starts_with("oci://") {
            chart["name"] = json!("shop");
        }
        if let Some(digest) = digest {
            chart["digest"] = json!(digest);
        }
        let source = json!({"git": {"url": "https://host/path"}});
        validated(json!({"source": source, "render": {"helm": {"chart": chart}}}))
            .map(|spec| spec.chart_verify)
    }

    #[test]
    fn an_artifact_is_signed_by_the_owners_of_keys_or_by_identities_of_a_trust_root() {
        let keys = json!({"keys": {"secretRef": {"name": "signers"}}});
        let found = artifact(&keys).unwrap().unwrap();
        assert_eq!((found.secret(), found.config_map(), &found.identities), (Some("signers"), None, &None));
        assert_eq!(found.signed, SignaturePolicy::Artifact);
        let ann = json!([{"issuer": "https://login.example", "subject": "ann@example.com"}]);
        let root = json!({"configMapRef": {"name": "root"}});
        let found = artifact(&json!({"keyless": ann, "trustedRoot": root})).unwrap().unwrap();
        assert_eq!((found.secret(), found.config_map()), (None, Some("root")));
        assert_eq!(&*found.identities.unwrap()[0].subject, "ann@example.com");
        let secret = json!({"keyless": ann, "trustedRoot": {"secretRef": {"name": "root"}}});
        assert_eq!(artifact(&secret).unwrap().unwrap().secret(), Some("root"));
        let found = chart("oci://host/shop", None, &keys).unwrap().unwrap();
        assert_eq!((found.field, found.secret()), (OF_CHART, Some("signers")));
        for (wrong, part) in [
            (json!({}), "spec.source.oci.verify: write exactly one of keys and keyless"),
            (
                json!({"keys": {"secretRef": {"name": "a"}}, "keyless": ann}),
                "exactly one of keys and keyless",
            ),
            (json!({"keyless": ann}), "spec.source.oci.verify.trustedRoot: write trustedRoot with keyless"),
            (json!({"keys": {"secretRef": {"name": "a"}}, "trustedRoot": root}), "and only with it"),
            (json!({"keyless": [], "trustedRoot": root}), "write 1 to 64 identities"),
            (
                json!({"keyless": [{"issuer": "", "subject": "a"}], "trustedRoot": root}),
                "keyless[0]: write an issuer",
            ),
            (json!({"keyless": ann, "trustedRoot": {}}), "exactly one of configMapRef and secretRef"),
            (json!({"keys": {"secretRef": {"name": "../a"}}}), "keys.secretRef.name: write the name"),
            (json!({"keys": {"secretRef": {"name": ""}}}), "keys.secretRef.name: write the name"),
        ] {
            let problem = artifact(&wrong).unwrap_err();
            assert!(problem.contains(part), "{wrong}: {problem}");
        }
    }

    #[test]
    fn a_chart_has_signatures_in_a_registry_only_and_without_a_digest() {
        let keys = json!({"keys": {"secretRef": {"name": "signers"}}});
        let problem = chart("https://host/charts", None, &keys).unwrap_err();
        assert!(problem.contains("only charts in registries (oci://)"), "{problem}");
        let problem = chart("oci://host/shop", Some(&"0".repeat(64)), &keys).unwrap_err();
        assert!(problem.contains("write verify or digest"), "{problem}");
    }
}
