//! Why a collective was refused. Nothing was recorded.

use kiln_ir::Type;

use crate::element_kind::ElementKind;

/// What is wrong with a collective or its communicator.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CollectiveError {
    /// A communicator of no ranks.
    #[error("a communicator has at least one rank; use `CommunicatorConfig::single()` for one device")]
    NoRanks,
    /// A rank that its communicator does not have.
    #[error("rank {rank} does not exist among {size} ranks; ranks are counted from 0")]
    Rank {
        /// The rank.
        rank: u32,
        /// The number of ranks.
        size: u32,
    },
    /// More ranks than can be connected.
    #[error(
        "{size} ranks need NCCL and one process for each device, which this version of kiln does not start; \
         use a communicator of one rank"
    )]
    NotConnected {
        /// The number of ranks.
        size: u32,
    },
    /// A communicator of another device.
    #[error("the communicator belongs to another device; open one on the device whose buffers are used")]
    ForeignCommunicator,
    /// A broadcast from a rank that does not exist.
    #[error("the root {root} does not exist among {size} ranks; ranks are counted from 0")]
    Root {
        /// The rank that was to send.
        root: u32,
        /// The number of ranks.
        size: u32,
    },
    /// Buffers whose lengths do not fit the operation.
    #[error(
        "{operation} of {source_len} elements on {size} ranks writes {wanted} elements, and the destination has {destination_len}"
    )]
    Length {
        /// "all-gather" and so on.
        operation: &'static str,
        /// Elements of the buffer that is read.
        source_len: usize,
        /// Elements of the buffer that is written.
        destination_len: usize,
        /// Elements it should have.
        wanted: usize,
        /// The number of ranks.
        size: u32,
    },
    /// A reduce-scatter whose elements cannot be divided among the ranks.
    #[error(
        "reduce-scatter divides {source_len} elements among {size} ranks, which leaves a rest; use a multiple of {size}"
    )]
    Uneven {
        /// Elements of the buffer that is read.
        source_len: usize,
        /// The number of ranks.
        size: u32,
    },
    /// Elements of which it is not known which number they are.
    #[error("{given} could be numbers of several types; name the type, as in `ReduceOp::Sum.of(Type::F16)`")]
    UnknownElement {
        /// What is known of them.
        given: ElementKind,
    },
    /// Elements of another type than was named.
    #[error("the reduction was declared for {named}, and the buffers hold {given}")]
    Element {
        /// The type that was named.
        named: Type,
        /// What the buffers hold.
        given: ElementKind,
    },
    /// Elements that cannot be added or compared.
    #[error("{element} is not a number and cannot be reduced; use an integer or a float")]
    NoNumber {
        /// The type.
        element: Type,
    },
}
