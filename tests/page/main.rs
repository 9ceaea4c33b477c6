//! Pages, metrics, logs and documents: everything that people read.

mod board;
mod demo;
mod history;
mod log_hygiene;
mod metrics;
mod metrics_of_a_daemon;
mod page;
mod page_browser;
mod page_of_a_person;
mod page_over_tls;
mod page_views;
mod pages;
mod probes;
mod prometheus;
mod serve;
mod translations;
