//! One collective of a communicator.

use std::fmt;
use std::str::FromStr;

use crate::collective_type::CollectiveType;
use crate::error::OperationError;
use crate::field::{Field, Fields, words};
use crate::operand::OperandEffect;

words! {
    /// What a collective does. Ranks are counted from 0; a block is `count` elements.
    CollectiveKind {
        /// Every rank gets the reduction of the buffers of all ranks.
        AllReduce = "all_reduce",
        /// The root gets the reduction of the buffers of all ranks.
        Reduce = "reduce",
        /// Every rank gets the buffer of the root.
        Broadcast = "broadcast",
        /// Every rank gets the blocks of all ranks, in the order of the ranks.
        AllGather = "all_gather",
        /// Every rank gets its block of the reduction of the buffers of all ranks.
        ReduceScatter = "reduce_scatter",
        /// Rank `r` gets block `r` of every rank, in the order of the ranks.
        AllToAll = "all_to_all",
        /// The root gets the blocks of all ranks, in the order of the ranks.
        Gather = "gather",
        /// Every rank gets its block of the buffer of the root.
        Scatter = "scatter",
        /// Sends a block to one rank, which receives it.
        Send = "send",
        /// Receives a block from one rank, which sends it.
        Recv = "recv",
        /// No rank passes before all ranks have come.
        Barrier = "barrier",
    }
}

words! {
    /// How values of several ranks become one.
    Reduction {
        /// The sum. Integers wrap around.
        Sum = "sum",
        /// The product. Integers wrap around.
        Product = "product",
        /// The smallest.
        Min = "min",
        /// The largest.
        Max = "max",
        /// The sum divided by the number of ranks. Integers are rounded towards zero.
        Average = "average",
    }
}

words! {
    /// A call of a program that a collective is a step of.
    CollectiveStep {
        /// Communicators of some of the ranks are made: ranks tell each other what they want.
        Split = "split",
    }
}

impl CollectiveKind {
    /// Whether it reduces.
    pub fn reduces(self) -> bool {
        matches!(self, Self::AllReduce | Self::Reduce | Self::ReduceScatter)
    }

    /// Whether one rank is its root.
    pub fn has_root(self) -> bool {
        matches!(self, Self::Reduce | Self::Broadcast | Self::Gather | Self::Scatter)
    }

    /// Whether it is between two ranks.
    pub fn has_peer(self) -> bool {
        matches!(self, Self::Send | Self::Recv)
    }

    /// Whether its buffers can be one.
    pub fn may_be_in_place(self) -> bool {
        matches!(
            self,
            Self::AllReduce
                | Self::Reduce
                | Self::AllGather
                | Self::ReduceScatter
                | Self::Gather
                | Self::Scatter
        )
    }

    fn keys(self) -> &'static [&'static str] {
        match self {
            Self::AllReduce | Self::ReduceScatter => &["element", "reduction", "in_place"],
            Self::Reduce => &["element", "reduction", "root", "in_place"],
            Self::Broadcast => &["element", "root"],
            Self::AllGather => &["element", "in_place", "step_of"],
            Self::AllToAll => &["element"],
            Self::Gather | Self::Scatter => &["element", "root", "in_place"],
            Self::Send | Self::Recv => &["element", "peer"],
            Self::Barrier => &[],
        }
    }
}

/// One collective, without its buffers and its count.
///
/// Its text is part of the name of a function of a communicator. Its arguments are its [operands](Self::operands) and then its count, eight bytes
/// each.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Collective {
    kind: CollectiveKind,
    element: CollectiveType,
    reduction: Option<Reduction>,
    /// The root or the peer.
    root: Option<u64>,
    in_place: bool,
    step: Option<CollectiveStep>,
}

/// A buffer of a collective, on one rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CollectiveOperand {
    /// Its name in messages.
    pub name: &'static str,
    /// What the collective does with it on this rank.
    pub effect: OperandEffect,
    /// Its length, as a multiple of the count.
    pub blocks: u64,
}

