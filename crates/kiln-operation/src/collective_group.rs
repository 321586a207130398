//! Several collectives in one launch.

use std::fmt;
use std::str::FromStr;

use crate::collective::{Collective, CollectiveOperand};
use crate::error::OperationError;

/// The most collectives of a group. Its arguments must fit those of a launch.
pub const MAX_GROUP: usize = 128;

/// One collective or several that run as one, so that none waits for another of them. Its text is the name of a function of a communicator.
///
/// ```
/// use kiln_operation::{Collective, CollectiveGroup, CollectiveKind, CollectiveType};
///
/// let send = Collective::new(CollectiveKind::Send, CollectiveType::F32).root(1);
/// let recv = Collective::new(CollectiveKind::Recv, CollectiveType::F32).root(1);
/// let exchange = CollectiveGroup::new(vec![send, recv])?;
/// assert_eq!(exchange.to_string(), "send element=f32 peer=1; recv element=f32 peer=1");
/// assert_eq!(exchange.to_string().parse(), Ok(exchange));
/// # Ok::<(), kiln_operation::OperationError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct CollectiveGroup {
    collectives: Vec<Collective>,
}

impl CollectiveGroup {
    /// A group of these, in order.
    ///
    /// # Errors
    /// None of them, or more than [`MAX_GROUP`].
    pub fn new(collectives: Vec<Collective>) -> Result<Self, OperationError> {
        if collectives.is_empty() || collectives.len() > MAX_GROUP {
            let what = format!("a group of {} collectives", collectives.len());
            return Err(OperationError::shape("group", what, "put 1 to 128 into a group"));
        }
        Ok(Self { collectives })
    }

    /// Its collectives, in order.
    pub fn collectives(&self) -> &[Collective] {
        &self.collectives
    }

    /// Whether a rank of so many can take part in all of them.
    ///
    /// # Errors
    /// As for [`Collective::check`].
    pub fn check(&self, rank: u32, size: u32) -> Result<(), OperationError> {
        self.collectives.iter().try_for_each(|collective| collective.check(rank, size))
    }

    /// For each collective its buffers on one rank; the arguments are those buffers and a count, collective by collective.
    pub fn operands(&self, rank: u32, size: u32) -> Vec<Vec<CollectiveOperand>> {
        self.collectives.iter().map(|collective| collective.operands(rank, size)).collect()
    }
}

impl From<Collective> for CollectiveGroup {
    fn from(collective: Collective) -> Self {
        Self { collectives: vec![collective] }
    }
}

impl fmt::Display for CollectiveGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, collective) in self.collectives.iter().enumerate() {
            if at > 0 {
                f.write_str("; ")?;
            }
            collective.fmt(f)?;
        }
        Ok(())
    }
}

impl FromStr for CollectiveGroup {
    type Err = OperationError;

    fn from_str(text: &str) -> Result<Self, OperationError> {
        Self::new(text.split(';').map(str::parse).collect::<Result<_, _>>()?)
    }
}
