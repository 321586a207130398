//! An explanation in words.

use std::fmt::{self, Display, Formatter};

use super::explanation::{
    ExplainedClock, ExplainedCollective, ExplainedDevice, ExplainedFinding, ExplainedHostWait, Explanation,
    HeldTag, IdleReason, IdleWhy, RefusedAllocation, WorkName,
};
use super::idle_knowledge::UnknownIdle;
use super::quantity::{Bytes, Share, Time};
use crate::plain_text::Plain;
use crate::record::RecordingClock;

/// Tags that are named.
const NAMED_TAGS: usize = 3;
/// Letters of a tag that are shown.
const MAX_TAG_LETTERS: usize = 100;

impl Display for Explanation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.tell(f)?;
        let Some(repeat) = self.repeat_line() else { return Ok(()) };
        writeln!(f, "\n{repeat}")?;
        self.repeat_lacks.iter().try_for_each(|lacks| writeln!(f, "  ({lacks})"))
    }
}

/// An explanation without the command that repeats the run.
struct Story<'e>(&'e Explanation);

impl Display for Story<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.tell(f)
    }
}

impl Explanation {
    /// All but the command that repeats the run.
    pub fn story(&self) -> impl Display {
        Story(self)
    }

    /// The line with the command that repeats the run, if it is known. It is pasted into a shell, so it must not be broken. What the command lacks is
    /// in [`repeat_lacks`](Self::repeat_lacks).
    pub fn repeat_line(&self) -> Option<String> {
        let how = if self.records_itself { " (which records it again)" } else { "" };
        self.repeat.as_ref().map(|repeat| format!("To repeat it{how}: {repeat}"))
    }

