//! A memory snapshot that PyTorch's viewer opens.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::pickle::Pickler;
use super::record::{TraceAction, TraceRecord};

/// Blocks this close to each other are shown as parts of one segment.
const SEGMENT_GAP_BYTES: u64 = 1 << 20;

/// A stretch of addresses that blocks lie in.
struct Segment {
    start: u64,
    end: u64,
    stream: u64,
}

/// Writes records as a memory snapshot, for <https://pytorch.org/memory_viz>: drop the file there. Tags are shown where it
/// shows stack frames.
///
/// # Errors
/// Whatever the writer says.
pub fn write_snapshot(records: &[TraceRecord], to: &mut impl Write) -> io::Result<()> {
    let segments = segments_of(records);
    let live = live_at_end(records);
    let mut pickler = Pickler::new(to)?;
    pickler.dictionary(|out| {
        out.text("segments")?;
        out.list(&segments, |out, segment| write_segment(out, segment, &live))?;
        out.text("device_traces")?;
        out.list(&[()], |out, ()| {
            // Blocks of no bytes share an address with others, which the viewer tells apart by nothing else.
            let shown = records.iter().filter(|record| record.bytes > 0);
            let events: Vec<(&TraceRecord, &str)> = shown.flat_map(events_of).collect();
            out.list(&events, |out, (record, action)| write_event(out, record, action))
        })
    })?;
    pickler.finish()
}

/// A free is two events there: it was asked for, and it was done.
fn events_of(record: &TraceRecord) -> impl Iterator<Item = (&TraceRecord, &'static str)> {
    let actions: &[&str] = match record.action {
        TraceAction::Allocate => &["alloc"],
        TraceAction::Free => &["free_requested", "free_completed"],
        TraceAction::Fail => &["oom"],
    };
    actions.iter().map(move |action| (record, *action))
}

fn write_event<W: Write>(out: &mut Pickler<W>, record: &TraceRecord, action: &str) -> io::Result<()> {
    out.dictionary(|out| {
        out.text_item("action", action)?;
        out.integer_item("addr", record.address.0)?;
        out.integer_item("size", record.bytes)?;
        out.integer_item("stream", record.stream.index() as u64)?;
        out.integer_item("time_us", record.nanoseconds / 1000)?;
        if record.action == TraceAction::Fail {
            out.integer_item("device_free", 0)?;
        }
        write_frames(out, record)
    })
}

fn write_segment<W: Write>(
    out: &mut Pickler<W>,
    segment: &Segment,
    live: &BTreeMap<u64, &TraceRecord>,
) -> io::Result<()> {
    let blocks = blocks_of(segment, live);
    let allocated = blocks.iter().filter(|block| block.2.is_some()).map(|block| block.1).sum();
    out.dictionary(|out| {
        out.integer_item("address", segment.start)?;
        out.integer_item("total_size", segment.end - segment.start)?;
        out.integer_item("allocated_size", allocated)?;
        out.integer_item("active_size", allocated)?;
        out.integer_item("stream", segment.stream)?;
        out.integer_item("device", 0)?;
        out.text_item("segment_type", "large")?;
        out.text("blocks")?;
        out.list(&blocks, |out, (address, bytes, record)| {
            out.dictionary(|out| {
                out.integer_item("address", *address)?;
                out.integer_item("size", *bytes)?;
                out.integer_item("requested_size", *bytes)?;
                out.text_item("state", if record.is_some() { "active_allocated" } else { "inactive" })?;
                match record {
                    Some(record) => write_frames(out, record),
                    None => {
                        out.text("frames")?;
                        out.list(&[] as &[()], |_, ()| Ok(()))
                    }
                }
            })
        })
    })
}

fn write_frames<W: Write>(out: &mut Pickler<W>, record: &TraceRecord) -> io::Result<()> {
    out.text("frames")?;
    out.list(&[record], |out, record| {
        out.dictionary(|out| {
            out.text_item("name", record.tag.name())?;
            out.text_item("filename", &format!("thread {}", record.thread))?;
            out.integer_item("line", 0)
        })
    })
}

/// Address, bytes and, if it is live, the record of each block and each gap of a segment, in order.
fn blocks_of<'a>(
    segment: &Segment,
    live: &BTreeMap<u64, &'a TraceRecord>,
) -> Vec<(u64, u64, Option<&'a TraceRecord>)> {
    let mut blocks = Vec::new();
    let mut at = segment.start;
    for (address, record) in live.range(segment.start..segment.end) {
        if *address > at {
            blocks.push((at, address - at, None));
        }
        at = end_of(record);
        blocks.push((*address, at - address, Some(*record)));
    }
    if at < segment.end {
        blocks.push((at, segment.end - at, None));
    }
    blocks
}

/// The blocks that are live when the records end. Records may have been dropped: a block that lies where another one was
/// says that the other one was freed.
fn live_at_end(records: &[TraceRecord]) -> BTreeMap<u64, &TraceRecord> {
    let mut live: BTreeMap<u64, &TraceRecord> = BTreeMap::new();
    for record in records.iter().filter(|record| record.bytes > 0) {
        let (start, end) = (record.address.0, end_of(record));
        match record.action {
            TraceAction::Allocate => {
                while let Some((at, other)) = live.range(..end).next_back()
                    && end_of(other) > start
                {
                    let at = *at;
                    live.remove(&at);
                }
                live.insert(start, record);
            }
            TraceAction::Free => drop(live.remove(&start)),
            TraceAction::Fail => {}
        }
    }
    live
}

fn end_of(record: &TraceRecord) -> u64 {
    record.address.0.saturating_add(record.bytes)
}

/// Every address that occurs lies in exactly one of these.
fn segments_of(records: &[TraceRecord]) -> Vec<Segment> {
    let blocks = records.iter().filter(|record| record.action != TraceAction::Fail && record.bytes > 0);
    let mut spans: Vec<Segment> = blocks
        .map(|record| Segment {
            start: record.address.0,
            end: end_of(record),
            stream: record.stream.index() as u64,
        })
        .collect();
    spans.sort_by_key(|span| span.start);
    spans.dedup_by(|next, span| {
        let joined = next.start <= span.end.saturating_add(SEGMENT_GAP_BYTES);
        if joined {
            span.end = span.end.max(next.end);
        }
        joined
    });
    spans
}
