//! The tracks of a trace.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::record::{RecordingClock, TraceStream};

/// What a track shows. Tags are numbered.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Track {
    /// The devices with one clock, where others have another one.
    Clock(u32),
    Device(u32),
    Stream(TraceStream),
    Submitted(TraceStream),
    Thread {
        device: u32,
        thread: u32,
    },
    Memory {
        device: u32,
        tag: u32,
    },
    Heap(u32),
    HeapChanges(u32),
    Faults(u32),
    Findings(u32),
    Takeover(u32),
    /// A worker process that has a device.
    Worker {
        device: u32,
        process: u32,
    },
}

impl Track {
    /// The device it belongs to.
    pub(super) fn device(self) -> u32 {
        match self {
            // It has no device.
            Self::Clock(_) => 0,
            Self::Stream(stream) | Self::Submitted(stream) => stream.device,
            Self::Thread { device, .. } | Self::Memory { device, .. } | Self::Worker { device, .. } => device,
            Self::Device(device)
            | Self::Heap(device)
            | Self::HeapChanges(device)
            | Self::Faults(device)
            | Self::Findings(device)
            | Self::Takeover(device) => device,
        }
    }

    /// The process that it stands for, if it does.
    pub(super) fn process(self) -> Option<u32> {
        match self {
            Self::Worker { process, .. } => Some(process),
            _ => None,
        }
    }

    /// Whether it shows a number of bytes.
    pub(super) fn is_counter(self) -> bool {
        matches!(self, Self::Memory { .. } | Self::Heap(_))
    }
}

/// What devices, streams and tags are called.
#[derive(Default)]
pub(super) struct TrackNames {
    devices: HashMap<u32, String>,
    /// The clocks of devices, if there are several.
    clocks: BTreeMap<u32, (u32, RecordingClock)>,
    streams: HashMap<TraceStream, String>,
    workers: HashMap<u32, String>,
    /// The devices whose memory is that of the driver's pool.
    pools: BTreeSet<u32>,
    tags: HashMap<Box<str>, u32>,
    tag_names: Vec<Box<str>>,
}

impl TrackNames {
    /// Those of a recording whose devices have these clocks, and some of them the driver's pool instead of a heap.
    pub(super) fn new(mut clocks: BTreeMap<u32, (u32, RecordingClock)>, pools: BTreeSet<u32>) -> Self {
        if clocks.values().map(|(clock, _)| clock).collect::<BTreeSet<_>>().len() < 2 {
            clocks.clear();
        }
        Self { clocks, pools, ..Self::default() }
    }

    /// The track that another one is part of.
    pub(super) fn parent_of(&self, track: Track) -> Option<Track> {
        match track {
            // A process stands by itself in a trace.
            Track::Clock(_) | Track::Worker { .. } => None,
            Track::Device(device) => self.clocks.get(&device).map(|(clock, _)| Track::Clock(*clock)),
            other => Some(Track::Device(other.device())),
        }
    }

    pub(super) fn name_device(&mut self, device: u32, name: &str) {
        self.devices.insert(device, name.to_owned());
    }

    pub(super) fn name_stream(&mut self, stream: TraceStream, name: &str) {
        self.streams.insert(stream, name.to_owned());
    }

    pub(super) fn name_worker(&mut self, process: u32, name: &str) {
        self.workers.insert(process, name.to_owned());
    }

    /// The number of a tag.
    pub(super) fn tag(&mut self, tag: &str) -> u32 {
        match self.tags.get(tag) {
            Some(number) => *number,
            None => {
                let number = self.tag_names.len() as u32;
                self.tags.insert(tag.into(), number);
                self.tag_names.push(tag.into());
                number
            }
        }
    }

    /// What a track is called.
    pub(super) fn of(&self, track: Track) -> String {
        let stream = |stream: TraceStream| match self.streams.get(&stream) {
            Some(name) if !name.is_empty() => format!("{stream}: {name}"),
            _ => stream.to_string(),
        };
        match track {
            Track::Clock(clock) => {
                let kind = self.clocks.values().find(|(known, _)| *known == clock);
                let kind = kind.map_or("unknown", |(_, kind)| kind.words());
                format!("clock {clock} ({kind}): its times cannot be compared with those of other clocks")
            }
            Track::Device(device) => match self.devices.get(&device) {
                Some(name) if !name.is_empty() => format!("device {device}: {name}"),
                _ => format!("device {device}"),
            },
            Track::Stream(of) => stream(of),
            Track::Submitted(of) => format!("{}, submitted", stream(of)),
            Track::Thread { thread, .. } => format!("waits of thread {thread}"),
            Track::Memory { tag, .. } => match self.tag_names.get(tag as usize).map(|tag| &**tag) {
                None | Some("") => "memory without a tag".to_owned(),
                Some(tag) => format!("memory: {tag}"),
            },
            Track::Heap(device) if self.pools.contains(&device) => {
                "memory held by the driver's pool".to_owned()
            }
            Track::HeapChanges(device) if self.pools.contains(&device) => {
                "changes of the driver's pool".to_owned()
            }
            Track::Heap(_) => "memory held by the heap".to_owned(),
            Track::HeapChanges(_) => "changes of the heap".to_owned(),
            Track::Faults(_) => "faults".to_owned(),
            Track::Findings(_) => "findings".to_owned(),
            Track::Takeover(_) => "takeover".to_owned(),
            Track::Worker { process, .. } => {
                self.workers.get(&process).cloned().unwrap_or_else(|| "worker".to_owned())
            }
        }
    }
}