    /// What the clocks of its times are.
    fn clock_words(&self) -> &'static str {
        let count = self.clocks.iter().filter(|clock| clock.is_virtual).count();
        match count {
            _ if self.is_virtual => " (in virtual time)",
            0 => "",
            _ => " (in time of the host and in virtual time)",
        }
    }

    /// Says that there are several clocks, and what that means.
    fn tell_clocks(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.clocks.len() < 2 {
            return Ok(());
        }
        write!(f, "Its devices have {} clocks", self.clocks.len())?;
        match self.is_virtual {
            true => write!(f, ", because they are not of one simulated machine. ")?,
            false => write!(f, ": that of the host, and one for each simulated machine. ")?,
        }
        write!(f, "Times of different clocks cannot be compared. ")?;
        write!(
            f,
            "The clock of a simulated machine stands still while the program works with devices of the others, so that how long its devices were idle meanwhile is not known."
        )?;
        match self.is_virtual {
            true => writeln!(f),
            false => writeln!(f, " The clock of the host never stands still."),
        }
    }

    /// The waits of the program, apart by the clock on which they were measured.
    fn tell_host_waits(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let has_one = self.clocks.len() < 2;
        let mut clock = None;
        for (at, wait) in self.host_waits.iter().enumerate() {
            if clock.replace(wait.clock) != Some(wait.clock) {
                match self.clocks.iter().find(|known| known.clock == wait.clock).filter(|_| !has_one) {
                    Some(known) => writeln!(f, "\nThe program itself waited, on {known}:")?,
                    None => writeln!(f, "\nThe program itself waited:")?,
                }
            }
            writeln!(f, "  {wait}")?;
            let is_last = self.host_waits.get(at + 1).is_none_or(|next| next.clock != wait.clock);
            let more = self.more_host_waits.iter().find(|more| is_last && more.clock == wait.clock);
            more.map_or(Ok(()), |more| more.left_out.tell(f, "  ", ("line", "lines")))?;
        }
        Ok(())
    }

    /// What the checks of devices found.
    fn tell_findings(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.finding_count == 0 {
            return Ok(());
        }
        writeln!(f, "\nFindings of the checks:")?;
        self.findings.iter().try_for_each(|finding| writeln!(f, "  {finding}"))?;
        let told = self.findings.iter().fold(0_u64, |sum, finding| sum.saturating_add(finding.times));
        match self.finding_count.saturating_sub(told) {
            0 => Ok(()),
            more => writeln!(f, "  and {more} more"),
        }
    }

    fn tell(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let clock = self.clock_words();
        match &*self.program {
            "" => writeln!(f, "Recording{clock}")?,
            program => writeln!(f, "Recording of {}{clock}", Plain(program))?,
        }
        self.tell_clocks(f)?;
        if self.damaged_blocks > 0 {
            let places = if self.damaged_blocks == 1 {
                "1 damaged block is".to_owned()
            } else {
                format!("{} damaged blocks are", self.damaged_blocks)
            };
            writeln!(f, "{places} left out ({} bytes).", self.skipped_bytes)?;
        }
        if !self.is_whole && self.damaged_blocks > 0 {
            writeln!(f, "It has no end mark; it may be in what is damaged.")?;
        } else if !self.is_whole {
            writeln!(
                f,
                "It ended without an end mark: the program was killed or crashed, ended without its exit handlers (`_exit`), or still runs."
            )?;
        }
        for clock in &self.clocks {
            if self.clocks.len() > 1 {
                writeln!(f, "\n{}:", clock.to_string().replacen('c', "C", 1))?;
            }
            for device in self.devices.iter().filter(|device| device.clock == clock.clock) {
                writeln!(f)?;
                device.describe(f, self.is_whole && self.missing_events == 0 && self.damaged_blocks == 0)?;
            }
        }
        if self.devices.is_empty() && !self.is_whole {
            writeln!(f, "\nNothing that a device did was written before the end.")?;
        } else if self.devices.is_empty() {
            writeln!(f, "\nNo device did anything.")?;
        }
        self.tell_host_waits(f)?;
        if !self.faults.is_empty() {
            writeln!(f, "\nFaults:")?;
            self.faults.iter().try_for_each(|fault| writeln!(f, "  {}", Plain(fault)))?;
        }
        self.post_mortems.iter().try_for_each(|found| write!(f, "\n{found}"))?;
        self.tell_findings(f)?;
        if !self.collectives.is_empty() {
            writeln!(f, "\nCollectives:")?;
            let has_virtual = self.is_virtual || self.clocks.iter().any(|clock| clock.is_virtual);
            self.collectives.iter().try_for_each(|kind| {
                write!(f, "  ")?;
                kind.describe(f, has_virtual)?;
                writeln!(f)
            })?;
            self.more_collectives.tell(
                f,
                "  ",
                ("kind, communicator or rank", "kinds, communicators or ranks"),
            )?;
        }
        if let Some(why) = &self.missing_why {
            writeln!(f, "\n{why}")?;
        }
        Ok(())
    }
}

impl Display for ExplainedClock {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let kind = if self.is_virtual { RecordingClock::Virtual } else { RecordingClock::Wall };
        write!(f, "clock {} ({})", self.clock, kind.words())
    }
}

impl Display for ExplainedFinding {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Plain(&self.rule))?;
        if let Some(line) = &self.line {
            write!(f, " at {}", Plain(line))?;
        }
        if self.times > 1 {
            write!(f, ", {}, first", times(self.times))?;
        } else if self.work.is_some() {
            write!(f, ",")?;
        }
        if let Some(work) = &self.work {
            write!(f, " in {work}")?;
        }
        write!(f, ": {}", Plain(&self.message))
    }
}

impl Display for ExplainedDevice {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.describe(f, true)
    }
}

impl ExplainedDevice {
    /// All of it; `is_whole` if the program ended the recording itself, and no event is missing.
    fn describe(&self, f: &mut Formatter<'_>, is_whole: bool) -> fmt::Result {
        self.work(f)?;
        self.takeovers(f)?;
        self.memory(f, is_whole)
    }

