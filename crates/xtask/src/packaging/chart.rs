//! The chart as an archive that helm reads.
//!
//! In: the folder of the chart, and the image of a release. Out: its archive, with that image as
//! default.

use std::fs;
use std::path::Path;

use super::archive::{Archive, gzip};
use super::checkout::Checkout;

/// Image that a published chart uses.
pub(crate) struct Image {
    pub(crate) repository: String,
    pub(crate) digest: String,
    /// Digest of the image with helm.
    pub(crate) helm_digest: String,
}

/// Packed chart.
pub(crate) struct Packed {
    pub(crate) version: String,
    pub(crate) bytes: Vec<u8>,
}

/// Packs the chart of the checkout.
pub(crate) fn pack(checkout: &Checkout, image: Option<&Image>) -> Result<Packed, String> {
    let folder = checkout.root.join("charts/moorline");
    let mut files = Vec::new();
    list(&folder, "", &mut files)?;
    files.sort();
    let left_out = fs::read_to_string(folder.join(".helmignore")).unwrap_or_default();
    files.retain(|name| !is_left_out(name, &left_out));
    let mut archive = Archive::new(checkout.time);
    let mut version = None;
    for name in &files {
        let path = folder.join(name);
        let mut bytes = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        if name == "Chart.yaml" {
            version = version_in(&String::from_utf8_lossy(&bytes));
        }
        if let (Some(source), "Chart.yaml") = (&checkout.source, name.as_str()) {
            // A chart in the repository does not know where the repository lies.
            bytes.extend_from_slice(format!("home: {source}\nsources: [{source}]\n").as_bytes());
        }
        if let (Some(image), "values.yaml") = (image, name.as_str()) {
            bytes = with_image(&String::from_utf8_lossy(&bytes), image)?.into_bytes();
        }
        archive.file(&format!("moorline/{name}"), 0o644, &bytes)?;
    }
    let version = version.ok_or("charts/moorline/Chart.yaml has no version")?;
    Ok(Packed { version, bytes: gzip(&archive.finish()?)? })
}

fn list(folder: &Path, prefix: &str, files: &mut Vec<String>) -> Result<(), String> {
    let shown = |error: std::io::Error| format!("{}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(shown)? {
        let entry = entry.map_err(shown)?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type().map_err(shown)?.is_dir() {
            list(&entry.path(), &format!("{name}/"), files)?;
        } else {
            files.push(name);
        }
    }
    Ok(())
}

/// True if `.helmignore` leaves a file out. The chart's own lists folders only.
fn is_left_out(name: &str, ignored: &str) -> bool {
    ignored.lines().any(|line| line.ends_with('/') && name.starts_with(line))
}

fn version_in(chart: &str) -> Option<String> {
    chart.lines().find_map(|line| line.strip_prefix("version: ")).map(|version| version.trim().to_owned())
}

/// Values whose default image is the one of a release. Lines are replaced, so that comments stay.
fn with_image(values: &str, image: &Image) -> Result<String, String> {
    for digest in [&image.digest, &image.helm_digest] {
        if !is_digest(digest) {
            return Err(format!("{digest:?} is no digest such as sha256:..."));
        }
    }
    let defaults = [
        ("  repository:", &image.repository),
        ("  digest:", &image.digest),
        ("  helmDigest:", &image.helm_digest),
    ];
    let mut in_image = false;
    let mut replaced = 0;
    let mut text = String::new();
    for line in values.lines() {
        if !line.starts_with(' ') && !line.is_empty() {
            in_image = line == "image:";
        }
        let new = defaults.iter().find(|(key, _)| in_image && line.starts_with(key));
        let new = new.map(|(key, value)| format!("{key} {value:?}"));
        replaced += usize::from(new.is_some());
        text.push_str(new.as_deref().unwrap_or(line));
        text.push('\n');
    }
    match replaced == defaults.len() {
        true => Ok(text),
        false => {
            Err("values.yaml: image lacks repository, digest or helmDigest in lines of their own".into())
        }
    }
}

fn is_digest(text: &str) -> bool {
    let hash = text.strip_prefix("sha256:").unwrap_or_default();
    hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_image_of_a_release_becomes_the_default() {
        let values = "# a\nimage:\n  # Where.\n  repository: \"\"\n  digest: \"\"\n  helmDigest: \"\"\nother:\n  digest: stays\n";
        let digest = |digit: &str| format!("sha256:{}", digit.repeat(64));
        let repository = "example.com/moorline".into();
        let image = Image { repository, digest: digest("a"), helm_digest: digest("b") };
        let text = with_image(values, &image).expect("all lines are there");
        assert!(text.contains("  # Where.\n  repository: \"example.com/moorline\"\n"), "{text}");
        let digests = format!("  digest: \"{}\"\n  helmDigest: \"{}\"\n", image.digest, image.helm_digest);
        assert!(text.contains(&format!("{digests}other:\n  digest: stays")), "{text}");
        assert!(with_image("image:\n  tag: x\n", &image).is_err());
        let latest = Image { digest: "latest".into(), ..image };
        assert!(with_image(values, &latest).expect_err("no digest").contains("no digest"));
    }
}
