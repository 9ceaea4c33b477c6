//! Formats of encrypted files.

/// The format of an encrypted file, which decides how its values are found and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// YAML, one or several documents.
    Yaml,
    /// A JSON object.
    Json,
    /// Lines `NAME=value`.
    Dotenv,
    /// Sections with keys.
    Ini,
    /// Any bytes, kept as one encrypted value in a JSON object.
    Binary,
}

impl Format {
    /// Returns the format that SOPS chooses by the end of a path.
    pub fn of_path(path: &str) -> Self {
        let ends = |ends: &[&str]| ends.iter().any(|end| path.ends_with(end));
        match () {
            () if ends(&[".yaml", ".yml"]) => Self::Yaml,
            () if ends(&[".json"]) => Self::Json,
            () if ends(&[".env"]) => Self::Dotenv,
            () if ends(&[".ini"]) => Self::Ini,
            () => Self::Binary,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Format;

    #[test]
    fn the_end_of_a_path_decides() {
        let cases = [
            ("a/secret.enc.yaml", Format::Yaml),
            ("b.yml", Format::Yaml),
            ("c.json", Format::Json),
            ("prod.env", Format::Dotenv),
            (".env", Format::Dotenv),
            ("d.ini", Format::Ini),
            ("tls.key", Format::Binary),
            ("env", Format::Binary),
        ];
        for (path, format) in cases {
            assert_eq!(Format::of_path(path), format, "{path}");
        }
    }
}
