//! Field numbers and values of Perfetto's public schema, as far as they are used.

/// `Trace`.
pub(super) mod trace {
    pub(in crate::perfetto) const PACKET: u32 = 1;
}

/// `TracePacket`.
pub(super) mod packet {
    pub(in crate::perfetto) const CLOCK_SNAPSHOT: u32 = 6;
    pub(in crate::perfetto) const TIMESTAMP: u32 = 8;
    pub(in crate::perfetto) const SEQUENCE: u32 = 10;
    pub(in crate::perfetto) const TRACK_EVENT: u32 = 11;
    pub(in crate::perfetto) const INTERNED: u32 = 12;
    pub(in crate::perfetto) const FLAGS: u32 = 13;
    pub(in crate::perfetto) const DEFAULTS: u32 = 59;
    pub(in crate::perfetto) const TRACK_DESCRIPTOR: u32 = 60;
    /// Names and defaults of the sequence begin here.
    pub(in crate::perfetto) const STATE_CLEARED: u64 = 1;
}

/// `TracePacketDefaults`.
pub(super) mod defaults {
    pub(in crate::perfetto) const TRACK_EVENT: u32 = 11;
    pub(in crate::perfetto) const CLOCK: u32 = 58;
}

/// `ClockSnapshot` and its `Clock`.
pub(super) mod clock {
    pub(in crate::perfetto) const CLOCKS: u32 = 1;
    pub(in crate::perfetto) const ID: u32 = 1;
    pub(in crate::perfetto) const TIMESTAMP: u32 = 2;
    pub(in crate::perfetto) const IS_INCREMENTAL: u32 = 3;
    pub(in crate::perfetto) const REALTIME: u64 = 1;
    pub(in crate::perfetto) const BOOTTIME: u64 = 6;
    /// The first number that a sequence may give to a clock.
    pub(in crate::perfetto) const OWN: u64 = 64;
}

/// `TrackDescriptor` and `CounterDescriptor`.
pub(super) mod descriptor {
    pub(in crate::perfetto) const UUID: u32 = 1;
    pub(in crate::perfetto) const NAME: u32 = 2;
    pub(in crate::perfetto) const PROCESS: u32 = 3;
    pub(in crate::perfetto) const PARENT: u32 = 5;
    pub(in crate::perfetto) const COUNTER: u32 = 8;
    pub(in crate::perfetto) const COUNTER_UNIT: u32 = 3;
    pub(in crate::perfetto) const UNIT_BYTES: u64 = 3;
}

/// `ProcessDescriptor`.
pub(super) mod process {
    pub(in crate::perfetto) const ID: u32 = 1;
    pub(in crate::perfetto) const NAME: u32 = 6;
}

/// `TrackEvent`.
pub(super) mod event {
    pub(in crate::perfetto) const ANNOTATIONS: u32 = 4;
    pub(in crate::perfetto) const TYPE: u32 = 9;
    pub(in crate::perfetto) const NAME: u32 = 10;
    pub(in crate::perfetto) const TRACK: u32 = 11;
    pub(in crate::perfetto) const COUNTER_VALUE: u32 = 30;
    pub(in crate::perfetto) const LINE: u32 = 34;
    pub(in crate::perfetto) const FLOWS: u32 = 47;
    pub(in crate::perfetto) const FLOW_ENDS: u32 = 48;
    pub(in crate::perfetto) const BEGIN: u64 = 1;
    pub(in crate::perfetto) const END: u64 = 2;
    pub(in crate::perfetto) const INSTANT: u64 = 3;
    pub(in crate::perfetto) const COUNTER: u64 = 4;
}

/// `InternedData`, and the messages in it.
pub(super) mod interned {
    pub(in crate::perfetto) const EVENT_NAMES: u32 = 2;
    pub(in crate::perfetto) const ANNOTATION_NAMES: u32 = 3;
    pub(in crate::perfetto) const LINES: u32 = 4;
    pub(in crate::perfetto) const ANNOTATION_TEXTS: u32 = 29;
    pub(in crate::perfetto) const ID: u32 = 1;
    pub(in crate::perfetto) const NAME: u32 = 2;
    pub(in crate::perfetto) const LINE_NUMBER: u32 = 4;
}

/// `DebugAnnotation`.
pub(super) mod annotation {
    pub(in crate::perfetto) const NAME: u32 = 1;
    pub(in crate::perfetto) const NUMBER: u32 = 3;
    pub(in crate::perfetto) const TEXT: u32 = 17;
}
