//! A sequence of packets: one track, its clock and its names.

use std::collections::HashMap;

use super::note::{Note, NoteValue};
use super::schema::{annotation, clock, defaults, descriptor, event, interned, packet, process};
use super::wire::Wire;
use crate::plain_text::plain_text;
use crate::record::TraceLine;

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

/// What is said of a track where it begins.
pub(super) struct Described<'a> {
    pub(super) name: &'a str,
    /// The sequence of the track it is part of.
    pub(super) parent: Option<u32>,
    pub(super) is_counter: bool,
    /// The process that it stands for.
    pub(super) process: Option<u32>,
}

/// A sequence that has begun.
pub(super) struct PacketSequence {
    /// The number of the sequence and of its track.
    id: u32,
    last_time: u64,
    names: Interned,
    note_names: Interned,
    note_texts: Interned,
    lines: HashMap<(Box<str>, u32), u64>,
    /// What a packet has that is new.
    fresh: Wire,
    /// The event of a packet.
    event: Wire,
}

impl PacketSequence {
    /// Writes the packets that begin a sequence, in this order: the state, the track.
    pub(super) fn begin(id: u32, described: &Described<'_>, packets: &mut [Wire; 2]) -> Self {
        let Described { name, parent, is_counter, process } = *described;
        let name = plain_text(name);
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
        track.number(packet::SEQUENCE, id.into());
        track.message(packet::TRACK_DESCRIPTOR, |to| {
            to.number(descriptor::UUID, id.into()).text(descriptor::NAME, &*name);
            if let Some(parent) = parent {
                to.number(descriptor::PARENT, parent.into());
            }
            if let Some(process) = process {
                to.message(descriptor::PROCESS, |to| {
                    to.number(process::ID, process.into()).text(process::NAME, &*name);
                });
            }
            if is_counter {
                to.message(descriptor::COUNTER, |to| {
                    to.number(descriptor::COUNTER_UNIT, descriptor::UNIT_BYTES);
                });
            }
        });
        Self {
            id,
            last_time: 0,
            names: Interned::default(),
            note_names: Interned::default(),
            note_texts: Interned::default(),
            lines: HashMap::new(),
            fresh: Wire::default(),
            event: Wire::default(),
        }
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
        self.fresh.clear();
        self.event.clear();
        let name = self.names.number(named.name, interned::EVENT_NAMES, &mut self.fresh);
        self.event.number(event::TYPE, kind).number(event::NAME, name);
        if let Some(line) = named.line {
            let number = self.line(line);
            self.event.number(event::LINE, number);
        }
        for note in named.notes {
            let name = self.note_names.number(&note.name(), interned::ANNOTATION_NAMES, &mut self.fresh);
            let (field, value) = match note.value() {
                NoteValue::Number(number) => (annotation::NUMBER, number),
                NoteValue::Text(text) => {
                    let texts = &mut self.note_texts;
                    (annotation::TEXT, texts.number(text, interned::ANNOTATION_TEXTS, &mut self.fresh))
                }
            };
            self.event.message(event::ANNOTATIONS, |to| {
                to.number(annotation::NAME, name).number(field, value);
            });
        }
        for flow in named.from_here {
            self.event.fixed(event::FLOWS, *flow);
        }
        for flow in named.to_here {
            self.event.fixed(event::FLOW_ENDS, *flow);
        }
        if !self.fresh.bytes().is_empty() {
            to.text(packet::INTERNED, self.fresh.bytes());
        }
        to.text(packet::TRACK_EVENT, self.event.bytes());
    }

    /// The number of a line, which is written if it is new.
    fn line(&mut self, line: TraceLine<'_>) -> u64 {
        let next = self.lines.len() as u64 + 1;
        // A key that can be looked up without a copy would need a map of maps, and most programs launch from few lines.
        let number = *self.lines.entry((line.file.into(), line.line)).or_insert(next);
        if number == next {
            self.fresh.message(interned::LINES, |to| {
                to.number(interned::ID, number).text(interned::NAME, &*plain_text(line.file));
                to.number(interned::LINE_NUMBER, line.line.into());
            });
        }
        number
    }
}

/// Texts of one kind that a sequence has written.
#[derive(Default)]
struct Interned(HashMap<Box<str>, u64>);

impl Interned {
    /// The number of a text, which is written as this field if it is new.
    fn number(&mut self, text: &str, field: u32, fresh: &mut Wire) -> u64 {
        if let Some(number) = self.0.get(text) {
            return *number;
        }
        let number = self.0.len() as u64 + 1;
        self.0.insert(text.into(), number);
        fresh.message(field, |to| {
            to.number(interned::ID, number).text(interned::NAME, &*plain_text(text));
        });
        number
    }
}