    /// How often it was lost, and what that cost.
    fn takeovers(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match (self.losses, self.brought_back) {
            (0, 0) => return Ok(()),
            (1, 0) => return writeln!(f, "  The device was lost, and was not brought back."),
            (losses, 0) => {
                return writeln!(f, "  The device was lost {}, and was not brought back.", times(losses));
            }
            (losses, back) if losses <= back => {
                write!(f, "  The device was lost and brought back {}", times(back))?;
            }
            (losses, back) => {
                write!(f, "  The device was lost {} and brought back {}", times(losses), times(back))?;
            }
        }
        let all = self.takeovers.iter().fold(0_u64, |sum, step| sum.saturating_add(step.ns));
        let steps: Vec<String> =
            self.takeovers.iter().map(|step| format!("{} {}", step.phase.word(), Time(step.ns))).collect();
        writeln!(f, ", {}: {}", Time(all), steps.join(", "))
    }

    /// What ran, and why nothing did.
    fn work(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let name = if self.name.is_empty() { String::new() } else { format!(" ({})", Plain(&self.name)) };
        write!(
            f,
            "Device {}{name}: {} {} in {}",
            self.device,
            self.submissions,
            if self.submissions == 1 { "submission" } else { "submissions" },
            Time(self.span_ns)
        )?;
        match (self.idle_unknown, self.busy_ns) {
            (Some(UnknownIdle::ClockStandsStill), Some(busy)) => {
                writeln!(f, " of its clock, in which it ran work for {}", Time(busy))?
            }
            (Some(UnknownIdle::NotMeasured), _) => {
                writeln!(f, "; when they ran was not measured, so that idle time is not known")?;
            }
            (Some(why), _) => writeln!(f, "; {why}, so that idle time is not known")?,
            (None, Some(busy)) => {
                let idle = self.span_ns.saturating_sub(busy).saturating_sub(self.unknown_ns);
                let share = Share { part: idle, whole: self.span_ns };
                writeln!(f, ", idle {} ({share})", Time(idle))?;
            }
            (None, None) => writeln!(f)?,
        }
        if self.earlier_ns > 0 {
            let earlier = Time(self.earlier_ns);
            writeln!(
                f,
                "  {earlier}: it still had work that was submitted before the recording began, so that it is not known whether it was idle"
            )?;
        }
        if self.busy_ns.is_some() && self.untimed_submissions > 0 {
            let unknown_ns = self.unknown_ns.saturating_sub(self.earlier_ns);
            let (count, unknown) = (self.untimed_submissions, Time(unknown_ns));
            let were = if count == 1 { "submission was" } else { "submissions were" };
            write!(f, "  {count} {were} not measured")?;
            match unknown_ns {
                0 => writeln!(f)?,
                _ => writeln!(f, ", so that of {unknown} it is not known whether it was idle")?,
            }
        }
        self.idle.iter().try_for_each(|reason| writeln!(f, "  {reason}"))?;
        self.more_idle.tell(f, "  ", ("reason", "reasons"))?;
        let told = self.idle.iter().filter(|reason| reason.why == IdleWhy::HostBusy);
        let told_ns = told.fold(0, |sum: u64, reason| sum.saturating_add(reason.ns));
        if self.not_submitted_ns > told_ns {
            let late = Time(self.not_submitted_ns);
            writeln!(
                f,
                "  {late} of all that: the program had not submitted the next work, whatever that was"
            )?;
        }
        if !self.stalls.is_empty() {
            writeln!(f, "  Streams waited for each other:")?;
            self.stalls.iter().try_for_each(|stall| writeln!(f, "    {stall}"))?;
            self.more_stalls.tell(f, "    ", ("wait", "waits"))?;
        }
        if !self.asked_stalls.is_empty() {
            writeln!(f, "  Waits that were the program's own doing:")?;
            self.asked_stalls.iter().try_for_each(|stall| writeln!(f, "    {stall}"))?;
            self.more_asked_stalls.tell(f, "    ", ("wait", "waits"))?;
        }
        Ok(())
    }

