//! Faults of API server, etcd, network and clocks; ends of daemons, and Leases.

mod api_server_away;
mod downgrade;
mod edits_while_away;
mod http2;
mod lease;
mod status_of_a_dead_daemon;
mod survive_cluster;
mod survive_etcd;
mod survive_farewell;
mod survive_faults;
mod survive_kills;
mod survive_moves;
mod survive_time;
mod upgrade;
