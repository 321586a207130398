//! Commands in messages: handles are replaced by ids that both sides use.

use kiln_driver::{Access, DeclaredSpan, Dim3, Pattern};

use super::reader::{Malformed, Reader};
use super::writer::{Put, Take, Writer};

/// A command in a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WireCommand<'a> {
    Copy {
        from: WirePlace,
        to: WirePlace,
        bytes: u64,
    },
    Fill {
        to: WirePlace,
        pattern: Pattern,
        count: u64,
    },
    Launch(WireLaunch<'a>),
    /// With the ticket that identifies the signal.
    Signal {
        event: u64,
        ticket: u64,
    },
    Wait {
        event: u64,
    },
    Graph {
        graph: u64,
    },
}

/// One end of a copy, or the target of a fill.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WirePlace {
    Memory { id: u64, offset: u64 },
    Reservation { id: u64, offset: u64 },
    Host { id: u64, offset: u64 },
}

/// A launch in a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WireLaunch<'a> {
    pub(crate) function: u64,
    pub(crate) grid: Dim3,
    pub(crate) block: Dim3,
    pub(crate) cluster: Option<Dim3>,
    pub(crate) dynamic_shared_bytes: u32,
    pub(crate) cooperative: bool,
    pub(crate) arguments: &'a [u8],
    /// The declared spans one after the other, if they are known.
    pub(crate) declared: Option<&'a [u8]>,
}

/// Bytes of a declared span in a message.
const SPAN_BYTES: usize = 19;
/// In place of the number of a parameter: none.
const NO_PARAMETER: u16 = u16::MAX;

/// Declared spans as they are written into a launch.
pub(crate) fn put_declared(spans: &[DeclaredSpan]) -> Vec<u8> {
    let mut to = Writer::new();
    for span in spans {
        span.address.put(&mut to);
        to.u64(span.bytes);
        to.u8(match span.access {
            Access::Read => 0,
            Access::Write => 1,
            Access::ReadWrite => 2,
        });
        span.parameter.filter(|index| *index != NO_PARAMETER).unwrap_or(NO_PARAMETER).put(&mut to);
    }
    to.into_bytes()
}

impl WireLaunch<'_> {
    /// The declared spans.
    pub(crate) fn declared(&self) -> Result<Option<Vec<DeclaredSpan>>, Malformed> {
        let Some(bytes) = self.declared else { return Ok(None) };
        if !bytes.len().is_multiple_of(SPAN_BYTES) {
            return Err(Malformed { what: "declared spans of another length" });
        }
        let mut from = Reader::new(bytes);
        let spans = (0..bytes.len() / SPAN_BYTES).map(|_| {
            let (address, bytes) = (Take::take(&mut from)?, from.u64()?);
            let access = match from.u8()? {
                0 => Access::Read,
                1 => Access::Write,
                2 => Access::ReadWrite,
                _ => return Err(Malformed { what: "an unknown access" }),
            };
            let parameter = Some(u16::take(&mut from)?).filter(|index| *index != NO_PARAMETER);
            Ok(DeclaredSpan { address, bytes, access, parameter })
        });
        spans.collect::<Result<_, _>>().map(Some)
    }
}

impl Put for WireCommand<'_> {
    fn put(&self, to: &mut Writer) {
        match self {
            Self::Copy { from, to: target, bytes } => {
                to.u8(0);
                from.put(to);
                target.put(to);
                to.u64(*bytes);
            }
            Self::Fill { to: target, pattern, count } => {
                to.u8(1);
                target.put(to);
                pattern.put(to);
                to.u64(*count);
            }
            Self::Launch(launch) => {
                to.u8(2);
                launch.put(to);
            }
            Self::Signal { event, ticket } => {
                to.u8(3);
                to.u64(*event);
                to.u64(*ticket);
            }
            Self::Wait { event } => {
                to.u8(4);
                to.u64(*event);
            }
            Self::Graph { graph } => {
                to.u8(5);
                to.u64(*graph);
            }
        }
    }
}

impl<'a> WireCommand<'a> {
    pub(crate) fn take(from: &mut Reader<'a>) -> Result<Self, Malformed> {
        Ok(match from.u8()? {
            0 => Self::Copy { from: WirePlace::take(from)?, to: WirePlace::take(from)?, bytes: from.u64()? },
            1 => Self::Fill { to: WirePlace::take(from)?, pattern: Pattern::take(from)?, count: from.u64()? },
            2 => Self::Launch(WireLaunch::take(from)?),
            3 => Self::Signal { event: from.u64()?, ticket: from.u64()? },
            4 => Self::Wait { event: from.u64()? },
            5 => Self::Graph { graph: from.u64()? },
            _ => return Err(Malformed { what: "an unknown command" }),
        })
    }
}

impl Put for WirePlace {
    fn put(&self, to: &mut Writer) {
        let (tag, id, offset) = match self {
            Self::Memory { id, offset } => (0, id, offset),
            Self::Reservation { id, offset } => (1, id, offset),
            Self::Host { id, offset } => (2, id, offset),
        };
        to.u8(tag);
        to.u64(*id);
        to.u64(*offset);
    }
}

impl Take for WirePlace {
    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (tag, id, offset) = (from.u8()?, from.u64()?, from.u64()?);
        match tag {
            0 => Ok(Self::Memory { id, offset }),
            1 => Ok(Self::Reservation { id, offset }),
            2 => Ok(Self::Host { id, offset }),
            _ => Err(Malformed { what: "an unknown kind of place" }),
        }
    }
}

impl Put for Pattern {
    fn put(&self, to: &mut Writer) {
        match self {
            Self::U8(value) => {
                to.u8(1);
                value.put(to);
            }
            Self::U16(value) => {
                to.u8(2);
                value.put(to);
            }
            Self::U32(value) => {
                to.u8(4);
                value.put(to);
            }
        }
    }
}

impl Take for Pattern {
    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        match from.u8()? {
            1 => u8::take(from).map(Self::U8),
            2 => u16::take(from).map(Self::U16),
            4 => u32::take(from).map(Self::U32),
            _ => Err(Malformed { what: "an unknown pattern" }),
        }
    }
}

impl Put for WireLaunch<'_> {
    fn put(&self, to: &mut Writer) {
        to.u64(self.function);
        self.grid.put(to);
        self.block.put(to);
        self.cluster.put(to);
        to.u32(self.dynamic_shared_bytes);
        self.cooperative.put(to);
        to.slice(self.arguments);
        self.declared.is_some().put(to);
        if let Some(declared) = self.declared {
            to.slice(declared);
        }
    }
}

impl<'a> WireLaunch<'a> {
    fn take(from: &mut Reader<'a>) -> Result<Self, Malformed> {
        Ok(Self {
            function: from.u64()?,
            grid: Take::take(from)?,
            block: Take::take(from)?,
            cluster: Take::take(from)?,
            dynamic_shared_bytes: from.u32()?,
            cooperative: Take::take(from)?,
            arguments: from.slice()?,
            declared: if bool::take(from)? { Some(from.slice()?) } else { None },
        })
    }
}
