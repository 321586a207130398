//! Communicators: the ranks of one machine that meet in collectives.
//!
//! A launch of a collective is two steps of its stream. The first reads what the rank contributes; the second can run once all ranks it needs have
//! done their first, and writes what the rank receives. Ranks are matched by the order in which they submit: the nth collective of a communicator
//! on one rank is the nth on every other, and the nth send from one rank to another is the nth receive there. Launches of one communicator run in
//! the order they were submitted, on whatever stream.
//!
//! A rank can be aborted. What it has queued then ends without having been done: a launch that had begun leaves a part of what it was to write, one that had not
//! begun leaves everything as it was. A rank whose device is lost does not end the others: they wait for it until they are aborted, or until their deadline.

pub(crate) mod abort_kernel;
pub(crate) mod bring_kernel;
pub(crate) mod collective_kernel;
pub(crate) mod collective_launch;
pub(crate) mod communicator;
pub(crate) mod communicators;
pub(crate) mod deadlock;
pub(crate) mod description;
pub(crate) mod duration;
pub(crate) mod fold_kernel;
pub(crate) mod host_tree;
pub(crate) mod reduce;
pub(crate) mod stall;
