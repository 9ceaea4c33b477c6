//! The armor of age: base64 between two lines.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

const BEGIN: &str = "-----BEGIN AGE ENCRYPTED FILE-----";
const END: &str = "-----END AGE ENCRYPTED FILE-----";

/// Returns the bytes in an armored text.
pub(super) fn decode(text: &str) -> Result<Vec<u8>, &'static str> {
    let inside = text.trim().strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(END));
    let inside = inside.ok_or("the encrypted data key is not an armored file of age")?;
    let joined: String = inside.split(['\n', '\r']).map(str::trim).collect();
    BASE64.decode(joined).map_err(|_| "the encrypted data key is damaged: it is not base64")
}
