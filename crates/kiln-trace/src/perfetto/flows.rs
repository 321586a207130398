//! Which arrows there are.
//!
//! An arrow begins at work that was submitted before the wait for it is known, so that a first look at the whole recording finds out who
//! is waited for. An arrow is drawn only if both ends are in the recording.

use std::collections::HashMap;

use crate::record::{StreamWaitRecord, TraceEvent, TraceStamp, TraceStream};

/// The waits of each stream whose waiter has not come yet.
#[derive(Default)]
pub(super) struct OpenWaits<T> {
    open: HashMap<TraceStream, Vec<(u64, T)>>,
}

impl<T> OpenWaits<T> {
    /// A wait, and what is to be known when its waiter comes.
    pub(super) fn add(&mut self, wait: &StreamWaitRecord<'_>, known: T) {
        self.open.entry(wait.waiter.stream).or_default().push((wait.waiter.number, known));
    }

    /// The waits of a submission: those queued under its number, or under an earlier one that had no work.
    pub(super) fn take(&mut self, waiter: TraceStamp, mut with: impl FnMut(T)) {
        let Some(open) = self.open.get_mut(&waiter.stream) else { return };
        let mut at = 0;
        while let Some((number, _)) = open.get(at) {
            if *number <= waiter.number { with(open.remove(at).1) } else { at += 1 }
        }
    }
}

/// A submission in eight bytes: its stream by number, and its own number. Recordings have fewer of both.
type PackedStamp = u64;
const NUMBER_BITS: u32 = 40;
/// A submission that is not in the recording, or has too large numbers.
const UNKNOWN: PackedStamp = u64::MAX;

/// Streams by number.
#[derive(Default)]
struct StreamNumbers(HashMap<TraceStream, u64>);

impl StreamNumbers {
    fn pack(&mut self, stamp: TraceStamp) -> PackedStamp {
        let next = self.0.len() as u64;
        packed(*self.0.entry(stamp.stream).or_insert(next), stamp.number)
    }

    fn find(&self, stamp: TraceStamp) -> PackedStamp {
        self.0.get(&stamp.stream).map_or(UNKNOWN, |stream| packed(*stream, stamp.number))
    }
}

fn packed(stream: u64, number: u64) -> PackedStamp {
    let fits = number < 1 << NUMBER_BITS && stream < (1 << (64 - NUMBER_BITS)) - 1;
    if fits { stream << NUMBER_BITS | number } else { UNKNOWN }
}

/// All arrows of a recording, by the submission they begin at: twelve bytes for each.
#[derive(Default)]
pub(super) struct Flows {
    streams: StreamNumbers,
    /// Where each arrow begins; unknown if it is not drawn. The first has number 0.
    writers: Vec<PackedStamp>,
    /// The arrows that are drawn, sorted by where they begin.
    drawn: Vec<u32>,
}

impl Flows {
    /// Arrows that are drawn.
    pub(super) fn drawn(&self) -> u64 {
        self.drawn.len() as u64
    }

    /// Waits with an end that is not in the recording.
    pub(super) fn left_out(&self) -> u64 {
        (self.writers.len() - self.drawn.len()) as u64
    }

    /// Whether an arrow is drawn.
    pub(super) fn is_drawn(&self, arrow: u64) -> bool {
        usize::try_from(arrow).is_ok_and(|arrow| self.writer(arrow) != UNKNOWN)
    }

    /// Collects the arrows that begin at a submission.
    pub(super) fn from(&self, writer: TraceStamp, arrows: &mut Vec<u64>) {
        let writer = self.streams.find(writer);
        if writer == UNKNOWN {
            return;
        }
        let first = self.drawn.partition_point(|arrow| self.writer(*arrow as usize) < writer);
        let own = self.drawn.iter().skip(first).take_while(|arrow| self.writer(**arrow as usize) == writer);
        arrows.extend(own.map(|arrow| u64::from(*arrow)));
    }

    fn writer(&self, arrow: usize) -> PackedStamp {
        self.writers.get(arrow).copied().unwrap_or(UNKNOWN)
    }
}

/// The first look at a recording.
#[derive(Default)]
pub(super) struct FlowFinder {
    open: OpenWaits<TraceStamp>,
    streams: StreamNumbers,
    /// The writer of each wait whose waiter came, in the order of the waiters.
    writers: Vec<PackedStamp>,
    /// Numbers that were submitted, as ranges without gaps.
    submitted: HashMap<u64, Vec<(u64, u64)>>,
}

/// Places that are added at once to a list that may become long, which doubling would make twice as long as it has to be.
const MORE: usize = 1 << 16;

impl FlowFinder {
    pub(super) fn see(&mut self, event: &TraceEvent<'_>) {
        match event {
            TraceEvent::StreamWait(wait) => self.open.add(wait, wait.writer),
            TraceEvent::Submission(work) => {
                let (streams, writers) = (&mut self.streams, &mut self.writers);
                self.open.take(work.stamp, |writer| {
                    if writers.len() == writers.capacity() {
                        writers.reserve_exact((writers.len() / 8).max(MORE));
                    }
                    writers.push(streams.pack(writer));
                });
                let stamp = streams.pack(work.stamp);
                if stamp == UNKNOWN {
                    return;
                }
                let ranges = self.submitted.entry(stamp >> NUMBER_BITS).or_default();
                match ranges.last_mut() {
                    Some((_, last)) if last.checked_add(1) == Some(work.stamp.number) => {
                        *last = work.stamp.number
                    }
                    _ => ranges.push((work.stamp.number, work.stamp.number)),
                }
            }
            _ => {}
        }
    }

    pub(super) fn finish(mut self) -> Flows {
        self.submitted.values_mut().for_each(|ranges| ranges.sort_unstable());
        let is_known = |stamp: PackedStamp| {
            let number = stamp & ((1 << NUMBER_BITS) - 1);
            self.submitted.get(&(stamp >> NUMBER_BITS)).is_some_and(|ranges| {
                let behind = ranges.partition_point(|(first, _)| *first <= number);
                let before = behind.checked_sub(1).and_then(|at| ranges.get(at));
                before.is_some_and(|(_, last)| number <= *last)
            })
        };
        let mut count = 0;
        // Arrows have numbers of 32 bits, and there are not so many.
        for (writer, arrow) in self.writers.iter_mut().zip(0_u64..) {
            match is_known(*writer) && arrow <= u64::from(u32::MAX) {
                true => count += 1,
                false => *writer = UNKNOWN,
            }
        }
        let mut drawn = Vec::with_capacity(count);
        drawn.extend(
            self.writers
                .iter()
                .zip(0_u32..)
                .filter(|(writer, _)| **writer != UNKNOWN)
                .map(|(_, arrow)| arrow),
        );
        let writers = self.writers;
        drawn.sort_unstable_by_key(|arrow| (writers.get(*arrow as usize).copied(), *arrow));
        Flows { streams: self.streams, writers, drawn }
    }
}
