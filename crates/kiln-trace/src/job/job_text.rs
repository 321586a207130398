//! A job in words.

use std::fmt::{self, Display, Formatter};

use super::job_explanation::{ClockAlignment, JobCollective, JobExplanation, RankLateness};
use crate::explain::{Bytes, Time};
use crate::plain_text::Plain;

/// Collectives and ranks that are named.
const NAMED: usize = 5;

impl Display for ClockAlignment {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::OneRecording => write!(f, "there is one recording"),
            Self::WallClock => write!(f, "aligned by the wall clock at which each recording began"),
            Self::FirstCollective { name, number } => write!(
                f,
                "aligned by the end of `{}` number {number}, the first collective that all recordings have, because not all say when they began",
                Plain(name)
            ),
            Self::EachCollective => write!(
                f,
                "not comparable, because the time of a simulated device is that of its machine, which stands still while a rank waits for others, or the program does something else; each collective is taken to end at one moment for its ranks, and the last rank is the one whose devices worked longest since the one before, or since its runtime was made"
            ),
            Self::SeveralClocks => write!(
                f,
                "not comparable, because some ranks have the clock of a host and others that of a simulated machine; only ranks with one clock are compared"
            ),
            Self::None => write!(
                f,
                "not aligned, each begins at zero: they have no collective with times in common, and not all say when they began, as those of simulated devices do not, whose time is that of their machine"
            ),
        }
    }
}

impl Display for JobCollective {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { name, communicator, number, .. } = self;
        let name = Plain(name);
        write!(f, "`{name}` number {number} ({}, communicator {communicator}): ", Bytes(self.bytes))?;
        match (self.parts.first(), self.parts.last(), self.late_ns()) {
            (Some(first), Some(last), ns @ 1..) => {
                write!(f, "rank {} came {} after the first, rank {}", last.rank, Time(ns), first.rank)?;
            }
            _ if !self.is_compared => write!(f, "who came last is not known")?,
            (Some(first), Some(last), _) if first.rank == last.rank => {
                write!(f, "only rank {} has a time", first.rank)?;
            }
            _ => write!(f, "all ranks came at once")?,
        }
        match &self.without_time[..] {
            [] => {}
            [one] => write!(f, "; rank {one} called it, and its time was not recorded")?,
            several => write!(f, "; {} ranks called it, and their times were not recorded", several.len())?,
        }
        match (self.ranks as usize).saturating_sub(self.parts.len() + self.without_time.len()) {
            0 => Ok(()),
            1 => write!(f, "; 1 of {} ranks is in no recording", self.ranks),
            missing => write!(f, "; {missing} of {} ranks are in no recording", self.ranks),
        }
    }
}

impl Display for RankLateness {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let times = if self.times == 1 { "once".to_owned() } else { format!("{} times", self.times) };
        let (ns, longest) = (Time(self.ns), Time(self.longest_ns));
        write!(f, "rank {} came last {times}, {ns} after the first altogether, at most {longest}", self.rank)
    }
}

impl Display for JobExplanation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.ranks.len() > 1 {
            writeln!(f, "{} recordings of one job", self.ranks.len())?;
        }
        // One recording may have several, too.
        if self.clocks != ClockAlignment::OneRecording {
            writeln!(f, "Clocks: {}", self.clocks)?;
        }
        self.unfinished.iter().filter(|_| self.ranks.len() > 1).try_for_each(|rank| {
            writeln!(f, "Rank {rank} has no end mark: it was killed or crashed, or still runs.")
        })?;
        if self.collectives.is_empty() {
            return writeln!(f, "No collective is in the recordings of two ranks.");
        }
        match self.collectives.len() {
            1 => writeln!(f, "1 collective of several ranks")?,
            count => writeln!(f, "{count} collectives of several ranks")?,
        }
        let latest = self.latest(NAMED);
        if !latest.is_empty() {
            writeln!(f, "\nRanks that came late:")?;
            latest.iter().try_for_each(|call| writeln!(f, "  {call}"))?;
            writeln!(f, "\nAltogether:")?;
            self.late.iter().take(NAMED).try_for_each(|rank| writeln!(f, "  {rank}"))?;
        }
        match self.left_out {
            0 => Ok(()),
            calls => writeln!(f, "\n{calls} later calls were not compared."),
        }
    }
}
