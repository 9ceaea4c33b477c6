//! Commands that need no cluster, and documents that are compared with the code.

mod artifacts;
mod check;
mod cli;
mod cli_plan;
mod decrypt;
mod documents;
mod examples;
mod judged_fields;
mod kept_table;
mod printed_yaml;
mod published;
mod reasons;
mod reference;
mod settings;
