//! Reads the settings file of the daemon at the start, and again when it may have changed.
//!
//! In: its path, and the environment and flags, which take precedence. Out: settings. A file with
//! errors changes nothing: the daemon keeps its settings and logs the errors.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::{Context as _, anyhow, bail};

use super::logs::LogLevelHandle;
use super::setting_flags::SettingFlags;
use crate::controller::Context;
use crate::settings::{Setting, Settings, SettingsError, TABLE};
use crate::settings_watch::SettingsWatch;
use crate::yaml;

/// Merges the settings of the file, the environment and the flags; returns all errors together.
pub(super) fn read(
    file: Option<&Path>,
    flags: &SettingFlags,
) -> anyhow::Result<Result<Settings, Vec<SettingsError>>> {
    let file = file.map(document).transpose()?;
    // Names and values that are not UTF-8 cannot be settings.
    let environment = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    Ok(Settings::from_sources(file.as_ref(), environment, flags.0.clone()))
}

fn document(path: &Path) -> anyhow::Result<serde_json::Value> {
    let shown = path.display();
    let bytes = read_consistently(path, |path| std::fs::read(path))?;
    let name = shown.to_string();
    let documents = yaml::read(&name, &bytes, yaml::Dialect::Kubectl).map_err(|error| anyhow!("{error}"))?;
    let mut values = documents.into_iter().map(|document| document.value);
    match (values.next(), values.next()) {
        (Some(value), None) => Ok(value),
        (None, _) => Ok(serde_json::Value::Object(serde_json::Map::new())),
        (Some(_), Some(_)) => bail!("{shown} contains more than one document"),
    }
}

/// The most reads of a file that changes meanwhile.
const ATTEMPTS: usize = 3;

/// Reads a file at one point in time: a half-written file may be valid settings, but not the
/// intended ones.
fn read_consistently(
    path: &Path,
    mut read: impl FnMut(&Path) -> std::io::Result<Vec<u8>>,
) -> anyhow::Result<Vec<u8>> {
    let shown = path.display();
    let unreadable = || format!("cannot read {shown}");
    for _ in 0..ATTEMPTS {
        let before = stamp(path).with_context(unreadable)?;
        let bytes = read(path).with_context(unreadable)?;
        if stamp(path).with_context(unreadable)? == before {
            return Ok(bytes);
        }
    }
    bail!("{shown} changed while it was read; replace it by a rename")
}

/// File attributes that differ after a write or a replacement.
fn stamp(path: &Path) -> std::io::Result<(u64, u64, SystemTime)> {
    let metadata = std::fs::metadata(path)?;
    Ok((metadata.ino(), metadata.len(), metadata.modified()?))
}

/// Applies changes of the file; never returns.
pub(super) async fn watch(
    file: Option<&Path>,
    flags: &SettingFlags,
    context: Arc<Context>,
    level: LogLevelHandle,
) {
    let Some(file) = file else { return std::future::pending().await };
    let watch = SettingsWatch::new(file);
    // An error is logged once, not at every check of an unchanged file.
    let mut reported = String::new();
    loop {
        watch.changed().await;
        let wrong = match read(Some(file), flags) {
            Ok(Ok(settings)) => {
                apply_settings(&context, &settings, &level);
                String::new()
            }
            Ok(Err(errors)) => errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
            Err(error) => format!("{error:#}"),
        };
        if !wrong.is_empty() && wrong != reported {
            tracing::warn!("the settings file has errors, and the previous settings stay in effect: {wrong}");
        }
        reported = wrong;
    }
}

/// Applies new settings, as far as the daemon can do that while it runs.
fn apply_settings(context: &Context, settings: &Settings, level: &LogLevelHandle) {
    let before = context.settings();
    let changed = TABLE.iter().filter(|row| row.value(settings) != row.value(&before));
    let (now, later): (Vec<&Setting>, Vec<&Setting>) = changed.partition(|row| row.is_live());
    for row in &now {
        tracing::info!("{} is now {}", row.name, row.value(settings));
    }
    for row in &later {
        tracing::warn!("{} is {} only after the next start", row.name, row.value(settings));
    }
    if !now.is_empty() || !later.is_empty() {
        level.set(settings.log_level);
        context.change(settings.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_exchanged_while_it_is_read_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("daemon.yaml");
        let exchange = |text: &str| {
            let other = folder.path().join("other");
            std::fs::write(&other, text).unwrap();
            std::fs::rename(other, &file).unwrap();
        };
        exchange("qps: 1\n");
        let mut reads = 0;
        let once = read_consistently(&file, |path| {
            reads += 1;
            let bytes = std::fs::read(path);
            if reads == 1 {
                exchange("qps: 20\n");
            }
            bytes
        });
        assert_eq!((once.unwrap().as_slice(), reads), (&b"qps: 20\n"[..], 2));
        // A writer that does not replace the file may be half done at any time.
        let mut length = 0;
        let always = read_consistently(&file, |path| {
            length += 1;
            std::fs::write(path, "#".repeat(length)).unwrap();
            std::fs::read(path)
        });
        let said = format!("{:#}", always.unwrap_err());
        let expect = "daemon.yaml changed while it was read; replace it by a rename";
        assert!(said.ends_with(expect), "{said}");
        std::fs::remove_file(&file).unwrap();
        let said = format!("{:#}", read_consistently(&file, |path| std::fs::read(path)).unwrap_err());
        assert!(said.starts_with("cannot read ") && said.contains("No such file"), "{said}");
    }
}
