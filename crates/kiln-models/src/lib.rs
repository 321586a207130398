//! Tests of kiln's locks, budgets and order under model checkers.
//!
//! A race that needs one thread to stop between two particular instructions does not show on a machine in years. A model checker runs the
//! threads one at a time, switches between them at every lock and atomic, and reports races and deadlocks.
//!
//! ```text
//!                           --cfg kiln_loom                          --cfg kiln_shuttle
//!   checker                 loom                                     shuttle
//!   explores                every interleaving of a small model,     samples of the interleavings of whole programs,
//!                           weak memory included                     sequentially consistent
//!   looks at                kiln_sync::BiasedLock, Gate              kiln_order over a simulated device
//!                           kiln_mem::Budget                         kiln_sync::BiasedLock
//! ```
//!
//! The crates under test are the ordinary ones. They take their atomics and locks from [`kiln_sync::sync_shim`], and that `cfg` decides whose
//! those are. A `cfg` is given to a whole build, so that these tests are built apart from all others, each in its own directory below
//! `target`: `cargo xtask test` does that, and `cargo xtask test -p kiln-models` does nothing else. A feature would not do: cargo unites
//! the features of a workspace, and one crate that asked for a checker would change the locks under every other test.
//!
//! Without either `cfg` there is nothing here.
//!
//! [`kiln_sync::sync_shim`]: https://docs.rs/kiln-sync
