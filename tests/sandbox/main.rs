//! The sandbox and a real API server: both are sent the same requests.

mod api_server;
mod crd;
mod parity;
mod sandbox_kinds;
mod sandbox_kubectl;
mod sandbox_webhooks;