impl Collective {
    /// A collective of a kind, out of place, with the sum as its reduction and rank 0 as its root or peer where it has one.
    pub fn new(kind: CollectiveKind, element: CollectiveType) -> Self {
        Self {
            kind,
            element: if kind == CollectiveKind::Barrier { CollectiveType::U8 } else { element },
            reduction: kind.reduces().then_some(Reduction::Sum),
            root: (kind.has_root() || kind.has_peer()).then_some(0),
            in_place: false,
            step: None,
        }
    }

    /// The same with another reduction, if it reduces.
    #[must_use]
    pub fn reduction(self, reduction: Reduction) -> Self {
        Self { reduction: self.reduction.map(|_| reduction), ..self }
    }

    /// The same with another root or peer, if it has one.
    #[must_use]
    pub fn root(self, rank: u32) -> Self {
        Self { root: self.root.map(|_| u64::from(rank)), ..self }
    }

    /// The same with one buffer for input and output, if its kind may have that.
    #[must_use]
    pub fn in_place(self) -> Self {
        Self { in_place: self.kind.may_be_in_place(), ..self }
    }

    /// The same as a step of another call of a program, if it is an all-gather: ranks agree on that call.
    #[must_use]
    pub fn step_of(self, step: CollectiveStep) -> Self {
        Self { step: (self.kind == CollectiveKind::AllGather).then_some(step), ..self }
    }

    /// The call of a program that it is a step of, if it is none itself.
    pub fn step(&self) -> Option<CollectiveStep> {
        self.step
    }

    /// What the program calls: the call that it is a step of, or its name.
    pub fn called(&self) -> &'static str {
        match self.step {
            Some(CollectiveStep::Split) => "split",
            None => self.name(),
        }
    }

    /// What it does.
    pub fn kind(&self) -> CollectiveKind {
        self.kind
    }

    /// The type of its elements.
    pub fn element(&self) -> CollectiveType {
        self.element
    }

    /// Its reduction, if it reduces.
    pub fn reduction_kind(&self) -> Option<Reduction> {
        self.reduction
    }

    /// Its root or peer, if it has one.
    pub fn root_rank(&self) -> Option<u32> {
        self.root.and_then(|root| u32::try_from(root).ok())
    }

    /// Whether input and output are one buffer.
    pub fn is_in_place(&self) -> bool {
        self.in_place
    }

    /// Whether a rank of so many can take part in it.
    ///
    /// # Errors
    /// A root or a peer that is no rank; a rank that would send to itself; a type that is not reduced.
    pub fn check(&self, rank: u32, size: u32) -> Result<(), OperationError> {
        let name = self.name();
        if self.kind.reduces() && !self.element.is_reducible() {
            let what = format!("elements of {} are moved and not reduced", self.element);
            return Err(OperationError::shape(name, what, "reduce elements of 32 bits"));
        }
        let Some(root) = self.root else { return Ok(()) };
        let word = if self.kind.has_peer() { "peer" } else { "root" };
        if root >= u64::from(size) {
            let what = format!("{word} {root} is no rank of a communicator of {size}");
            return Err(OperationError::shape(name, what, "name a rank below the size of the communicator"));
        }
        if self.kind.has_peer() && root == u64::from(rank) {
            let what = format!("rank {rank} is its own peer");
            return Err(OperationError::shape(name, what, "copy the buffer instead"));
        }
        Ok(())
    }

    /// Its name, without its keys.
    pub fn name(&self) -> &'static str {
        match self.kind {
            CollectiveKind::AllReduce => "all_reduce",
            CollectiveKind::Reduce => "reduce",
            CollectiveKind::Broadcast => "broadcast",
            CollectiveKind::AllGather => "all_gather",
            CollectiveKind::ReduceScatter => "reduce_scatter",
            CollectiveKind::AllToAll => "all_to_all",
            CollectiveKind::Gather => "gather",
            CollectiveKind::Scatter => "scatter",
            CollectiveKind::Send => "send",
            CollectiveKind::Recv => "recv",
            CollectiveKind::Barrier => "barrier",
        }
    }

    /// The buffers of one rank, in the order of the arguments. The count comes behind them. With a communicator of one rank, `size` is 1.
    pub fn operands(&self, rank: u32, size: u32) -> Vec<CollectiveOperand> {
        use OperandEffect::{Overwrites, Reads, ReadsAndWrites};
        let all = u64::from(size);
        let is_root = self.root == Some(u64::from(rank));
        let operand = |name, effect, blocks| CollectiveOperand { name, effect, blocks };
        let pair = |sent: u64, received: u64| match self.in_place {
            true => vec![operand("buffer", ReadsAndWrites, sent.max(received))],
            false => vec![operand("send", Reads, sent), operand("recv", Overwrites, received)],
        };
        match self.kind {
            CollectiveKind::AllReduce => pair(1, 1),
            CollectiveKind::AllGather => pair(1, all),
            CollectiveKind::ReduceScatter => pair(all, 1),
            CollectiveKind::AllToAll => pair(all, all),
            CollectiveKind::Reduce if is_root => pair(1, 1),
            CollectiveKind::Gather if is_root => pair(1, all),
            CollectiveKind::Scatter if is_root => match self.in_place {
                // The root's own block stays where it is.
                true => vec![operand("buffer", Reads, all)],
                false => pair(all, 1),
            },
            CollectiveKind::Broadcast if is_root => vec![operand("buffer", Reads, 1)],
            CollectiveKind::Broadcast => vec![operand("buffer", Overwrites, 1)],
            CollectiveKind::Reduce | CollectiveKind::Gather | CollectiveKind::Send => {
                vec![operand("send", Reads, 1)]
            }
            CollectiveKind::Scatter | CollectiveKind::Recv => vec![operand("recv", Overwrites, 1)],
            CollectiveKind::Barrier => vec![operand("scratch", ReadsAndWrites, 1)],
        }
    }
}

