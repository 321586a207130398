//! PTX through the crate's public API: reading, printing, signatures, effects and execution.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test stops at the first surprise"
)]

mod barrier_ways;
mod both_ways;
mod damage;
mod effects;
mod effects_executed;
mod effects_property;
mod effects_soundness;
mod errors;
mod exec_alternatives;
mod exec_bulk;
mod exec_checks;
mod exec_cluster;
mod exec_cluster_copies;
mod exec_damage;
mod exec_dependency;
mod exec_endless;
mod exec_faults;
mod exec_formulas;
mod exec_heap;
mod exec_kernels;
mod exec_launch_limits;
mod exec_matrix;
mod exec_mbarrier;
mod exec_names;
mod exec_notes;
mod exec_order;
mod exec_packed;
mod exec_portable;
mod exec_proxies;
mod exec_ptx;
mod exec_recorded;
mod exec_required;
mod exec_reserved;
mod exec_shared;
mod exec_shared_pages;
mod exec_small_floats;
mod exec_sparse;
mod exec_statistics;
mod exec_surface;
mod exec_tensor;
mod exec_tensor_checks;
mod exec_tensor_more;
mod exec_tensor_pipeline;
mod exec_tensor_rows;
mod exec_texture;
mod exec_threads;
mod exec_undefined;
mod exec_vector_atomics;
mod exec_vectors;
mod exec_video;
mod exec_warpgroup;
mod exec_warpgroup_checks;
mod exec_wmma;
mod facts;
mod judged_lines;
mod kernels;
mod limits;
mod litmus;
mod litmus_oracle;
mod parse;
mod planted_pairs;
mod race_cases;
mod race_clusters;
mod race_dropped;
mod race_pair;
mod race_published;
mod race_remedies;
#[cfg(feature = "mutations")]
mod race_rules;
mod race_spins;
mod race_waits;
mod races;
mod random_kernel;
mod round_trip;
mod tensor_kernel;
#[cfg(feature = "mutations")]
mod value_rules;
mod warpgroup_kernel;
