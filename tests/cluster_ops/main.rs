//! The chart, the rights and the commands of those who operate a daemon.

mod chart;
mod check_on_server;
mod cli_renderers;
mod install;
mod operate;
mod rights;
