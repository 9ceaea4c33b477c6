//! Flags for Helm charts, shared by all verbs that read manifests.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;

use super::operate::namespace;
use crate::name_rules::is_release;
use crate::render::HelmOptions;
use crate::render::helm::is_version;

/// How a chart is rendered.
#[derive(Debug, Args)]
#[command(next_help_heading = "Helm charts")]
pub(super) struct ChartFlags {
    /// Values file inside --root; can be repeated, and the last one takes precedence
    #[arg(long, short = 'f', value_name = "FILE")]
    pub(super) values: Vec<PathBuf>,

    /// The name of the release
    #[arg(long, value_name = "NAME", default_value = "default", value_parser = release)]
    release_name: String,

    /// The namespace of the release, as templates see it
    #[arg(long, value_name = "NAMESPACE", default_value = "default", value_parser = namespace)]
    release_namespace: String,

    /// Kubernetes version that templates see [default: helm's own]
    #[arg(long, value_name = "VERSION", value_parser = version)]
    kube_version: Option<String>,

    /// Skip the chart's crds folder
    #[arg(long)]
    skip_crds: bool,
}

impl ChartFlags {
    /// Returns the options of the renderer, without the value files: their paths in the tree are
    /// known later.
    pub(super) fn options(&self) -> HelmOptions {
        HelmOptions {
            release: self.release_name.as_str().into(),
            namespace: self.release_namespace.as_str().into(),
            skip_crds: self.skip_crds,
            kube_version: self.kube_version.as_deref().map(Into::into),
            ..HelmOptions::default()
        }
    }

    /// The helm command line that renders the same.
    pub(super) fn helm_command_line(&self, chart: &Path) -> Vec<OsString> {
        let mut typed: Vec<OsString> =
            vec!["template".into(), self.release_name.as_str().into(), chart.into()];
        typed.extend(["--namespace", &self.release_namespace, "--skip-tests"].map(Into::into));
        typed.push(if self.skip_crds { "--skip-crds" } else { "--include-crds" }.into());
        if let Some(version) = &self.kube_version {
            typed.extend(["--kube-version", version].map(Into::into));
        }
        for file in &self.values {
            typed.extend(["--values".into(), file.into()]);
        }
        typed
    }
}

fn release(text: &str) -> Result<String, &'static str> {
    let rule = "the name of a release has at most 53 lower-case letters, digits, - and .";
    if is_release(text) { Ok(text.to_owned()) } else { Err(rule) }
}

fn version(text: &str) -> Result<String, &'static str> {
    if is_version(text) { Ok(text.to_owned()) } else { Err("write a version such as 1.33") }
}
