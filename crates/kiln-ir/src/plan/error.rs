//! Why a launch cannot be planned.

use crate::scalar_type::Type;

/// Why a launch cannot be planned. Nothing has happened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// There is no such parameter.
    #[error("kernel `{kernel}` has no {what} `{name}`")]
    Unknown {
        /// The kernel.
        kernel: String,
        /// `buffer` or `scalar`.
        what: &'static str,
        /// The name that was given.
        name: String,
    },
    /// Nothing was given for a buffer, and nothing says how long it is.
    #[error(
        "kernel `{kernel}`: `{buffer}` was not given; give its elements, or its length if the kernel only writes it"
    )]
    Missing {
        /// The kernel.
        kernel: String,
        /// The buffer.
        buffer: String,
    },
    /// A scalar was not given.
    #[error("kernel `{kernel}`: the scalar `{scalar}` was not given")]
    MissingScalar {
        /// The kernel.
        kernel: String,
        /// The scalar.
        scalar: String,
    },
    /// Bytes that are no whole elements.
    #[error("kernel `{kernel}`: {bytes} bytes for `{buffer}` are no whole elements of {element}")]
    Elements {
        /// The kernel.
        kernel: String,
        /// The buffer.
        buffer: String,
        /// What was given.
        bytes: u64,
        /// The type of its elements.
        element: Type,
    },
    /// A buffer of the wrong length.
    #[error("kernel `{kernel}`: `{buffer}` has {found} elements, but must have {expected} ({why})")]
    Length {
        /// The kernel.
        kernel: String,
        /// The buffer.
        buffer: String,
        /// What was given.
        found: u64,
        /// What it must be.
        expected: u64,
        /// What says so.
        why: String,
    },
    /// A scalar of the wrong type.
    #[error("kernel `{kernel}`: the scalar `{scalar}` is {expected}, not {found}")]
    ScalarType {
        /// The kernel.
        kernel: String,
        /// The scalar.
        scalar: String,
        /// What it must be.
        expected: Type,
        /// What was given.
        found: Type,
    },
    /// More than a device can do.
    #[error("kernel `{kernel}`: {what} is {found}, but the device has at most {limit}")]
    Limit {
        /// The kernel.
        kernel: String,
        /// What is too large.
        what: String,
        /// How large it is.
        found: u64,
        /// What the device has.
        limit: u64,
    },
    /// Nothing says how many blocks there are.
    #[error("kernel `{kernel}`: no grid was given, and the program does not say which buffer it covers")]
    NoGrid {
        /// The kernel.
        kernel: String,
    },
    /// A size of zero, or one that does not fit what the program needs.
    #[error("kernel `{kernel}`: {what}")]
    Shape {
        /// The kernel.
        kernel: String,
        /// What does not fit.
        what: String,
    },
    /// More blocks than can be resident at once, for a program with a grid barrier.
    #[error(
        "kernel `{kernel}` meets at a grid barrier: {blocks} blocks must be resident, but only {limit} can be"
    )]
    CooperativeResidencyExceeded {
        /// The kernel.
        kernel: String,
        /// Blocks of the grid.
        blocks: u64,
        /// Blocks that fit.
        limit: u64,
    },
}

impl PlanError {
    /// Whether a larger device might run it.
    pub fn is_limit(&self) -> bool {
        matches!(self, Self::Limit { .. } | Self::CooperativeResidencyExceeded { .. })
    }
}