    /// Who held memory, and what was refused.
    fn memory(&self, f: &mut Formatter<'_>, is_whole: bool) -> fmt::Result {
        if self.peak_bytes > 0 {
            let (peak, at) = (Bytes(self.peak_bytes), Time(self.peak_ns));
            write!(f, "  Most memory in use: {peak}, {at} after the beginning")?;
            match self.heap_peak_bytes {
                0 => writeln!(f)?,
                held => {
                    writeln!(f, "; {} took up to {} from the device", holder(self.is_pool), Bytes(held))?;
                }
            }
            let largest = self.memory.iter().filter(|tag| tag.peak_bytes > 0).take(NAMED_TAGS);
            for tag in largest {
                let share = Share { part: tag.peak_bytes, whole: self.peak_bytes };
                writeln!(f, "    {} ({share}) {}", Bytes(tag.peak_bytes), tag_words(&tag.tag))?;
            }
            self.left(f, is_whole)?;
        }
        self.heap_changes.iter().try_for_each(|change| writeln!(f, "  Memory: {change}"))?;
        self.refused.iter().try_for_each(|refused| writeln!(f, "  {refused}"))?;
        match self.refusals.saturating_sub(self.refused.len() as u64) {
            0 => Ok(()),
            1 => writeln!(f, "  1 more allocation was refused."),
            more => writeln!(f, "  {more} more allocations were refused."),
        }
    }

    /// What was not given back.
    fn left(&self, f: &mut Formatter<'_>, is_whole: bool) -> fmt::Result {
        let mut left: Vec<&HeldTag> = self.memory.iter().filter(|tag| tag.left_bytes > 0).collect();
        left.sort_by_key(|tag| std::cmp::Reverse(tag.left_bytes));
        if !left.is_empty() {
            let when = if is_whole { "Not given back by the end" } else { "Held when the recording stops" };
            writeln!(f, "  {when}:")?;
        }
        for tag in left.iter().take(NAMED_TAGS) {
            let line =
                tag.left_line.as_ref().map(|line| format!(", most by {}", Plain(line))).unwrap_or_default();
            let since = tag.left_since_ns.map(|since| format!(", the oldest since {}", Time(since)));
            let blocks = if tag.left_blocks == 1 {
                "1 block".to_owned()
            } else {
                format!("{} blocks", tag.left_blocks)
            };
            let (bytes, words) = (Bytes(tag.left_bytes), tag_words(&tag.tag));
            writeln!(f, "    {bytes} in {blocks} {words}{line}{}", since.unwrap_or_default())?;
        }
        let rest = left.get(NAMED_TAGS..).unwrap_or_default();
        let bytes = Bytes(rest.iter().map(|tag| tag.left_bytes).sum());
        match rest.len() {
            0 => Ok(()),
            1 => writeln!(f, "    and 1 more tag: {bytes}"),
            more => writeln!(f, "    and {more} more tags: {bytes} altogether"),
        }
    }
}

/// What has the memory of a device.
fn holder(is_pool: bool) -> &'static str {
    if is_pool { "the driver's pool" } else { "the heap" }
}

impl Display for RefusedAllocation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (bytes, at) = (Bytes(self.bytes), Time(self.time_ns));
        let line = self.line.as_ref().map(|line| format!(" at {}", Plain(line))).unwrap_or_default();
        let kind = if self.is_too_large { "Refused" } else { "Out of memory" };
        write!(f, "{kind}: {bytes} were asked for{line}, {at} after the beginning")?;
        if self.is_too_large {
            return write!(f, ", which is more than any block can have");
        }
        if let Some(limit) = self.limit_bytes {
            write!(f, ", with a limit of {}", Bytes(limit))?;
        }
        write!(f, "; {} held {}", holder(self.is_pool), Bytes(self.held_bytes))?;
        if self.free_bytes > 0 {
            write!(f, ", {} free", Bytes(self.free_bytes))?;
            write!(f, " with a largest piece of {}", Bytes(self.largest_free_bytes))?;
        }
        for (tag, before) in
            self.tags.iter().zip(std::iter::once("; most was held by ").chain(std::iter::repeat(", ")))
        {
            let name = if tag.tag.is_empty() {
                "memory without a tag".to_owned()
            } else {
                format!("`{}`", shown_tag(&tag.tag))
            };
            write!(f, "{before}{name} ({})", Bytes(tag.bytes))?;
        }
        Ok(())
    }
}

