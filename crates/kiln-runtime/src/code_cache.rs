//! The disk cache of compiled code, keyed by a digest of all inputs of the compilation.
//!
//! An entry is one file, named after its [`Key`]. It is written whole beside its place and moved there, so that a reader sees all of it or
//! nothing, even after a crash; it carries its key and a checksum, so that a damaged or foreign file is noticed and made anew. The
//! folder and its files are the owner's alone. Past the limit the entries that were not used for longest go first. A disk that cannot be
//! written is one warning in the log: the cache is a convenience and never a reason to fail.

mod entry;
mod entry_state;
mod folder;
mod key;
mod store;

pub use entry::{CacheEntry, EntryDamage, EntryKind};
pub use entry_state::EntryState;
pub use folder::{CachePlace, Surroundings};
pub use key::{Key, KeyBuilder};
pub use store::{CacheConfig, CacheCounters, DiskCache, EntryInfo};
