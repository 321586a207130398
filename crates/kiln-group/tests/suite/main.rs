//! Groups of devices through the public API, on simulated machines.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

#[path = "../machine_load/mod.rs"]
mod machine_load;
#[path = "../wild_kernel/mod.rs"]
mod wild_kernel;

mod collective_crossing;
mod collective_graphs;
mod collective_kinds;
mod collective_mistakes;
mod collective_numbers;
mod collective_programs;
mod collective_races;
mod collective_replacement;
mod collective_survival;
mod collective_traces;
mod collectives;
mod communicator_ids;
mod compared_calls;
mod copies;
mod cut_links;
mod dropped_ranks;
mod earlier_work;
mod ended_work;
mod few_descriptors;
mod first_causes;
mod forged_proofs;
mod given_up_calls;
mod isolated_devices;
mod job_departures;
mod job_losses;
mod job_mistakes;
mod job_rebuilds;
mod job_rig;
mod job_values;
mod join_texts;
mod late_ranks;
mod late_threads;
mod load;
mod lost;
mod lost_replacements;
mod members;
mod no_threads;
mod other_calls;
mod random_programs;
mod rank_endings;
mod rank_environments;
mod rank_processes;
mod rank_scenes;
mod rebuild_failures;
mod refused_processes;
mod refused_transfers;
mod rendezvous;
mod rig;
mod second_losses;
mod shards;
mod shared;
mod split_mistakes;
mod stopped_stores;
mod told_losses;
mod topologies;
mod watched_clock;
