//! The layers and bases that a resource stack can have.

use std::fmt;

use crate::byte_size::ByteSize;
use crate::layer::{FailPlan, GuardConfig};

/// Where memory comes from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum StackBase {
    /// The heap over pages; over chunks where the device has no pages.
    #[default]
    Heap,
    /// The heap over chunks of device memory.
    Chunks,
    /// The heap over pinned host memory.
    Host,
    /// Whole pages for each block.
    Pages,
    /// One driver call for each block.
    Direct,
    /// The driver's pool.
    Pool,
}

impl StackBase {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Heap, Self::Chunks, Self::Host, Self::Pages, Self::Direct, Self::Pool];

    /// Its word in a text.
    pub fn name(self) -> &'static str {
        match self {
            Self::Heap => "heap",
            Self::Chunks => "chunks",
            Self::Host => "host",
            Self::Pages => "pages",
            Self::Direct => "direct",
            Self::Pool => "pool",
        }
    }

    /// The base with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|base| base.name() == name)
    }
}

impl fmt::Display for StackBase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One thing around a resource; see [`layer`](crate::layer).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StackLayer {
    /// A budget of live bytes.
    Budget(ByteSize),
    /// A limit on live bytes.
    Limit(ByteSize),
    /// Counters.
    Statistics,
    /// A trace with so many records for each thread.
    Trace(usize),
    /// Red zones and quarantine.
    Guard(GuardConfig),
    /// A table of live blocks; the call site of every so many is taken, 0 is none.
    Leaks(u64),
    /// Alignment.
    Align(ByteSize),
    /// Rounds of the ladder.
    Retry(u32),
    /// Failures on purpose.
    Fail(FailPlan),
}

impl StackLayer {
    /// The words of all layers.
    pub const NAMES: [&'static str; 9] =
        ["budget", "limit", "stats", "trace", "guard", "leaks", "align", "retry", "fail"];

    /// Its word in a text.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Budget(_) => "budget",
            Self::Limit(_) => "limit",
            Self::Statistics => "stats",
            Self::Trace(_) => "trace",
            Self::Guard(_) => "guard",
            Self::Leaks(_) => "leaks",
            Self::Align(_) => "align",
            Self::Retry(_) => "retry",
            Self::Fail(_) => "fail",
        }
    }
}

/// What stands before the resource it is around, the opening parenthesis included.
impl fmt::Display for StackLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.name())?;
        match *self {
            Self::Budget(size) | Self::Limit(size) | Self::Align(size) => write!(f, "{size}, "),
            Self::Statistics | Self::Leaks(0) => Ok(()),
            Self::Trace(records) => write!(f, "{records}, "),
            Self::Guard(config) if config == GuardConfig::default() => Ok(()),
            Self::Guard(GuardConfig { zone_bytes, quarantine_bytes }) => {
                write!(f, "{}, {}, ", ByteSize(zone_bytes), ByteSize(quarantine_bytes))
            }
            Self::Leaks(every) => write!(f, "{every}, "),
            Self::Retry(rounds) => write!(f, "{rounds}, "),
            Self::Fail(plan) => write_plan(plan, f),
        }
    }
}

fn write_plan(plan: FailPlan, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let FailPlan { every_allocation, every_free, above_bytes } = plan;
    write!(f, "{every_allocation}, ")?;
    if every_free > 0 || above_bytes > 0 {
        write!(f, "{every_free}, ")?;
    }
    if above_bytes > 0 { write!(f, "{}, ", ByteSize(above_bytes)) } else { Ok(()) }
}
