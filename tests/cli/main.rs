//! Commands that need no cluster, and documents that are compared with the code.

mod artifacts;
#[path = "../page/board.rs"]
#[expect(dead_code, reason = "it has boards for the tests of the page, too")]
mod board;
mod check;
mod cli;
mod cli_plan;
mod decrypt;
mod decrypt_own_keys;
mod documents;
mod examples;
mod fleet;
mod judged_fields;
mod kept_table;
mod mcp;
mod printed_yaml;
mod published;
mod reasons;
mod reference;
mod settings;
