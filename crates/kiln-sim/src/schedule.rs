//! The scheduler: streams, tasks, graphs, the virtual clock, and choices made from a seed.

pub(crate) mod cost_model;
pub(crate) mod explore;
pub(crate) mod graph;
pub(crate) mod graph_build;
pub(crate) mod host_functions;
pub(crate) mod machine_core;
pub(crate) mod machine_state;
pub(crate) mod memory_wait;
pub(crate) mod planned_links;
pub(crate) mod scheduling_choice;
pub(crate) mod step;
pub(crate) mod step_duration;
pub(crate) mod step_work;
pub(crate) mod stream_queue;
pub(crate) mod submit;
pub(crate) mod task;
pub(crate) mod transfer;
pub(crate) mod virtual_clock;
pub(crate) mod wait;
