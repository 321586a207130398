//! The rules of the checks on undefined values, the device heap and declared memory, so that a test can take one out and show that it is needed.

/// A rule about values and memory. Every rule holds unless a test takes it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(not(feature = "mutations"), allow(unreachable_pub, reason = "public with the feature only"))]
pub enum ValueRule {
    /// Bytes of global memory that were never written are undefined.
    GlobalContents,
    /// The same of shared memory.
    SharedContents,
    /// The same of local memory.
    LocalContents,
    /// The same of a block of the device heap.
    HeapContents,
    /// An atomic uses what it finds in memory.
    AtomicOperand,
    /// A load of undefined bytes is no use of them.
    Loads,
    /// Bits that an operation drops are not used.
    Bits,
    /// A selection takes the state of the side it picks.
    Selection,
    /// A shuffle takes the state of the lane it reads.
    Shuffle,
    /// Memory is undefined where an undefined value was stored.
    Stores,
    /// Asynchronous copies carry undefined bytes.
    AsyncCopies,
    /// An exchange gives and takes undefined values.
    Exchanges,
    /// The result of arithmetic with an undefined value is undefined.
    Arithmetic,
    /// A sum or a product is defined below the lowest undefined bit.
    LowBits,
    /// A byte of a sum or a bitwise result of two undefined operands is undefined if it differs between values of the undefined bits.
    Alternatives,
    /// Parts of a packed value are undefined apart.
    PackedParts,
    /// The carry flag can be undefined.
    CarryFlag,
    /// The result of a comparison with an undefined value is undefined.
    Comparison,
    /// A comparison that defined bits decide is defined.
    DecidedComparison,
    /// Logic of predicates drops what the other operand decides.
    PredicateLogic,
    /// An element of a product of `mma` is undefined if its row, its column or its summand is.
    Matrices,
    /// Arithmetic and comparisons are no uses.
    Computing,
    /// An address is a use, and so is everything else that decides what an instruction does.
    Decisions,
    /// What is printed is used.
    Printing,
    /// Undefined bits that are copied together with defined ones may be padding.
    Padding,
    /// A register that was never assigned is undefined.
    Unassigned,
    /// A block of the device heap that was freed is not used.
    HeapFree,
    /// A block of the device heap is freed once.
    HeapDoubleFree,
    /// An access to shared memory stays inside of one variable.
    SharedVariables,
    /// An access to local memory stays outside of the gaps around the local variables of a function.
    LocalGaps,
    /// A branch around arithmetic whose results are undefined either way is no use.
    BranchAround,
}

impl ValueRule {
    /// All of them.
    #[cfg(feature = "mutations")]
    pub const ALL: [Self; 31] = [
        Self::GlobalContents,
        Self::SharedContents,
        Self::LocalContents,
        Self::HeapContents,
        Self::AtomicOperand,
        Self::Loads,
        Self::Bits,
        Self::Selection,
        Self::Shuffle,
        Self::Stores,
        Self::AsyncCopies,
        Self::Exchanges,
        Self::Arithmetic,
        Self::LowBits,
        Self::Alternatives,
        Self::PackedParts,
        Self::CarryFlag,
        Self::Comparison,
        Self::DecidedComparison,
        Self::PredicateLogic,
        Self::Matrices,
        Self::Computing,
        Self::Decisions,
        Self::Printing,
        Self::Padding,
        Self::Unassigned,
        Self::HeapFree,
        Self::HeapDoubleFree,
        Self::SharedVariables,
        Self::LocalGaps,
        Self::BranchAround,
    ];
}

/// The rules that hold.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ValueRules {
    #[cfg(feature = "mutations")]
    without: Option<ValueRule>,
}

impl ValueRules {
    /// All rules but one.
    #[cfg(feature = "mutations")]
    pub(crate) fn without(without: Option<ValueRule>) -> Self {
        Self { without }
    }

    /// Whether a rule holds; without the feature every rule does.
    #[inline(always)]
    pub(crate) fn has(self, rule: ValueRule) -> bool {
        #[cfg(feature = "mutations")]
        let taken_out = self.without == Some(rule);
        #[cfg(not(feature = "mutations"))]
        let taken_out = {
            let _ = rule;
            false
        };
        !taken_out
    }
}
