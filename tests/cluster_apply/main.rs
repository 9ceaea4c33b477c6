//! Objects of a real API server that Syncs apply: drift, conflicts, ownership, autoscalers, requests.

mod answers;
mod claim_evidence;
mod conflicts;
mod definitions;
mod drift;
mod journal;
mod lags;
mod misses;
mod moves_of_touched;
mod moves_rest;
mod proof;
mod quiet_holds;
mod replacements;
mod report_mode;
mod request_loop;
mod rows;
mod scale;
mod scope;
mod self_heal;
