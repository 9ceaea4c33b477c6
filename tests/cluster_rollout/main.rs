//! Waves, hooks, health and rollbacks on a real API server.

mod promotion;
mod pull_requests;
mod ready;
mod ready_rest;
mod ready_rolling;
mod rollback;
mod rollout;
mod webhooks_last;
