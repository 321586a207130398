//! A `libcuda.so.1` over kiln's simulated device, or over the driver of a GPU.
//!
//! A program that calls the documented CUDA driver API runs with this library as it is, on a machine without a GPU, and every access of its
//! kernels is checked. `kiln exec -- PROGRAM` puts the library into the program's process; nothing else does: installing kiln puts no
//! `libcuda` on any default path.
//!
//! ```text
//!     PROGRAM ── cuMemAlloc, cuLaunchKernel, ... ──►  this library          one file for each area of the API
//!                                                          │
//!                                      handles ── contexts ── default streams
//!                                                          │
//!                                                    trait Driver
//!                                                          │
//!                                         kiln-sim  or  a layer that checks ──► findings ──► a file that `kiln exec` reads
//!                                                           │
//!                                            kiln-cuda, or a worker process
//! ```
//!
//! # The contract
//!
//! - Every function of the CUDA 13.0 driver API is exported. One that is not implemented answers `CUDA_ERROR_NOT_SUPPORTED`, and the
//!   first call of it is noted by name.
//! - Handles are slot and generation. A wild, stale or foreign handle gets the code that the driver gives, and nothing is followed.
//! - A null pointer where memory is needed is `CUDA_ERROR_INVALID_VALUE`. Bytes that a copy moves, and the arguments of a launch, are
//!   fetched by the kernel of the system, so that an address without memory is an error and no crash. A pointer for a result to an address that no
//!   process has is an error, too; any other has to be good, as for the driver.
//! - No panic leaves a call: it becomes `CUDA_ERROR_UNKNOWN`, and a note.
//! - After a fork the child gets `CUDA_ERROR_NOT_INITIALIZED`, as with the driver.
//!
//! # What it does not do
//!
//! Documented functions only: there are no private tables (`cuGetExportTable`), so programs that come through NVIDIA's runtime library
//! `libcudart` end with an error that says so. Code is PTX; machine code is refused. Semaphores of other interfaces are not there, and what
//! needs kernels that run on the host, or memory that is shared with other processes, is there on the simulated device alone.
//!
//! # Reading order
//!
//! `boundary`, `caller_memory` and `handle_table` are what every call uses; `calls` has the functions, one file for each area of the API, and their
//! state; `program_lines` knows from where the program queued work, `records` keeps what was found, `recording` writes down what the program did, `statistics` counts what the library did; `api_table` lists all names; `management` has the first calls of NVML.

#![cfg(target_os = "linux")]
#![allow(non_snake_case, reason = "the functions have the names of the CUDA driver API")]
#[macro_use]
mod boundary;
mod api_table;
mod caller_memory;
mod calls;
mod error_names;
mod handle_table;
mod image;
mod management;
mod program_lines;
mod recording;
mod records;
mod run_settings;
mod small_values;
mod statistics;
mod thread_stack;

pub use api_table::exported_names;
