//! Variables of a render: names and values, and which values are secret.
//!
//! In: the spec, the data of ConfigMaps and Secrets. Out: [`Variables`]. Values are never
//! formatted; only names are.

use std::collections::BTreeMap;
use std::fmt;

use super::expression::is_name;
use moorline_core::did_you_mean::nearest_name;

/// Variables by name.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Variables(BTreeMap<Box<str>, Variable>);

/// Value of a variable.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Variable {
    pub(super) text: Box<str>,
    /// It comes from a Secret.
    pub(super) is_secret: bool,
}

/// Visibility of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visibility {
    /// The values may be shown.
    Public,
    /// The values come from a Secret.
    Secret,
}

impl Variables {
    /// Adds values, which override existing ones. Names that no expression can use are skipped;
    /// line breaks are removed.
    #[must_use]
    pub fn with_values<N: AsRef<str>, T: AsRef<str>>(
        mut self,
        values: impl IntoIterator<Item = (N, T)>,
        seen: Visibility,
    ) -> Self {
        for (name, text) in values {
            if is_name(name.as_ref()) {
                let text = text.as_ref().replace(['\n', '\r'], "").into();
                let secret = seen == Visibility::Secret;
                self.0.insert(name.as_ref().into(), Variable { text, is_secret: secret });
            }
        }
        self
    }

    /// Adds the variables of `over`, which override existing ones.
    #[must_use]
    pub fn overridden_by(mut self, over: &Self) -> Self {
        self.0.extend(over.0.iter().map(|(name, value)| (name.clone(), value.clone())));
        self
    }

    pub(super) fn get(&self, name: &str) -> Option<&Variable> {
        self.0.get(name)
    }

    /// Returns the known name that is most similar.
    pub(super) fn nearest(&self, name: &str) -> Option<String> {
        nearest_name(name, self.0.keys().map(|known| &**known)).map(str::to_owned)
    }
}

impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Returns the rule for names of variables if this name breaks it.
pub fn variable_rule(name: &str) -> Option<&'static str> {
    (!is_name(name)).then_some("must be letters, digits and _, and must not begin with a digit")
}