impl fmt::Display for Collective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        for key in self.kind.keys() {
            match *key {
                "element" => write!(f, " element={}", self.element)?,
                "reduction" => write!(f, " reduction={}", self.reduction.unwrap_or(Reduction::Sum))?,
                "in_place" => write!(f, " in_place={}", self.in_place)?,
                "step_of" => self.step.iter().try_for_each(|step| write!(f, " step_of={step}"))?,
                word => write!(f, " {word}={}", self.root.unwrap_or(0))?,
            }
        }
        Ok(())
    }
}

impl FromStr for Collective {
    type Err = OperationError;

    /// Parses a collective. Keys may stand in any order. Whether a rank can take part in it is for [`check`](Self::check) to say.
    fn from_str(text: &str) -> Result<Self, OperationError> {
        let mut words = text.split_ascii_whitespace();
        let name = words.next().unwrap_or("");
        let Some(kind) = <CollectiveKind as Field>::parse(name) else {
            let known: Vec<String> = CollectiveKind::ALL.iter().map(ToString::to_string).collect();
            return Err(OperationError::Name { name: name.to_owned(), known: known.join(", ") });
        };
        let mut parsed = Self::new(kind, CollectiveType::U8);
        let mut fields = Fields::new(parsed.name(), kind.keys(), words)?;
        for key in kind.keys() {
            match *key {
                "element" => parsed.element = fields.take("element")?,
                "reduction" => parsed.reduction = Some(fields.take("reduction")?),
                "in_place" => parsed.in_place = fields.take("in_place")?,
                "step_of" => parsed.step = fields.take_if_there("step_of")?,
                word => parsed.root = Some(fields.take(word)?),
            }
        }
        Ok(parsed)
    }
}
