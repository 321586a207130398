//! Library operations on every device, against oracles that are neither.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test stops at the first surprise, and says what it skips"
)]

mod absurd_sizes;
mod call_cost;
mod caller_words;
mod curand;
mod dnn_attention;
mod dnn_convolutions;
mod dnn_labels;
mod dnn_mistakes;
mod dnn_pools;
mod dnn_rows;
mod elementwise_values;
mod empty_calls;
mod every_operation;
mod exact;
mod fft_values;
mod first_misfit;
mod foreign_operands;
mod foreign_streams;
mod found_in_calls;
mod graph_memory;
mod integer_products;
mod library_budget;
mod library_checks;
mod library_determinism;
mod library_graphs;
mod library_healing;
mod library_mistakes;
mod library_states;
mod library_workers;
mod longer_buffers;
mod matmul_tuning;
mod matrix_operations;
mod model;
mod model_generation;
mod model_reference;
mod model_training;
mod model_workers;
mod named_sizes;
mod not_finite;
mod numbers;
mod numbers_by_value;
mod one_handle;
mod parameter_names;
mod prepared_products;
mod prepared_refusals;
mod prims_graph;
mod prims_mistakes;
mod prims_reduce;
mod prims_scan;
mod prims_select;
mod prims_shipped;
mod prims_sort;
mod prims_values;
mod products;
mod rand_mistakes;
mod rand_values;
mod recorded_calls;
mod refusals_by_name;
mod rig;
mod shared_and_foreign_buffers;
mod single_results;
mod sizes_out_of_range;
mod solver_batched_spectra;
mod solver_batches;
mod solver_factors;
mod solver_failures;
mod solver_pivots;
mod solver_q;
mod solver_spectra;
mod sparse_constructors;
mod sparse_findings;
mod sparse_formats;
mod sparse_mistakes;
mod sparse_products;
mod sparse_refusals;
mod sparse_spgemm;
mod sparse_triangles;
mod special_values;
mod stated_costs;
mod stored;
mod tolerances;
mod triangular;
mod twin_bytes;
mod vectors;
mod warm_refusals;
mod zero_alpha;
mod zero_factors;

/// The worker process.
#[test]
#[ignore = "helper process"]
fn worker() {
    kiln::worker_entry();
}
