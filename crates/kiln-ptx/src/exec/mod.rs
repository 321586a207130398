//! Execution of PTX without a GPU.
//!
//! A [`ExecProgram`] is a module made ready to run. An [`Entry`] of it is launched over a grid of blocks and reads and
//! writes memory that the caller provides as a [`GlobalMemory`]. Everything a kernel does is checked while it runs, and an
//! [`ExecOutcome`] says what was found, what was printed and how much was executed.
//!
//! # The contract
//!
//! - Integers and IEEE operations give the bits a GPU gives. Functions the hardware approximates are computed closer
//!   than PTX demands.
//! - Every access is checked: bounds of the block it hits, freed memory, alignment; on request also whether a value that is used was
//!   read from bytes which a thread wrote, however often it was copied in between. Shared and global memory are watched for races, barriers for threads that do not come, shuffles for
//!   lanes that do not take part, asynchronous copies for data that is used before it is there.
//! - A kernel cannot hang: a warp that runs longer than [`Options::step_limit`] and threads that wait for each other
//!   end the launch with a finding.
//! - A launch on one thread is deterministic; [`Options::seed`] picks another order of blocks and warps, and from sm_70 on of the
//!   lanes of a warp, and preempts threads before strong accesses, so that those that wait see each release and not only the last one.
//! - What is not executed (`docs/checking.md` lists it) is found by [`Entry::unsupported`] beforehand and
//!   ends a launch, with a finding that names instruction and line, only when a thread reaches it.
//!
//! # The model
//!
//! ```text
//! Module ── Program ── Entry ─ launch(shape, arguments, globals, memory, options) ─▶ Outcome
//!                        │ lowered once: steps with resolved operands
//!                        ▼
//!             blocks on host threads ── warps in turn ── lane groups
//!                 │ shared memory, barriers   │ local memory     │ one loop over 32 lanes per step
//! ```
//!
//! Types in reading order: [`ExecProgram`], [`Entry`], [`LaunchShape`], [`Options`], [`GlobalMemory`], [`ExecOutcome`], [`ExecFinding`].
//!
//! # Races
//!
//! Two accesses to the same byte by different threads of a launch, one of them a write, race unless one happens before the other.
//! What happens before what is taken from PTX's memory model, not from the order in which the executor runs threads:
//!
//! - the instructions of one thread;
//! - `bar` and `barrier`, also of some warps and with threads that only arrive; `bar.warp.sync` for the lanes it names. `shfl`, `vote`,
//!   `match` and `redux` order no memory. Before sm_70 the lanes of a warp run in lockstep and are ordered;
//! - an arrival at an `mbarrier` object and a wait that finds its phase complete, unless they are `.relaxed`;
//! - a release and an acquire at one place, by the accesses themselves or by fences before and behind strong accesses, with scopes that
//!   include both threads, handed on by atomic updates. A loop that waits is ordered behind what its last read found, not behind what earlier
//!   ones did: a slower thread would not have seen it. Grid barriers and the last block to finish are ordered this way. What a thread
//!   has fenced is also handed on by a barrier, as CUDA code relies on.
//!
//! Strong accesses (atomic, relaxed, volatile) of one size, with scopes that include both threads, do not race with each other. Plain writes
//! of one value are a [`ExecFindingKind::SameValue`], a note unless [`Checks::strict`] is set.
//!
//! # What it does not do
//!
//! It does not model caches, timing or weak memory: accesses happen in program order, so a race is found but its worst outcome may not be
//! seen. Races between launches, and with copies of the host, are not looked for here. Of many readers of one place it remembers up to eight:
//! where threads are ordered by barriers of whole warps and blocks alone that loses nothing, elsewhere it can miss a race with one of
//! the others. Bulk and tensor copies are done at once, by the thread that issues them; they are pending for the checks until they are waited for.
//!
//! # Tensors
//!
//! Tensor copies (TMA) take a [`TensorMap`]: 128 bytes in a parameter, or in global memory.
//!
//! # Textures
//!
//! A texture or surface is a [`TextureObject`]: a record in global memory, whose address is its handle.

mod address_base;
mod address_halves;
mod alu;
mod barrier;
mod barrier_paths;
mod barrier_report;
mod block;
mod block_progress;
mod block_start;
mod check;
mod cluster;
mod cluster_block;
mod cluster_check;
mod cluster_run;
mod cluster_shape;
mod code_location;
mod coverage;
mod deadlock_report;
mod entry;
mod fault;
mod finding;
mod finding_text;
mod form_requirement;
mod instruction_kind;
mod lane_pattern;
mod launch;
mod launch_check;
mod launch_error;
mod launch_log;
mod launch_progress;
mod loaded_module;
mod lower;
mod lowered_code;
pub(crate) mod matrix;
mod mbarrier_table;
mod memory;
mod options;
mod out_of_bounds_text;
mod outcome;
mod own_line;
mod path_tree;
mod polled_words;
mod preemption;
mod printf;
mod race_lock;
mod race_remedy;
mod race_report;
mod random;
mod refusal;
mod requirement;
mod resident_blocks;
mod statistics;
mod tensor_box;
mod tensor_element;
pub(crate) mod tensor_form;
mod tensor_map;
mod tensor_map_error;
mod tensor_record;
pub(crate) mod texture;
mod texture_object;
mod undefined;
mod undefined_report;
mod variables;
mod warp;
mod warp_register;
mod warpgroup_order;

pub use address_base::AddressBase;
pub use check::RaceCause;
#[cfg(feature = "mutations")]
pub use check::{RaceRule, ValueRule};
pub use code_location::CodeSite;
pub use coverage::{Coverage, CoveredLine};
pub use deadlock_report::DeadlockPlace;
pub use entry::Entry;
pub use fault::ExecFault;
pub use finding::{AccessKind, AddressMistake, BadAccess, ExecFinding, ExecFindingKind};
pub use instruction_kind::InstructionKind;
pub use launch_error::LaunchError;
pub use launch_progress::LaunchProgress;
pub use loaded_module::{ExecProgram, UnsupportedInstruction};
pub use memory::generic_address::WINDOWS_START;
pub use memory::{
    Cells, Declared, DeviceHeap, GlobalMemory, Miss, MissKind, SimpleMemory, Span, UndefinedStore, Words,
};
pub use options::{Checks, LaunchShape, Options, OtherWriters};
pub use out_of_bounds_text::{byte_count, past_end};
pub use outcome::{Counters, ExecOutcome};
pub use race_remedy::RaceRemedy;
pub use statistics::{ExecutionCounts, LaunchStatistics, LineStatistics, MemoryBytes, StatisticsReport};
pub use tensor_element::TensorElement;
pub use tensor_map::{TensorBoxes, TensorColumns, TensorFill, TensorInterleave, TensorMap, TensorSwizzle};
pub use tensor_map_error::{TensorMapError, TensorMapField, TensorMapRule};
pub use texture_object::{AddressMode, TexelFormat, TexelKind, TextureObject, TextureSampler};
pub use variables::ModuleVariable;
