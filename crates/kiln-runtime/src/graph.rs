//! Work recorded once and replayed as one submission.
//!
//! A [`GraphBuilder`] takes the calls a runtime takes (launches, copies, fills) and keeps them as nodes. What each node does to which bytes
//! decides the edges: two nodes are ordered if one of them writes bytes the other uses, and otherwise may run side by side. The driver
//! builds the [`Graph`] once.
//!
//! ```text
//!   launch ─┐                               ┌─ wait for what others do to its blocks
//!   copy   ─┼─ nodes ─ hazards ─ edges ─ Graph ─ replay ─ one driver call
//!   fill   ─┘                               └─ stamp every block it touches
//! ```
//!
//! - A replay is one tracked submission: it waits for what it has to come after, and the next use of one of its blocks waits for it.
//!   Replays of one graph on different streams, from different threads, come one after the other where they share what they write.
//! - A graph holds everything it uses: blocks, kernels, host data. Dropping it waits for nothing; the driver's part is given back when
//!   the last replay is done.
//! - Memory it allocates for itself ([`GraphBuilder::scratch`]) keeps its address for as long as the graph lives.
//! - Arguments, grids and buffers are changed in place ([`Graph::update`]), with the checks of a launch. A change that would need an edge
//!   the graph does not have is refused. Changing takes `&mut`, replaying `&`, so no replay sees half a change.
//! - Host data belongs to the graph ([`Input`], [`Output`]). Borrowed or pageable host memory cannot be recorded at all: its owner
//!   could free it before the next replay.
//!
//! ```
//! use kiln::DeviceRuntime;
//!
//! const DOUBLE: &str = "
//!     .version 7.0
//!     .target sm_70
//!     .address_size 64
//!     .visible .entry double(.param .u64 data, .param .u32 times) {
//!         .reg .b32 %r<4>; .reg .b64 %rd<4>;
//!         ld.param.u64 %rd1, [data];
//!         ld.param.u32 %r3, [times];
//!         mov.u32 %r1, %tid.x;
//!         mul.wide.u32 %rd2, %r1, 4;
//!         add.s64 %rd3, %rd1, %rd2;
//!         ld.global.u32 %r2, [%rd3];
//!         mul.lo.u32 %r2, %r2, %r3;
//!         st.global.u32 [%rd3], %r2;
//!         ret;
//!     }";
//!
//! let gpu = DeviceRuntime::simulated(1)?;
//! let double = gpu.kernel(DOUBLE, "double")?;
//! let data = gpu.allocate::<u32>(4)?;
//!
//! let mut builder = gpu.graph();
//! let input = builder.upload(&data, &[1, 2, 3, 4])?;
//! // SAFETY: four threads change an element each, and there are four.
//! let launch = unsafe { builder.launch(&double).threads(4).read_write(&data).value(2_u32).record()? };
//! let output = builder.download(&data)?;
//! let mut graph = builder.build()?;
//!
//! graph.replay()?;
//! assert_eq!(graph.output(&output)?, [2, 4, 6, 8]);
//!
//! graph.input(&input)?.copy_from_slice(&[5, 5, 5, 5]);
//! // SAFETY: as above.
//! unsafe { graph.update(launch)?.value(1, 10_u32).apply()? };
//! graph.replay()?;
//! assert_eq!(graph.output(&output)?, [50, 50, 50, 50]);
//! # Ok::<(), kiln::Error>(())
//! ```

mod builder;
mod edges;
mod executable;
mod footprint;
mod hazards;
mod host_data;
mod kernel_node;
mod node;
mod node_access;
mod node_list;
pub(crate) mod recorded_work;
mod update;

pub use builder::GraphBuilder;
pub use executable::Graph;
pub use host_data::{Input, Output};
pub use kernel_node::IntoGraph;
pub use node::NodeId;
pub use update::LaunchUpdate;
