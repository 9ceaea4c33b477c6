//! A flag for every setting of the daemon, generated from the table of settings.

use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches};

use crate::settings::TABLE;

/// The settings that were given as flags: names without the leading dashes, and values.
#[derive(Debug, Clone, Default)]
pub(super) struct SettingFlags(pub(super) Vec<(String, String)>);

impl FromArgMatches for SettingFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let given = |flag: String| matches.get_one::<String>(&flag).map(|text| (flag.clone(), text.clone()));
        Ok(Self(TABLE.iter().filter_map(|row| given(row.flag_name())).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for SettingFlags {
    fn augment_args(command: Command) -> Command {
        TABLE.iter().fold(command, |command, row| {
            let flag = row.flag_name();
            let arg = Arg::new(flag.clone()).long(flag).value_name("VALUE").help(row.description());
            command.arg(arg.help_heading("Settings"))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}
