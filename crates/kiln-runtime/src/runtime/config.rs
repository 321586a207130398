//! What a runtime is built with.

#[cfg(feature = "mutations")]
use kiln_order::Mutation;
use kiln_order::{MAX_STREAMS, Recording, Rules};

use super::memory_config::MemoryConfig;
use crate::code_cache::CacheConfig;
use crate::completion::CompletionConfig;
use crate::error::Misuse;
use crate::findings::Findings;
use crate::isolation::Isolation;

/// What a runtime is built with.
#[derive(Clone, Debug)]
pub struct RuntimeConfig {
    /// Streams that can be leased at once, the main stream not counted; at most [`MOST_STREAMS`](Self::MOST_STREAMS). Imported streams
    /// are no part of it, and share the rest.
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
    /// What is done with the mistakes a simulated device finds.
    pub findings: Findings,
    /// Whether the variable `KILN_FINDINGS` overrides `findings`. A program that reads the variable itself turns this off.
    pub findings_variable: bool,
    /// A rule of the order that is taken out, for this project's tests of its tests.
    #[cfg(feature = "mutations")]
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
            findings: Findings::default(),
            findings_variable: true,
            #[cfg(feature = "mutations")]
            mutation: None,
        }
    }
}

impl RuntimeConfig {
    /// The most streams that can be leased at once: the order knows [`MAX_STREAMS`], and one of them is the main stream.
    pub const MOST_STREAMS: usize = MAX_STREAMS - 1;

    /// Whether a runtime can be built with it.
    pub(crate) fn check(&self) -> Result<(), Misuse> {
        let (asked, most) = (self.max_streams, Self::MOST_STREAMS);
        if asked > most { Err(Misuse::TooManyStreams { asked, most }) } else { Ok(()) }
    }

    /// The rules that the order keeps: all of them, unless a test took one out.
    pub(crate) fn rules(&self) -> Rules {
        #[cfg(feature = "mutations")]
        return Rules::without(self.mutation);
        #[cfg(not(feature = "mutations"))]
        return Rules::default();
    }
}
