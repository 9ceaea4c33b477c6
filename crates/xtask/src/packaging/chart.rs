//! The chart as an archive that helm reads.
//!
//! In: the folder of the chart, and the image of a release. Out: its archive, with that image as default.

use std::fs;
use std::path::Path;

use super::archive::{Archive, gzip};
use super::checkout::Checkout;

/// Image that a published chart uses.
pub(crate) struct Image {
    pub(crate) repository: String,
    pub(crate) digest: String,
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
            // What a chart in the repository does not know: where the repository lies.
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

/// Whether `.helmignore` leaves a file out. The chart's own lists folders only.
fn is_left_out(name: &str, ignored: &str) -> bool {
    ignored.lines().any(|line| line.ends_with('/') && name.starts_with(line))
}

fn version_in(chart: &str) -> Option<String> {
    chart.lines().find_map(|line| line.strip_prefix("version: ")).map(|version| version.trim().to_owned())
}

/// Values whose default image is the one of a release. Comments stay, so lines are replaced and the file is not written anew.
fn with_image(values: &str, image: &Image) -> Result<String, String> {
    if !image
        .digest
        .strip_prefix("sha256:")
        .is_some_and(|hash| hash.len() == 64 && hash.bytes().all(|b| b.is_ascii_hexdigit()))
    {
        return Err(format!("{:?} is no digest such as sha256:...", image.digest));
    }
    let mut in_image = false;
    let mut replaced = 0;
    let mut text = String::new();
    for line in values.lines() {
        if !line.starts_with(' ') && !line.is_empty() {
            in_image = line == "image:";
        }
        let new = [("  repository:", &image.repository), ("  digest:", &image.digest)]
            .into_iter()
            .find(|(key, _)| in_image && line.starts_with(key))
            .map(|(key, value)| format!("{key} {value:?}"));
        replaced += usize::from(new.is_some());
        text.push_str(new.as_deref().unwrap_or(line));
        text.push('\n');
    }
    if replaced == 2 {
        Ok(text)
    } else {
        Err("values.yaml: image has no repository and digest in lines of their own".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_image_of_a_release_becomes_the_default() {
        let values = "# a\nimage:\n  # Where.\n  repository: \"\"\n  tag: \"\"\n  digest: \"\"\nother:\n  digest: stays\n";
        let image =
            Image { repository: "example.com/moorline".into(), digest: format!("sha256:{}", "a".repeat(64)) };
        let text = with_image(values, &image).expect("both lines are there");
        assert!(text.contains("  # Where.\n  repository: \"example.com/moorline\"\n"), "{text}");
        assert!(text.contains(&format!("  digest: \"{}\"\nother:\n  digest: stays", image.digest)), "{text}");
        assert!(with_image("image:\n  tag: x\n", &image).is_err());
        assert!(
            with_image(values, &Image { digest: "latest".into(), ..image })
                .expect_err("no digest")
                .contains("no digest")
        );
    }
}
