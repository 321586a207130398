//! The thread of a rank that shows that the rank is there, as the kernel of its host knows it.
//!
//! A process that is killed stops at once. The system closes what it has in the order it likes, and with a GPU that takes seconds: connections that were opened before the GPU was are closed
//! after it. The kernel says earlier that a thread has ended or has begun to.

use std::fs;
use std::io;

/// The mark of a thread that ends, in its flags.
const PF_EXITING: u64 = 4;
/// Looks at which a thread has ended before that is said: a rank that leaves as planned has said so by then.
const ENDED_LOOKS: u32 = 3;

/// A thread of a process, of which the kernel tells processes of the same host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct RankThread {
    process: u32,
    thread: u32,
    /// When it began, in the kernel's count: a later thread may get the same number.
    began: u64,
}

/// What the kernel says of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ThreadState {
    Runs,
    /// It is gone, or has begun to end.
    Ended,
    Unknown,
}

impl RankThread {
    /// The thread that asks; none where the kernel does not say.
    pub(super) fn own() -> Option<Self> {
        let link = fs::read_link("/proc/thread-self").ok()?;
        let mut numbers = link.to_str()?.split('/').filter_map(|part| part.parse().ok());
        let (process, thread) = (numbers.next()?, numbers.next()?);
        let mut own = Self { process, thread, began: 0 };
        own.began = began(&fs::read_to_string(own.path()).ok()?)?;
        Some(own)
    }

    /// What names this host and the processes that a number names on it; none where that is not said.
    pub(super) fn own_host() -> Option<String> {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let numbers = fs::read_link("/proc/self/ns/pid").ok()?;
        Some(format!("{} {}", boot.trim(), numbers.to_str()?))
    }

    /// Reads what [`Display`](std::fmt::Display) wrote.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let mut number = || words.next()?.parse::<u64>().ok();
        let (process, thread, began) = (number()?, number()?, number()?);
        let is_whole = words.next().is_none();
        let read = Self { process: process.try_into().ok()?, thread: thread.try_into().ok()?, began };
        is_whole.then_some(read)
    }

    pub(super) fn state(&self) -> ThreadState {
        match fs::read_to_string(self.path()) {
            Ok(stat) => self.state_in(&stat),
            Err(error) if error.kind() == io::ErrorKind::NotFound => ThreadState::Ended,
            // The thread ended between the opening of the file and the reading.
            Err(error) if error.raw_os_error() == Some(3) => ThreadState::Ended,
            Err(_) => ThreadState::Unknown,
        }
    }

    /// Whether its whole process has ended, or has begun to.
    pub(super) fn process_has_ended(&self) -> bool {
        match fs::read_to_string(Self { thread: self.process, ..self.clone() }.path()) {
            Ok(stat) => flags(&stat).is_some_and(|flags| flags & PF_EXITING != 0),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }

    fn state_in(&self, stat: &str) -> ThreadState {
        match (flags(stat), began(stat)) {
            (Some(_), Some(began)) if began != self.began => ThreadState::Ended,
            (Some(flags), Some(_)) if flags & PF_EXITING != 0 => ThreadState::Ended,
            (Some(_), Some(_)) => ThreadState::Runs,
            _ => ThreadState::Unknown,
        }
    }

    fn path(&self) -> String {
        format!("/proc/{}/task/{}/stat", self.process, self.thread)
    }
}

impl std::fmt::Display for RankThread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}", self.process, self.thread, self.began)
    }
}

/// What was seen of the thread of another rank.
#[derive(Default)]
pub(super) struct ThreadWatch {
    of: Option<(u32, RankThread)>,
    /// It was seen to run, so that the kernel tells this process of it.
    has_run: bool,
    ended_looks: u32,
}

impl ThreadWatch {
    /// Whether the thread of a rank has ended; true once.
    pub(super) fn has_ended(&mut self, watched: &(u32, RankThread)) -> bool {
        if self.of.as_ref() != Some(watched) {
            *self = Self { of: Some(watched.clone()), ..Self::default() };
        }
        match watched.1.state() {
            ThreadState::Runs => (self.has_run, self.ended_looks) = (true, 0),
            ThreadState::Ended if self.has_run => self.ended_looks += 1,
            _ => {}
        }
        self.ended_looks == ENDED_LOOKS
    }
}

/// A number behind the name, which may contain anything.
fn field(stat: &str, place: usize) -> Option<u64> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(place)?.parse().ok()
}

fn flags(stat: &str) -> Option<u64> {
    field(stat, 6)
}

fn began(stat: &str) -> Option<u64> {
    field(stat, 19)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
mod tests {
    use super::*;

    const STAT: &str = "7 (a) b) S 1 7 7 0 -1 4194304 133 0 0 0 0 0 0 0 20 0 1 0 3803920 2990080 421";

    #[test]
    fn a_thread_runs_until_it_ends_or_another_has_its_number() {
        let thread = RankThread { process: 7, thread: 9, began: 3_803_920 };
        assert_eq!(thread.state_in(STAT), ThreadState::Runs);
        assert_eq!(thread.state_in(&STAT.replace("4194304", "4194308")), ThreadState::Ended);
        assert_eq!(RankThread { began: 1, ..thread.clone() }.state_in(STAT), ThreadState::Ended);
        assert_eq!(thread.state_in(""), ThreadState::Unknown);
        assert_eq!(RankThread::parse(&thread.to_string()), Some(thread));
        for wrong in ["", "1 2", "1 2 3 4", "a 2 3", "99999999999 2 3"] {
            assert_eq!(RankThread::parse(wrong), None);
        }
    }

    #[test]
    fn the_end_of_a_thread_is_seen() {
        let (told, hears) = std::sync::mpsc::channel();
        let (end, ends) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            told.send(RankThread::own()).unwrap();
            ends.recv().unwrap_err();
        });
        let Some(seen) = hears.recv().unwrap() else { return };
        assert_eq!(seen.state(), ThreadState::Runs);
        drop(end);
        thread.join().unwrap();
        // The kernel removes it a moment later.
        while seen.state() != ThreadState::Ended {
            std::thread::yield_now();
        }
    }
}
