//! What ranks must agree on.

use std::fmt;

use kiln_operation::{Collective, CollectiveKind};

/// One collective as a rank called it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Description {
    pub(crate) collective: Collective,
    pub(crate) count: u64,
    /// Which collective of its launch it is, and how many those are. Sends and receives do not count.
    pub(crate) place: (usize, usize),
    /// Whether it is run by a graph.
    pub(crate) is_captured: bool,
}

/// What two ranks differ in: what, the value of the first, and of the second.
pub(crate) type Difference = (&'static str, String, String);

impl Description {
    /// What two calls that meet differ in, if they do. Whether one is in place does not matter.
    pub(crate) fn difference(&self, other: &Self) -> Option<Difference> {
        let (mine, theirs) = (&self.collective, &other.collective);
        let words = |what, mine: &dyn fmt::Display, theirs: &dyn fmt::Display| {
            Some((what, mine.to_string(), theirs.to_string()))
        };
        let is_pair = mine.kind().has_peer() && theirs.kind().has_peer();
        if mine.called() != theirs.called() && !is_pair {
            return words("kind", &mine.called(), &theirs.called());
        }
        if mine.element() != theirs.element() {
            return words("element type", &mine.element(), &theirs.element());
        }
        if let (Some(one), Some(other)) = (mine.reduction_kind(), theirs.reduction_kind())
            && one != other
        {
            return words("reduction", &one, &other);
        }
        if !is_pair && mine.root_rank() != theirs.root_rank() {
            let rank = |collective: &Collective| collective.root_rank().unwrap_or(0);
            return words("root", &format!("rank {}", rank(mine)), &format!("rank {}", rank(theirs)));
        }
        if self.count != other.count {
            return words("count", &format!("{} elements", self.count), &format!("{} elements", other.count));
        }
        if self.place != other.place && !is_pair {
            let place = |(at, of): (usize, usize)| format!("collective {} of {of} in its group", at + 1);
            return words("group", &place(self.place), &place(other.place));
        }
        if self.is_captured != other.is_captured {
            let way = |is_captured: bool| if is_captured { "in a graph" } else { "submitted" };
            return words("capture", &way(self.is_captured), &way(other.is_captured));
        }
        None
    }
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.collective.kind() {
            CollectiveKind::Barrier => f.write_str("barrier"),
            // Its lengths are none of the program's.
            _ if self.collective.step().is_some() => f.write_str(self.collective.called()),
            _ => write!(f, "{} of {} {}", self.collective.name(), self.count, self.collective.element()),
        }
    }
}
