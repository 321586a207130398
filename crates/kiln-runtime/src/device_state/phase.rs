//! The phases of a device's life, and the table of what may follow what.

use std::fmt;

/// What a device is doing.
///
/// ```
/// use kiln::recovery::Phase;
///
/// assert!(Phase::Ready.may_become(Phase::Lost));
/// assert!(!Phase::Failed.may_become(Phase::Ready));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Phase {
    /// Its runtime is being built.
    Starting,
    /// It takes work.
    Ready,
    /// Its context is gone; whether it comes back is not decided.
    Lost,
    /// Its context is being built again.
    Rebuilding,
    /// It is gone for good.
    Failed,
    /// It takes no new work and finishes what it has.
    ShuttingDown,
    /// Nothing is left to do, and nothing will change any more.
    Stopped,
}

/// Every change there is.
const TABLE: &[(Phase, &[Phase])] = &[
    (Phase::Starting, &[Phase::Ready, Phase::Lost, Phase::Failed, Phase::ShuttingDown]),
    (Phase::Ready, &[Phase::Lost, Phase::ShuttingDown]),
    (Phase::Lost, &[Phase::Rebuilding, Phase::Failed, Phase::ShuttingDown]),
    (Phase::Rebuilding, &[Phase::Ready, Phase::Lost, Phase::Failed, Phase::ShuttingDown]),
    (Phase::Failed, &[Phase::ShuttingDown]),
    (Phase::ShuttingDown, &[Phase::Stopped]),
    (Phase::Stopped, &[]),
];

impl Phase {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Starting,
        Self::Ready,
        Self::Lost,
        Self::Rebuilding,
        Self::Failed,
        Self::ShuttingDown,
        Self::Stopped,
    ];

    /// The phases that may follow this one.
    pub fn successors(self) -> &'static [Self] {
        TABLE.iter().find(|(from, _)| *from == self).map_or(&[], |(_, to)| to)
    }

    /// Whether that phase may follow this one.
    pub fn may_become(self, next: Self) -> bool {
        self.successors().contains(&next)
    }

    /// Whether nothing good can follow any more.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Failed | Self::ShuttingDown | Self::Stopped)
    }

    pub(super) fn from_number(number: u8) -> Self {
        Self::ALL.get(usize::from(number)).copied().unwrap_or(Self::Stopped)
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Lost => "lost",
            Self::Rebuilding => "rebuilding",
            Self::Failed => "failed",
            Self::ShuttingDown => "shutting down",
            Self::Stopped => "stopped",
        })
    }
}

/// A change that the table does not have. Nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a device that is {from} cannot become {to}; {}", next(*from))]
pub struct ForbiddenChange {
    /// What it is.
    pub from: Phase,
    /// What it was to become.
    pub to: Phase,
}

fn next(from: Phase) -> String {
    match from.successors() {
        [] => "it stays what it is".into(),
        allowed => {
            let names: Vec<String> = allowed.iter().map(ToString::to_string).collect();
            format!("it can become {}", names.join(" or "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_name_phases_and_every_phase_has_a_row() {
        for (number, phase) in Phase::ALL.into_iter().enumerate() {
            assert_eq!((phase as usize, Phase::from_number(number as u8)), (number, phase));
            assert_eq!(TABLE.iter().filter(|(from, _)| *from == phase).count(), 1);
        }
    }

    #[test]
    fn every_phase_leads_to_stopped_and_nothing_leads_out_of_it() {
        for phase in Phase::ALL {
            let mut reached = vec![phase];
            let mut at = 0;
            while let Some(here) = reached.get(at).copied() {
                let new = here.successors().iter().filter(|next| !reached.contains(next));
                let new: Vec<Phase> = new.copied().collect();
                reached.extend(new);
                at += 1;
            }
            assert!(reached.contains(&Phase::Stopped), "{phase}");
        }
        assert!(Phase::Stopped.successors().is_empty());
    }

    #[test]
    fn a_forbidden_change_says_what_is_allowed() {
        let text = ForbiddenChange { from: Phase::Ready, to: Phase::Starting }.to_string();
        assert_eq!(
            text,
            "a device that is ready cannot become starting; it can become lost or shutting down"
        );
    }
}
