//! kiln's own trace file: nothing lost, 40 bytes a record.
//!
//! ```text
//!   "kilntrc1"  records u64  dropped u64  tags u32
//!   tags:       number u16  length u16  name
//!   records:    nanoseconds u64  address u64  bytes u64  stream u32  thread u32  tag u16  action u8  zeros
//! ```
//!
//! All numbers are little-endian. Tags are written with their names, because their numbers mean something only in the
//! process that gave them out.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Read, Write};

use kiln_driver::DeviceAddress;

use super::record::{TraceAction, TraceRecord};
use crate::last_use::StreamKey;
use crate::replay::{LogError, LogProblem};
use crate::tag::AllocTag;

pub(crate) const MAGIC: [u8; 8] = *b"kilntrc1";
const RECORD_BYTES: usize = 40;

/// What a trace file holds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RecordedTrace {
    /// The records.
    pub records: Vec<TraceRecord>,
    /// Older ones that were dropped because rings were full.
    pub dropped: u64,
}

/// Writes records, and how many older ones were dropped, as [`read_trace`] reads them.
///
/// # Errors
/// Whatever the writer says.
pub fn write_trace(records: &[TraceRecord], dropped: u64, to: &mut impl Write) -> io::Result<()> {
    let names: BTreeMap<AllocTag, &str> =
        records.iter().map(|record| (record.tag, record.tag.name())).collect();
    to.write_all(&MAGIC)?;
    to.write_all(&(records.len() as u64).to_le_bytes())?;
    to.write_all(&dropped.to_le_bytes())?;
    to.write_all(&(names.len() as u32).to_le_bytes())?;
    for (tag, name) in names {
        let name = name.as_bytes();
        let name = &name[..name.len().min(usize::from(u16::MAX))];
        to.write_all(&(tag.number() as u16).to_le_bytes())?;
        to.write_all(&(name.len() as u16).to_le_bytes())?;
        to.write_all(name)?;
    }
    for record in records {
        to.write_all(&encoded(record))?;
    }
    Ok(())
}

/// Reads what [`write_trace`] wrote.
///
/// # Errors
/// The number of the record (0 for the header) and what is wrong with it.
pub fn read_trace(from: &mut impl Read) -> Result<RecordedTrace, LogError> {
    let bad = |problem: LogProblem| LogError { line: 0, problem };
    if array::<8>(from, 0)? != MAGIC {
        return Err(bad(LogProblem::NoTrace));
    }
    let count = u64::from_le_bytes(array(from, 0)?);
    let dropped = u64::from_le_bytes(array(from, 0)?);
    let tags = u32::from_le_bytes(array(from, 0)?);
    let mut by_number = HashMap::new();
    for _ in 0..tags {
        let number = u16::from_le_bytes(array(from, 0)?);
        let mut name = vec![0; usize::from(u16::from_le_bytes(array(from, 0)?))];
        read(from, &mut name, 0)?;
        let tag = AllocTag::new(&String::from_utf8_lossy(&name));
        by_number.insert(number, tag.map_err(|error| bad(LogProblem::Tag(error.to_string())))?);
    }
    let mut records = Vec::new();
    for line in 1..=count {
        records.push(decoded(&array(from, line)?, &by_number).map_err(|problem| LogError { line, problem })?);
    }
    Ok(RecordedTrace { records, dropped })
}

fn read(from: &mut impl Read, into: &mut [u8], line: u64) -> Result<(), LogError> {
    from.read_exact(into).map_err(|error| {
        let short = error.kind() == io::ErrorKind::UnexpectedEof;
        let problem = if short { LogProblem::Truncated } else { LogProblem::Unreadable(error.to_string()) };
        LogError { line, problem }
    })
}

fn array<const N: usize>(from: &mut impl Read, line: u64) -> Result<[u8; N], LogError> {
    let mut bytes = [0; N];
    read(from, &mut bytes, line)?;
    Ok(bytes)
}

fn encoded(record: &TraceRecord) -> [u8; RECORD_BYTES] {
    let TraceRecord { nanoseconds, address, bytes, stream, thread, tag, action } = *record;
    let mut out = [0; RECORD_BYTES];
    out[0..8].copy_from_slice(&nanoseconds.to_le_bytes());
    out[8..16].copy_from_slice(&address.0.to_le_bytes());
    out[16..24].copy_from_slice(&bytes.to_le_bytes());
    out[24..28].copy_from_slice(&(stream.index() as u32).to_le_bytes());
    out[28..32].copy_from_slice(&thread.to_le_bytes());
    out[32..34].copy_from_slice(&(tag.number() as u16).to_le_bytes());
    out[34] = match action {
        TraceAction::Allocate => 0,
        TraceAction::Free => 1,
        TraceAction::Fail => 2,
    };
    out
}

fn decoded(from: &[u8; RECORD_BYTES], tags: &HashMap<u16, AllocTag>) -> Result<TraceRecord, LogProblem> {
    let eight = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| from[at + byte]));
    let four = |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| from[at + byte]));
    let number = u16::from_le_bytes([from[32], from[33]]);
    Ok(TraceRecord {
        nanoseconds: eight(0),
        address: DeviceAddress(eight(8)),
        bytes: eight(16),
        stream: StreamKey::new(four(24) as usize).map_err(LogProblem::Stream)?,
        thread: four(28),
        tag: *tags.get(&number).ok_or_else(|| LogProblem::Tag(format!("tag {number} has no name")))?,
        action: match from[34] {
            0 => TraceAction::Allocate,
            1 => TraceAction::Free,
            2 => TraceAction::Fail,
            other => return Err(LogProblem::Action(other.to_string())),
        },
    })
}
