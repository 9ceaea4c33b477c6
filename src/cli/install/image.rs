//! The image of the daemon, from the flags of `moorline install`.
//!
//! In: `--image`, or the image that a release was built with, and `--registry`. Out: the reference
//! in the Deployment, as the chart builds it from `image.repository`, `image.tag` and
//! `image.digest`; or a sentence that says what to set.

/// Name of the image in a registry, where `--image` gives none.
const NAME: &str = "moorline";

/// Version of the image, where neither a tag nor a digest is given.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Message without an image.
const UNSET: &str = "no image is set: make the image with `make dist image`, push it to a registry that the cluster pulls \
    from, and say where it is with --image registry.example.com/moorline";

/// Returns the reference of the image. A registry replaces everything in front of the image's own
/// name; tag and digest stay, because a copy by digest has the same digest.
pub(super) fn image_reference(image: Option<&str>, registry: Option<&str>) -> Result<String, String> {
    let image = match (image, registry) {
        (Some(image), _) => image,
        (None, Some(_)) => NAME,
        (None, None) => return Err(UNSET.to_owned()),
    };
    let (rest, digest) = match image.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (image, None),
    };
    let path_end = rest.rfind('/').map_or(0, |slash| slash + 1);
    let (repository, tag) = match rest[path_end..].split_once(':') {
        Some((name, tag)) => (&rest[..path_end + name.len()], Some(tag)),
        None => (rest, None),
    };
    check("--image", repository, image)?;
    if !tag.is_none_or(is_tag) {
        return Err(format!("--image {image}: a tag has at most 128 letters, digits, '.', '_' and '-'"));
    }
    if !digest.is_none_or(is_digest) {
        return Err(format!("--image {image}: a digest is sha256: and 64 hexadecimal digits"));
    }
    let repository = match registry.map(|registry| registry.trim_end_matches('/')) {
        Some(registry) => {
            check("--registry", registry, registry)?;
            format!("{registry}/{}", &repository[path_end..])
        }
        None => repository.to_owned(),
    };
    let tag = match (tag, digest) {
        (Some(tag), _) => format!(":{tag}"),
        (None, Some(_)) => String::new(),
        (None, None) => format!(":{VERSION}"),
    };
    Ok(format!("{repository}{tag}{}", digest.map(|digest| format!("@{digest}")).unwrap_or_default()))
}

/// Checks a path of a registry: a host, which may have a port, and lower-case names.
fn check(flag: &str, path: &str, shown: &str) -> Result<(), String> {
    if shown.contains("://") {
        return Err(format!("{flag} {shown}: leave out the protocol, as in registry.example.com/moorline"));
    }
    let (first, others) = path.split_once('/').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let is_part = |part: &str| {
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
        !part.is_empty() && part.bytes().all(inner)
    };
    let (host, port) = first.split_once(':').unwrap_or((first, "0"));
    let is_port = port.parse::<u16>().is_ok();
    match is_part(host) && is_port && others.is_none_or(|rest| rest.split('/').all(is_part)) {
        true => Ok(()),
        false => Err(format!(
            "{flag} {shown}: write a host and names of lower-case letters, digits, '.', '_' and '-', as in \
             registry.example.com/moorline"
        )),
    }
}

fn is_tag(tag: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=128).contains(&tag.len()) && tag.bytes().all(is_inner) && !tag.starts_with(['.', '-'])
}

fn is_digest(digest: &str) -> bool {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    digest.strip_prefix("sha256:").is_some_and(|hex| hex.len() == 64 && hex.bytes().all(is_hex))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_replaces_what_is_in_front_of_the_name() {
        let digest = format!("sha256:{}", "0a".repeat(32));
        let check = |image: Option<&str>, registry: Option<&str>, expect: &str| {
            assert_eq!(image_reference(image, registry).as_deref(), Ok(expect), "{image:?} {registry:?}");
        };
        let by_version = |name: &str| format!("{name}:{VERSION}");
        check(Some("registry.example.com/moorline"), None, &by_version("registry.example.com/moorline"));
        check(Some("localhost:5000/a/moorline:main"), None, "localhost:5000/a/moorline:main");
        check(Some(&format!("a.example/moorline@{digest}")), None, &format!("a.example/moorline@{digest}"));
        check(None, Some("mirror:5000/apps/"), &by_version("mirror:5000/apps/moorline"));
        let both = format!("a.example/team/moorline:1.0@{digest}");
        check(Some(&both), Some("b.example/copy"), &format!("b.example/copy/moorline:1.0@{digest}"));
        check(Some("moorline"), Some("b.example"), &by_version("b.example/moorline"));
    }

    #[test]
    fn what_is_wrong_with_an_image_is_said() {
        let check = |image: Option<&str>, registry: Option<&str>, expect: &str| {
            let error = image_reference(image, registry).unwrap_err();
            assert!(error.contains(expect), "{image:?} {registry:?}: {error}");
        };
        check(None, None, "no image is set: make the image");
        check(Some("https://a.example/moorline"), None, "leave out the protocol");
        check(None, Some("https://a.example"), "--registry https://a.example: leave out the protocol");
        check(Some(""), None, "write a host and names");
        check(Some("a.example/Moorline"), None, "lower-case letters");
        check(Some("a.example:port/moorline"), None, "write a host and names");
        check(Some("a.example//moorline"), None, "write a host and names");
        check(Some("a.example/moorline:"), None, "a tag has at most");
        check(Some("a.example/moorline:a\nb"), None, "a tag has at most");
        check(Some("a.example/moorline@sha256:12"), None, "a digest is sha256:");
        check(Some("moorline"), Some(""), "write a host and names");
    }
}
