//! What tiles must show, counted in the simplest way: every work is looked at for every question.

use std::collections::HashMap;

use kiln_trace::{TraceEvent, TraceStream};
use kiln_watch::{TileContent, TileSums, TileWorks, TimelineTile};

/// A work of a row.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Work {
    pub(crate) number: u64,
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) gap: u64,
    pub(crate) ready: u64,
    pub(crate) waits: bool,
    pub(crate) is_timed: bool,
    pub(crate) name: &'static str,
}

/// A row, as the recording names it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Row {
    Stream(TraceStream),
    Thread(u32),
}

/// The works of all rows.
#[derive(Default)]
pub(crate) struct Oracle {
    pub(crate) rows: HashMap<Row, Vec<Work>>,
}

impl Oracle {
    pub(crate) fn of(events: &[TraceEvent<'static>]) -> Self {
        let mut oracle = Self::default();
        let mut waiting: HashMap<TraceStream, u64> = HashMap::new();
        let mut ends: HashMap<TraceStream, u64> = HashMap::new();
        for event in events {
            match event {
                TraceEvent::StreamWait(wait) => {
                    waiting.insert(wait.waiter.stream, wait.waiter.number);
                }
                TraceEvent::Submission(work) => {
                    let stream = work.stamp.stream;
                    let waits = waiting.get(&stream).is_some_and(|waiter| *waiter <= work.stamp.number);
                    if waits {
                        waiting.remove(&stream);
                    }
                    let span = work.device.unwrap_or(work.host);
                    let (mut gap, mut ready) = (span.begin_ns, span.begin_ns);
                    if work.device.is_some() {
                        let ended = ends.get(&stream).copied();
                        gap = match ended {
                            Some(ended) => ended.min(span.begin_ns),
                            None if waits => work.host.end_ns.min(span.begin_ns),
                            None => span.begin_ns,
                        };
                        ready = work.host.end_ns.max(gap).min(span.begin_ns);
                        ends.insert(stream, ended.unwrap_or(0).max(span.end_ns));
                    }
                    oracle.rows.entry(Row::Stream(stream)).or_default().push(Work {
                        number: work.stamp.number,
                        begin: span.begin_ns,
                        end: span.end_ns,
                        gap,
                        ready,
                        waits,
                        is_timed: work.device.is_some(),
                        name: work.name,
                    });
                }
                TraceEvent::HostWait(wait) => {
                    let row = oracle.rows.entry(Row::Thread(wait.thread)).or_default();
                    row.push(Work {
                        number: row.len() as u64 + 1,
                        begin: wait.span.begin_ns,
                        end: wait.span.end_ns,
                        gap: wait.span.begin_ns,
                        ready: wait.span.begin_ns,
                        waits: false,
                        is_timed: true,
                        name: "synchronize",
                    });
                }
                _ => {}
            }
        }
        oracle
    }

    /// Compares what a tile has of a row.
    pub(crate) fn check(&self, row: Row, tile: &TimelineTile, number: u32, names: &[String], what: &str) {
        let (begin, end) = (tile.begin_ns, tile.begin_ns + (512 << tile.level));
        let content = tile.rows.iter().find(|known| known.row == number).map(|known| &known.content);
        let mut inside: Vec<&Work> = self.rows[&row]
            .iter()
            .filter(|work| work.gap.min(work.begin) < end && work.end.max(work.begin + 1) > begin)
            .collect();
        inside.sort_by_key(|work| (work.begin, work.number));
        match content {
            None => assert!(inside.is_empty(), "{what}: {} works are missing", inside.len()),
            Some(TileContent::Works(works)) => check_works(&inside, works, begin, names, what),
            Some(TileContent::Sums(sums)) => self.check_sums(row, sums, begin, end, names, what),
        }
    }

    fn check_sums(&self, row: Row, sums: &TileSums, begin: u64, end: u64, names: &[String], what: &str) {
        let width = 1_u64 << sums.level;
        let first = begin >> sums.level;
        let count = ((end - begin) >> sums.level).max(1);
        let mut columns = (0..sums.at.len()).peekable();
        for bucket in 0..count {
            let (from, to) = ((first + bucket) * width, (first + bucket + 1) * width);
            let clipped = |a: u64, b: u64| b.min(to).saturating_sub(a.max(from));
            let touching: Vec<&Work> = self.rows[&row]
                .iter()
                .filter(|work| clipped(work.begin, work.end) > 0 || (from..to).contains(&work.begin))
                .collect();
            let busy: u64 = touching.iter().map(|work| clipped(work.begin, work.end)).sum();
            let waited = self.rows[&row].iter().filter(|work| work.waits && work.ready < work.begin);
            let wait: u64 = waited.map(|work| clipped(work.ready, work.begin)).sum();
            let starts = touching.iter().filter(|work| (from..to).contains(&work.begin)).count();
            let longest = touching.iter().map(|work| work.end - work.begin).max().unwrap_or(0);
            if touching.is_empty() && wait == 0 {
                continue;
            }
            let at = columns.next().unwrap_or_else(|| panic!("{what}: bucket {bucket} is missing"));
            assert_eq!(u64::from(sums.at[at]), bucket, "{what}");
            assert_eq!((sums.busy[at], sums.wait[at]), (busy, wait), "{what}, bucket {bucket}");
            assert_eq!(
                (sums.starts[at] as usize, sums.longest[at]),
                (starts, longest),
                "{what}, bucket {bucket}"
            );
            if !touching.is_empty() {
                let name = &names[sums.name[at] as usize];
                let is_one = |work: &&&Work| work.end - work.begin == longest && work.name == name;
                assert!(touching.iter().any(|work| is_one(&work)), "{what}, bucket {bucket}: {name}");
            }
        }
        assert_eq!(columns.next(), None, "{what}: too many buckets");
    }
}

fn check_works(expected: &[&Work], works: &TileWorks, begin: u64, names: &[String], what: &str) {
    assert_eq!(works.number.len(), expected.len(), "{what}");
    for (at, work) in expected.iter().enumerate() {
        assert_eq!(works.number[at], work.number, "{what}, work {at}");
        assert_eq!(works.begin[at], work.begin as i64 - begin as i64, "{what}, work {at}");
        assert_eq!(works.length[at], work.end - work.begin, "{what}, work {at}");
        assert_eq!(works.gap[at], work.begin - work.gap, "{what}, work {at}");
        assert_eq!(works.ready[at], work.begin - work.ready, "{what}, work {at}");
        assert_eq!(names[works.name[at] as usize], work.name, "{what}, work {at}");
        let flags = (works.flags[at] & 16 != 0, works.flags[at] & 32 != 0);
        assert_eq!(flags, (work.waits, work.is_timed), "{what}, work {at}");
    }
}
