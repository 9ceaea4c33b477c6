//! The chart, the rights and the commands of those who operate a daemon.

mod chart;
mod check_on_server;
mod cli_renderers;
mod doctor;
mod install;
mod install_without_helm;
mod operate;
mod rights;
