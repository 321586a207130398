//! A sequence of packets: one track, its clock and its names.

use std::collections::HashMap;

use super::schema::{annotation, clock, defaults, descriptor, event, interned, packet};
use super::wire::Wire;
use crate::record::TraceLine;

/// The annotations that events have, by number.
#[derive(Clone, Copy)]
pub(super) enum Note<'a> {
    Submission(u64),
    Bytes(u64),
    WaitsFor(&'a str),
    Ranks(u64),
    Rank(u64),
    Communicator(&'a str),
}

/// Their names; the first has number 1.
const NOTE_NAMES: [&str; 6] = ["submission", "bytes", "waits for", "ranks", "rank", "communicator"];

/// What one packet shows.
#[derive(Clone, Copy)]
pub(super) enum Shown<'a> {
    Begin(Named<'a>),
    End,
    Instant(Named<'a>),
    Bytes(u64),
}

/// An event with a name.
#[derive(Clone, Copy, Default)]
pub(super) struct Named<'a> {
    pub(super) name: &'a str,
    pub(super) line: Option<TraceLine<'a>>,
    pub(super) notes: &'a [Note<'a>],
    /// Arrows that begin here.
    pub(super) from_here: &'a [u64],
    /// Arrows that end here.
    pub(super) to_here: &'a [u64],
}

/// A sequence that has begun.
pub(super) struct PacketSequence {
    /// The number of the sequence and of its track.
    id: u32,
    last_time: u64,
    names: HashMap<Box<str>, u64>,
    lines: HashMap<(Box<str>, u32), u64>,
}

impl PacketSequence {
    /// Writes the packets that begin a sequence, in this order: the state, the track.
    pub(super) fn begin(
        id: u32,
        parent: Option<u32>,
        name: &str,
        is_counter: bool,
        packets: &mut [Wire; 2],
    ) -> Self {
        let [state, track] = packets;
        state.number(packet::SEQUENCE, id.into()).number(packet::FLAGS, packet::STATE_CLEARED);
        state.message(packet::DEFAULTS, |to| {
            to.number(defaults::CLOCK, clock::OWN);
            to.message(defaults::TRACK_EVENT, |to| {
                to.number(event::TRACK, id.into());
            });
        });
        state.message(packet::CLOCK_SNAPSHOT, |to| {
            to.message(clock::CLOCKS, |to| {
                to.number(clock::ID, clock::BOOTTIME).number(clock::TIMESTAMP, 0);
            });
            to.message(clock::CLOCKS, |to| {
                to.number(clock::ID, clock::OWN).number(clock::TIMESTAMP, 0).number(clock::IS_INCREMENTAL, 1);
            });
        });
        state.message(packet::INTERNED, |to| {
            for (number, name) in (1..).zip(NOTE_NAMES) {
                to.message(interned::ANNOTATION_NAMES, |to| {
                    to.number(interned::ID, number).text(interned::NAME, name);
                });
            }
        });
        track.number(packet::SEQUENCE, id.into());
        track.message(packet::TRACK_DESCRIPTOR, |to| {
            to.number(descriptor::UUID, id.into()).text(descriptor::NAME, name);
            if let Some(parent) = parent {
                to.number(descriptor::PARENT, parent.into());
            }
            if is_counter {
                to.message(descriptor::COUNTER, |to| {
                    to.number(descriptor::COUNTER_UNIT, descriptor::UNIT_BYTES);
                });
            }
        });
        Self { id, last_time: 0, names: HashMap::new(), lines: HashMap::new() }
    }

    /// The number of its track.
    pub(super) fn id(&self) -> u32 {
        self.id
    }

    /// The time of its last packet.
    pub(super) fn last_time(&self) -> u64 {
        self.last_time
    }

    /// Writes one packet. A time before the last one is taken for that.
    pub(super) fn packet(&mut self, time: u64, shown: Shown<'_>, to: &mut Wire) {
        to.number(packet::TIMESTAMP, time.saturating_sub(self.last_time))
            .number(packet::SEQUENCE, self.id.into());
        self.last_time = self.last_time.max(time);
        match shown {
            Shown::Begin(named) => self.named(event::BEGIN, named, to),
            Shown::Instant(named) => self.named(event::INSTANT, named, to),
            Shown::End => {
                to.message(packet::TRACK_EVENT, |to| {
                    to.number(event::TYPE, event::END);
                });
            }
            Shown::Bytes(bytes) => {
                to.message(packet::TRACK_EVENT, |to| {
                    to.number(event::TYPE, event::COUNTER).number(event::COUNTER_VALUE, bytes);
                });
            }
        }
    }

    fn named(&mut self, kind: u64, named: Named<'_>, to: &mut Wire) {
        let name = self.name(named.name);
        let line = named.line.map(|line| self.line(line));
        let fresh_line = named.line.filter(|_| line.is_some_and(|line| line.is_fresh));
        if name.is_fresh || fresh_line.is_some() {
            to.message(packet::INTERNED, |to| {
                if name.is_fresh {
                    to.message(interned::EVENT_NAMES, |to| {
                        to.number(interned::ID, name.number).text(interned::NAME, named.name);
                    });
                }
                if let (Some(at), Some(line)) = (fresh_line, line) {
                    to.message(interned::LINES, |to| {
                        to.number(interned::ID, line.number).text(interned::NAME, at.file);
                        to.number(interned::LINE_NUMBER, at.line.into());
                    });
                }
            });
        }
        to.message(packet::TRACK_EVENT, |to| {
            to.number(event::TYPE, kind).number(event::NAME, name.number);
            if let Some(line) = line {
                to.number(event::LINE, line.number);
            }
            named.notes.iter().for_each(|note| note.write(to));
            named.from_here.iter().for_each(|flow| {
                to.fixed(event::FLOWS, *flow);
            });
            named.to_here.iter().for_each(|flow| {
                to.fixed(event::FLOW_ENDS, *flow);
            });
        });
    }

    fn name(&mut self, name: &str) -> Interned {
        if let Some(number) = self.names.get(name) {
            return Interned { number: *number, is_fresh: false };
        }
        let number = self.names.len() as u64 + 1;
        self.names.insert(name.into(), number);
        Interned { number, is_fresh: true }
    }

    fn line(&mut self, line: TraceLine<'_>) -> Interned {
        let next = self.lines.len() as u64 + 1;
        // A key that can be looked up without a copy would need a map of maps, and most programs launch from few lines.
        let number = *self.lines.entry((line.file.into(), line.line)).or_insert(next);
        Interned { number, is_fresh: number == next }
    }
}

#[derive(Clone, Copy)]
struct Interned {
    number: u64,
    is_fresh: bool,
}

impl Note<'_> {
    fn write(&self, to: &mut Wire) {
        to.message(event::ANNOTATIONS, |to| {
            match self {
                Self::Submission(number) => {
                    to.number(annotation::NAME, 1).number(annotation::NUMBER, *number)
                }
                Self::Bytes(bytes) => to.number(annotation::NAME, 2).number(annotation::NUMBER, *bytes),
                Self::WaitsFor(text) => to.number(annotation::NAME, 3).text(annotation::TEXT, text),
                Self::Ranks(ranks) => to.number(annotation::NAME, 4).number(annotation::NUMBER, *ranks),
                Self::Rank(rank) => to.number(annotation::NAME, 5).number(annotation::NUMBER, *rank),
                Self::Communicator(text) => to.number(annotation::NAME, 6).text(annotation::TEXT, text),
            };
        });
    }
}
