//! Stub; replaced.
/// Trouble
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// One word for conditions, events and metrics.
    pub reason: &'static str,
    /// A sentence for people.
    pub message: String,
    /// The problems one by one, where there are several.
    pub problems: Vec<String>,
    /// True if asking again cannot help before there is new input.
    pub lasting: bool,
}
