//! Login that a registry of a test asks for.
//!
//! In: nothing.
//! Out: [`RegistryLogin`].

/// Login that the registry asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RegistryLogin {
    #[default]
    Nobody,
    Basic,
    /// This user and password.
    Pair(&'static str, &'static str),
    /// A token, which its own server gives for the login.
    Bearer,
    /// A token, which its own server gives to everyone.
    Anonymous,
}
