//! What a runtime is built with.

use kiln_order::{Mutation, Recording};

use super::memory_config::MemoryConfig;
use crate::cache::CacheConfig;
use crate::completion::CompletionConfig;
use crate::isolation::Isolation;

/// What a runtime is built with.
#[derive(Clone, Debug)]
pub struct RuntimeConfig {
    /// Streams that can be leased at once, the main stream not counted.
    pub max_streams: usize,
    /// Where memory comes from, and how much it may be.
    pub memory: MemoryConfig,
    /// When events are recorded for work that another stream consumes.
    pub recording: Recording,
    /// Pinned bytes kept for transfers.
    pub max_staging_bytes: u64,
    /// Threads that copy large pageable transfers through pinned memory.
    pub transfer_threads: usize,
    /// Bytes such a transfer moves at once, for each of which a thread holds two pinned blocks; at least 64 KiB are.
    pub transfer_chunk_bytes: usize,
    /// How futures learn that work is done.
    pub completion: CompletionConfig,
    /// Where compiled code is kept.
    pub cache: CacheConfig,
    /// Where the device's context lives.
    pub isolation: Isolation,
    /// A rule of the order taken out, for tests of tests.
    #[doc(hidden)]
    pub mutation: Option<Mutation>,
}

impl Default for RuntimeConfig {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            max_streams: 32,
            memory: MemoryConfig::default(),
            recording: Recording::default(),
            max_staging_bytes: 128 << 20,
            transfer_threads: cores.clamp(1, 8),
            transfer_chunk_bytes: 2 << 20,
            completion: CompletionConfig::default(),
            cache: CacheConfig::default(),
            isolation: Isolation::InProcess,
            mutation: None,
        }
    }
}
