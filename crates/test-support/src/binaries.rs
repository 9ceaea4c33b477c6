//! Finds etcd, kube-apiserver and kube-controller-manager.
//!
//! Out: three paths, or an error that names the missing program and how to get it.

use std::path::{Path, PathBuf};

use super::places;

/// The three programs of a control plane.
pub struct Binaries {
    pub etcd: PathBuf,
    pub api_server: PathBuf,
    pub controller_manager: PathBuf,
}

impl Binaries {
    /// Finds the programs in `KUBEBUILDER_ASSETS` if it is set, else those that `make
    /// control-plane` built.
    pub fn find() -> Result<Self, String> {
        match std::env::var_os("KUBEBUILDER_ASSETS") {
            Some(assets) => Self::in_directory(Path::new(&assets)).map_err(|missing| {
                format!(
                    "{missing}, to which KUBEBUILDER_ASSETS points; unset it and run `make control-plane`"
                )
            }),
            None => {
                Self::in_directory(&places::repository().join("target/control-plane")).map_err(|missing| {
                    format!("{missing}; `make control-plane` builds it (Go, some minutes once)")
                })
            }
        }
    }

    fn in_directory(directory: &Path) -> Result<Self, String> {
        // The servers do not run in the directory of the tests, so paths must be absolute.
        let directory = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
        let find = |name: &str| {
            let path = directory.join(name);
            match path.is_file() {
                true => Ok(path),
                false => Err(format!("there is no {name} in {}", directory.display())),
            }
        };
        Ok(Self {
            etcd: find("etcd")?,
            api_server: find("kube-apiserver")?,
            controller_manager: find("kube-controller-manager")?,
        })
    }
}
