//! The workloads that figures about memory are measured with, on any allocator.
//!
//! | workload | here |
//! |---|---|
//! | M1, a block of 64 KiB allocated and freed | [`time_pairs`] |
//! | M2, random sizes and lives; M4, what is reserved for them | [`RandomLives`] |
//! | M3, M1 on several threads | [`time_threads`] |
//! | M5, sizes of all magnitudes up to nine tenths of a limit | [`Filling`] |
//!
//! An [`Allocator`] is what is measured: [`StreamAllocator`] is a resource of this crate, others are written by the program that
//! compares. The numbers come from [`Lcg`], so that every subject, in every language, gets the same requests.

mod alloc_free_pairs;
mod allocator;
mod fragmentation;
mod lcg;
mod percentiles;
mod random_lifetimes;

pub use alloc_free_pairs::{PAIR_BYTES, time_pairs, time_threads};
pub use allocator::{Allocator, StreamAllocator};
pub use fragmentation::{Filling, FillingResult};
pub use lcg::Lcg;
pub use percentiles::Percentiles;
pub use random_lifetimes::{RandomLives, RandomLivesResult};