impl Display for ExplainedCollective {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.describe(f, false)
    }
}

impl ExplainedCollective {
    fn describe(&self, f: &mut Formatter<'_>, is_virtual: bool) -> fmt::Result {
        let Self { name, communicator, rank, ranks, .. } = self;
        let name = Plain(name);
        write!(f, "`{name}` {}, {} altogether", times(self.calls), Bytes(self.bytes))?;
        if let (Some(ns), Some(longest)) = (self.ns, self.longest_ns) {
            // Between processes, the time of a simulated device stands still during that wait.
            let with = if is_virtual { "" } else { " with the wait for others" };
            write!(f, ", {} on the device{with}, at most {}", Time(ns), Time(longest))?;
        }
        write!(f, " (rank {rank} of {ranks}, communicator {communicator})")
    }
}

impl Display for IdleReason {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", Costs(self.ns, self.times, self.longest_ns))?;
        let before = &self.before;
        match &self.why {
            IdleWhy::HostWait { cause, line } => {
                let line = line.as_ref().map(|line| format!(" at {}", Plain(line))).unwrap_or_default();
                write!(
                    f,
                    "the program was in `{}`{line} and had queued nothing more; next came {before}",
                    cause.words()
                )
            }
            IdleWhy::HostBusy => write!(f, "the program had not submitted {before} yet"),
            IdleWhy::OtherDevice { writer } => {
                write!(f, "{before} waited for {writer} on device {}", writer.device)
            }
            IdleWhy::Takeover { phase } => {
                write!(f, "the device was lost and brought back ({})", phase.word())
            }
            IdleWhy::Start => write!(f, "queued work had not started; the longest was {before}"),
        }
    }
}

impl Display for ExplainedHostWait {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}: `{}`", Costs(self.ns, self.times, self.longest_ns), self.cause.words())?;
        if let Some(line) = &self.line {
            write!(f, " at {}", Plain(line))?;
        }
        match &self.awaited {
            Some(awaited) => write!(f, ", the longest for {awaited}"),
            None => Ok(()),
        }
    }
}

impl Display for WorkName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (stream, number) = (self.stream, self.number);
        match (&*self.name, &self.line) {
            ("", _) => write!(f, "submission {number} on stream {stream}"),
            (name, None) => write!(f, "`{}` (stream {stream}, submission {number})", Plain(name)),
            (name, Some(line)) => {
                write!(f, "`{}` ({}, stream {stream}, submission {number})", Plain(name), Plain(line))
            }
        }
    }
}

/// Altogether, how often, and the longest.
pub(super) struct Costs(pub(super) u64, pub(super) u64, pub(super) u64);

impl Display for Costs {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self(ns, times, longest) = *self;
        match times {
            1 => write!(f, "{}", Time(ns)),
            _ => write!(f, "{} in {times} times, at most {}", Time(ns), Time(longest)),
        }
    }
}

fn times(times: u64) -> String {
    if times == 1 { "once".to_owned() } else { format!("{times} times") }
}

fn tag_words(tag: &str) -> String {
    if tag.is_empty() { "without a tag".to_owned() } else { format!("of `{}`", shown_tag(tag)) }
}

/// A tag as it is shown, a long one not whole.
pub(super) fn shown_tag(tag: &str) -> String {
    match tag.char_indices().nth(MAX_TAG_LETTERS) {
        None => Plain(tag).to_string(),
        Some((end, _)) => format!("{}…", Plain(tag.get(..end).unwrap_or(tag))),
    }
}
