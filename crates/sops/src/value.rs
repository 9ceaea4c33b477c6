//! One encrypted value: its form, and its decryption.
//!
//! In: a text such as `ENC[AES256_GCM,data:…,iv:…,tag:…,type:str]`, the data key, and the path of
//! the value, which is authenticated with it. Out: the plain value with its type.

use aes_gcm::AesGcm;
use aes_gcm::aead::array::typenum::{U12, U16, U32};
use aes_gcm::aead::array::{Array, ArraySize};
use aes_gcm::aead::{AeadInOut, KeyInit};
use aes_gcm::aes::Aes256;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::numbers;
use super::secret::{DataKey, SecretBytes};

/// Begin of each encrypted value.
const OPEN: &str = "ENC[AES256_GCM,data:";
/// Length of a tag.
const TAG_BYTES: usize = 16;

/// An encrypted value, decoded.
#[derive(Debug)]
pub(crate) struct Encrypted {
    data: Vec<u8>,
    nonce: Vec<u8>,
    tag: [u8; TAG_BYTES],
    kind: Kind,
}

/// Type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Int,
    Float,
    Bool,
    Time,
    Comment,
}

/// A decrypted value, in the form that the MAC covers.
pub(crate) struct Plain {
    pub(crate) kind: Kind,
    pub(crate) text: SecretBytes,
}

/// Reason why a value cannot be decrypted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The form is wrong in this part.
    Form(&'static str),
    /// Key, path, or any byte of the value do not fit.
    Forged,
    /// The plain value does not fit the type.
    Kind(&'static str),
}

/// True if a text begins as an encrypted value does.
pub(crate) fn looks_encrypted(text: &str) -> bool {
    text.starts_with(OPEN)
}

/// Decodes an encrypted value. Nothing but the form that SOPS writes is accepted.
pub(crate) fn parse(text: &str) -> Result<Encrypted, Fault> {
    let inside = text.strip_prefix(OPEN).ok_or(Fault::Form("it does not begin as an encrypted value"))?;
    let inside = inside.strip_suffix(']').ok_or(Fault::Form("it does not end with a bracket"))?;
    let (data, rest) = inside.split_once(",iv:").ok_or(Fault::Form("it has no iv"))?;
    let (nonce, rest) = rest.split_once(",tag:").ok_or(Fault::Form("it has no tag"))?;
    let (tag, kind) = rest.split_once(",type:").ok_or(Fault::Form("it has no type"))?;
    let decoded = |text: &str, fault| BASE64.decode(text).map_err(|_| Fault::Form(fault));
    let data = decoded(data, "its data is not base64")?;
    if data.is_empty() {
        return Err(Fault::Form("it has no data"));
    }
    let tag = decoded(tag, "its tag is not base64")?;
    Ok(Encrypted {
        data,
        nonce: decoded(nonce, "its iv is not base64")?,
        tag: tag.try_into().map_err(|_| Fault::Form("its tag does not have 16 bytes"))?,
        kind: match kind {
            // Old versions marked bytes.
            "str" | "bytes" => Kind::Text,
            "int" => Kind::Int,
            "float" => Kind::Float,
            "bool" => Kind::Bool,
            "time" => Kind::Time,
            "comment" => Kind::Comment,
            _ => return Err(Fault::Form("its type is unknown")),
        },
    })
}

impl Encrypted {
    /// The type, which the encryption does not protect.
    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// Decrypts the value at a path.
    pub(crate) fn decrypt(&self, key: &DataKey, path: &str) -> Result<Plain, Fault> {
        let mut text = SecretBytes::new(self.data.clone());
        let opened = match self.nonce.len() {
            32 => open::<U32>(self, key, path, &mut text),
            16 => open::<U16>(self, key, path, &mut text),
            12 => open::<U12>(self, key, path, &mut text),
            _ => return Err(Fault::Form("its iv does not have 32 bytes")),
        };
        opened.ok_or(Fault::Forged)?;
        let plain = Plain { kind: self.kind, text };
        plain.normalized()
    }
}

fn open<N: ArraySize>(value: &Encrypted, key: &DataKey, path: &str, text: &mut SecretBytes) -> Option<()> {
    let cipher = AesGcm::<Aes256, N>::new(&Array::from(*key.as_bytes()));
    let nonce: Array<u8, N> = Array::try_from(value.nonce.as_slice()).ok()?;
    let tag = Array::from(value.tag);
    cipher.decrypt_inout_detached(&nonce, path.as_bytes(), text.as_mut().into(), &tag).ok()
}

impl Plain {
    /// Returns the value with numbers and booleans in the form that the MAC covers.
    fn normalized(mut self) -> Result<Self, Fault> {
        let text = match self.kind {
            Kind::Text | Kind::Comment => return Ok(self),
            Kind::Int | Kind::Float | Kind::Bool | Kind::Time => self.text.as_text(),
        };
        let form = match self.kind {
            Kind::Text | Kind::Comment => None,
            Kind::Int => text.and_then(|text| Some(text.parse::<i64>().ok()?.to_string())),
            Kind::Float => text.and_then(|text| Some(numbers::decimal(numbers::parse(text)?))),
            Kind::Bool => text.and_then(bool_form).map(str::to_owned),
            Kind::Time => text.filter(|text| is_time(text)).map(str::to_owned),
        };
        let form = form.ok_or(Fault::Kind(self.kind.name()))?;
        self.text = SecretBytes::new(form.into_bytes());
        Ok(self)
    }

    /// Returns the value of a float.
    pub(crate) fn as_float(&self) -> f64 {
        self.text.as_text().and_then(numbers::parse).unwrap_or(f64::NAN)
    }

    /// True if it is the boolean true.
    pub(crate) fn is_true(&self) -> bool {
        self.text.as_bytes() == b"True"
    }
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Text => "str",
            Self::Int => "int",
            Self::Float => "float",
            Self::Bool => "bool",
            Self::Time => "time",
            Self::Comment => "comment",
        }
    }
}

