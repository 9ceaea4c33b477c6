//! Command line of a task.
//!
//! In: the words after the name of the task. Out: its options by name, and what is left.

use crate::Failure;

/// Words of a command line, from which a task takes its options.
#[derive(Debug)]
pub(crate) struct Arguments {
    words: Vec<String>,
}

impl Arguments {
    pub(crate) fn new(words: impl Iterator<Item = String>) -> Self {
        Self { words: words.collect() }
    }

    /// Prints the usage if it is asked for, and says so.
    pub(crate) fn asks_for_help(&self, usage: &str) -> bool {
        let asks = self.words.iter().any(|word| word == "--help" || word == "-h");
        if asks {
            println!("{usage}");
        }
        asks
    }

    /// Takes a flag without a value.
    pub(crate) fn flag(&mut self, name: &str) -> bool {
        let before = self.words.len();
        self.words.retain(|word| word != name);
        before != self.words.len()
    }

    /// Takes all values of an option, in their order.
    pub(crate) fn values(&mut self, name: &str) -> Result<Vec<String>, Failure> {
        let mut values = Vec::new();
        while let Some(at) = self.words.iter().position(|word| word == name) {
            self.words.remove(at);
            if at == self.words.len() {
                return Err(Failure::Usage(format!("{name} needs a value")));
            }
            values.push(self.words.remove(at));
        }
        Ok(values)
    }

    /// Takes the value of an option that may be given once.
    pub(crate) fn value(&mut self, name: &str) -> Result<Option<String>, Failure> {
        let mut values = self.values(name)?;
        if values.len() > 1 {
            return Err(Failure::Usage(format!("{name} is given more than once")));
        }
        Ok(values.pop())
    }

    /// Takes the first word that is left and is no option.
    pub(crate) fn word(&mut self) -> Option<String> {
        let at = self.words.iter().position(|word| !word.starts_with('-'))?;
        Some(self.words.remove(at))
    }

    /// Refuses what no option has taken.
    pub(crate) fn end(self) -> Result<(), Failure> {
        match self.words.first() {
            None => Ok(()),
            Some(word) => Err(Failure::Usage(format!("{word} is no option of this task"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(line: &str) -> Arguments {
        Arguments::new(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn options_are_taken_in_any_order_and_the_rest_is_refused() {
        let mut words = arguments("--target a base --texts-only --target b");
        assert_eq!(words.values("--target").expect("both have a value"), ["a", "b"]);
        assert!(words.flag("--texts-only"));
        assert_eq!(words.word().as_deref(), Some("base"));
        words.end().expect("nothing is left");
        assert!(matches!(arguments("--colour").end(), Err(Failure::Usage(_))));
    }

    #[test]
    fn an_option_without_its_value_is_refused() {
        assert!(matches!(arguments("--target").value("--target"), Err(Failure::Usage(_))));
        assert!(matches!(arguments("--out a --out b").value("--out"), Err(Failure::Usage(_))));
    }
}
