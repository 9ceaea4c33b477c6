//! Compresses the CustomResourceDefinitions for the program.
//!
//! In: the files of `config/crd/`. Out: one file for each definition in the folder of the build.

fn main() -> std::io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "crd")]
    definitions::pack()?;
    Ok(())
}

#[cfg(feature = "crd")]
mod definitions {
    use std::path::Path;
    use std::{env, fs, io};

    use miniz_oxide::deflate::compress_to_vec;

    /// Folder of the files, seen from this crate.
    const FOLDER: &str = "../../config/crd";

    /// Names of the definitions.
    const PLURALS: [&str; 5] = ["syncs", "notifiers", "syncsets", "changewindows", "namespacechangewindows"];

    /// Slowest level, which makes the smallest files.
    const LEVEL: u8 = 10;

    pub(super) fn pack() -> io::Result<()> {
        let out = env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?;
        for plural in PLURALS {
            let file = format!("{FOLDER}/moorline.dev_{plural}.yaml");
            println!("cargo::rerun-if-changed={file}");
            let packed = compress_to_vec(&fs::read(&file)?, LEVEL);
            fs::write(Path::new(&out).join(format!("{plural}.deflate")), packed)?;
        }
        Ok(())
    }
}