/// Returns the form of a boolean that the MAC covers.
fn bool_form(text: &str) -> Option<&'static str> {
    match text {
        "True" | "true" | "TRUE" | "T" | "t" | "1" => Some("True"),
        "False" | "false" | "FALSE" | "F" | "f" | "0" => Some("False"),
        _ => None,
    }
}

/// True for a time of the form `2026-01-02T03:04:05Z`, with a fraction or an offset.
pub(crate) fn is_time(text: &str) -> bool {
    time_parts(text).is_some()
}

/// Returns a time without its fraction, and with `Z` for no offset.
pub(crate) fn whole_seconds(text: &str) -> Option<String> {
    let (whole, offset) = time_parts(text)?;
    let offset = if matches!(offset, "+00:00" | "-00:00") { "Z" } else { offset };
    Some(format!("{whole}{offset}"))
}

/// Length of `2026-01-02T03:04:05`.
const WHOLE_BYTES: usize = 19;

/// Splits a time into the part up to the seconds and its offset.
fn time_parts(text: &str) -> Option<(&str, &str)> {
    let (whole, rest) = text.split_at_checked(WHOLE_BYTES)?;
    let fits = |text: &str, form: &str| {
        let digit = |(byte, form): (u8, u8)| if form == b'0' { byte.is_ascii_digit() } else { byte == form };
        text.len() == form.len() && text.bytes().zip(form.bytes()).all(digit)
    };
    let offset = match rest.strip_prefix('.') {
        Some(fraction) => {
            let offset = fraction.trim_start_matches(|digit: char| digit.is_ascii_digit());
            (offset.len() < fraction.len()).then_some(offset)?
        }
        None => rest,
    };
    let offset_fits = offset == "Z" || fits(offset, "+00:00") || fits(offset, "-00:00");
    (fits(whole, "0000-00-00T00:00:00") && offset_fits).then_some((whole, offset))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Encrypts as SOPS does, with a nonce that the path decides.
    pub(crate) fn seal(text: &str, kind: &str, key: &DataKey, path: &str) -> String {
        let nonce: [u8; 32] = std::array::from_fn(|at| {
            path.as_bytes().get(at % path.len().max(1)).copied().unwrap_or(1).wrapping_add(at as u8)
        });
        let cipher = AesGcm::<Aes256, U32>::new(&Array::from(*key.as_bytes()));
        let mut data = text.as_bytes().to_vec();
        let tag = cipher
            .encrypt_inout_detached(&Array::from(nonce), path.as_bytes(), data.as_mut_slice().into())
            .expect("encrypts");
        let coded = |bytes: &[u8]| BASE64.encode(bytes);
        format!("{OPEN}{},iv:{},tag:{},type:{kind}]", coded(&data), coded(&nonce), coded(&tag))
    }

    pub(crate) fn key() -> DataKey {
        DataKey::new(&SecretBytes::new((0..32).collect())).expect("has 32 bytes")
    }

    fn opened(text: &str, kind: &str) -> Result<String, Fault> {
        let sealed = parse(&seal(text, kind, &key(), "a:b:")).expect("has the form");
        sealed.decrypt(&key(), "a:b:").map(|plain| plain.text.as_text().expect("is text").to_owned())
    }

    #[test]
    fn values_are_decrypted_by_type() {
        let cases = [
            ("hunter2", "str", "hunter2"),
            ("x", "bytes", "x"),
            (" c", "comment", " c"),
            ("0012", "int", "12"),
            ("-5", "int", "-5"),
            ("1.50", "float", "1.5"),
            ("true", "bool", "True"),
            ("False", "bool", "False"),
            ("2026-01-02T03:04:05.5+01:00", "time", "2026-01-02T03:04:05.5+01:00"),
        ];
        for (text, kind, expect) in cases {
            assert_eq!(opened(text, kind).as_deref(), Ok(expect), "{kind}");
        }
        for (text, kind) in [("x", "int"), ("x", "float"), ("yes", "bool"), ("now", "time"), ("1e9", "int")] {
            assert_eq!(opened(text, kind), Err(Fault::Kind(kind)));
        }
    }

    #[test]
    fn key_path_and_bytes_must_fit() {
        let sealed = parse(&seal("x", "str", &key(), "a:")).expect("has the form");
        assert_eq!(sealed.decrypt(&key(), "b:").err(), Some(Fault::Forged));
        let other = DataKey::new(&SecretBytes::new(vec![9; 32])).expect("has 32 bytes");
        assert_eq!(sealed.decrypt(&other, "a:").err(), Some(Fault::Forged));
    }

    #[test]
    fn other_forms_are_refused() {
        let good = seal("x", "str", &key(), "a:");
        let form = |text: &str| match parse(text).expect_err(text) {
            Fault::Form(fault) => fault,
            other => panic!("{other:?}"),
        };
        assert_eq!(form("plain"), "it does not begin as an encrypted value");
        assert_eq!(form(&format!("{good} ")), "it does not end with a bracket");
        assert_eq!(form(&good.replace(",iv:", ",vi:")), "it has no iv");
        assert_eq!(form(&good.replace(",tag:", ",gat:")), "it has no tag");
        assert_eq!(form(&good.replace(",type:", ",epyt:")), "it has no type");
        assert_eq!(form(&good.replace("type:str", "type:map")), "its type is unknown");
        assert_eq!(form(&good.replace("data:", "data:!")), "its data is not base64");
        assert_eq!(form("ENC[AES256_GCM,data:,iv:,tag:,type:str]"), "it has no data");
        assert_eq!(form("ENC[AES256_GCM,data:eA==,iv:,tag:eA==,type:str]"), "its tag does not have 16 bytes");
    }

    #[test]
    fn times_lose_their_fraction_and_an_empty_offset() {
        let whole = |text| whole_seconds(text);
        assert_eq!(whole("2026-01-02T03:04:05Z").as_deref(), Some("2026-01-02T03:04:05Z"));
        assert_eq!(whole("2026-01-02T03:04:05.123+00:00").as_deref(), Some("2026-01-02T03:04:05Z"));
        assert_eq!(whole("2026-01-02T03:04:05-01:30").as_deref(), Some("2026-01-02T03:04:05-01:30"));
        for text in ["", "2026-01-02", "2026-01-02 03:04:05Z", "2026-01-02T03:04:05", "2026-01-02T03:04:05.Z"]
        {
            assert_eq!(whole(text), None, "{text}");
        }
    }
}
