//! What each decorator is there for.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

#[path = "rig/mod.rs"]
mod rig;

use std::process::{Command, Stdio};
use std::sync::Arc;

use kiln_mem::decorator::{
    Aligned, Damage, FailPlan, Failing, GuardConfig, Guarded, LeakTracking, Limited, Retrying, Statistics,
    TraceConfig, Traced,
};
use kiln_mem::trace::{TraceAction, write_rmm_csv, write_snapshot};
use kiln_mem::{AllocTag, DeviceBlock, MemoryResource, MemoryResourceExt, Request, StreamRef};
use rig::{MIB, Rig};

fn with_rig(run: impl FnOnce(&Rig, StreamRef)) {
    let rig = Rig::new(1, 64 * MIB);
    let stream = rig.stream();
    run(&rig, stream);
    rig.finish(&[stream]);
}

fn guard(rig: &Rig, quarantine_bytes: u64) -> Guarded<kiln_mem::Heap> {
    let config = GuardConfig { zone_bytes: 256, quarantine_bytes };
    Guarded::new(config, rig.driver(), rig.order(), rig.heap())
}

#[test]
fn a_guard_finds_writes_beside_a_block_and_says_which() {
    with_rig(|rig, stream| {
        let guard = guard(rig, 0);
        let tag = AllocTag::new("victim").unwrap();
        let victim = || guard.allocate(&Request::new(1000, stream).tag(tag)).unwrap();
        let (under, over) = (victim(), victim());
        assert_eq!(guard.check().unwrap(), []);
        let before = |block: &DeviceBlock, bytes: u64| {
            let mut place = block.device_place().unwrap();
            place.offset -= bytes;
            place
        };
        rig.write_at(stream, before(&under, 5), 7, 1);
        rig.write_at(stream, over.device_place().unwrap().plus(1000 + 3), 7, 1);
        let found = guard.check().unwrap();
        let damage: Vec<(u64, Damage)> = found.iter().map(|found| (found.serial, found.damage)).collect();
        assert_eq!(damage, [(1, Damage::Underrun { before: 5 }), (2, Damage::Overrun { past: 3 })]);
        assert_eq!((found[0].tag, found[0].bytes, found[1].block), (tag, 1000, over.id()));
        let text = found[1].to_string();
        assert!(
            text.starts_with("allocation 2 (1000 bytes for victim") && text.ends_with("3 bytes past its end")
        );
        for block in [under, over] {
            let failed = guard.free(block).unwrap_err();
            assert!(failed.error.is_corrupt(), "{}", failed.error);
            guard.free(failed.block).expect("what was reported once can be freed");
        }
        assert_eq!(guard.accounting().live_blocks, 0);
    });
}

#[test]
fn a_guard_finds_writes_after_the_end() {
    with_rig(|rig, stream| {
        let guard = guard(rig, MIB);
        let block = guard.allocate(&Request::new(5000, stream)).unwrap();
        let place = block.device_place().unwrap();
        guard.free(block).unwrap();
        assert_eq!(guard.check().unwrap(), []);
        rig.write_at(stream, place.plus(123), 7, 1);
        let found = guard.check().unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].damage, Damage::UseAfterFree { offset: 123 });
        guard.trim().unwrap();
        assert_eq!(guard.take_findings(), found, "and when it leaves the quarantine");
        assert_eq!(guard.take_findings(), []);
    });
}

#[test]
fn a_new_block_holds_what_no_program_mistakes_for_data() {
    with_rig(|rig, stream| {
        let guard = guard(rig, 0);
        let block = guard.allocate(&Request::new(300, stream)).unwrap();
        assert!(rig.read(stream, &block).iter().all(|byte| *byte == 0xcd));
        guard.free(block).unwrap();
    });
}

#[test]
fn leaks_are_listed_with_tags_and_call_sites() {
    with_rig(|rig, stream| {
        let leaks = LeakTracking::sampling(2, rig.heap());
        let (cache, rows) = (AllocTag::new("leaky cache").unwrap(), AllocTag::new("leaky rows").unwrap());
        let allocate = |bytes, tag| leaks.allocate(&Request::new(bytes, stream).tag(tag)).unwrap();
        let blocks = [allocate(100, rows), allocate(5000, cache), allocate(300, rows)];
        assert_eq!(leaks.by_tag(), [(cache, 1, 5000), (rows, 2, 400)]);
        let live = leaks.live();
        assert_eq!(live.iter().map(|live| live.serial).collect::<Vec<_>>(), [1, 2, 3]);
        assert!(live[0].site.is_none() && live[2].site.is_none());
        let site = live[1].site.as_ref().unwrap().to_string();
        assert!(site.contains("leaks_are_listed_with_tags_and_call_sites"), "{site}");
        assert!(live[1].to_string().contains("5000 bytes for leaky cache"));
        blocks.into_iter().for_each(|block| leaks.free(block).unwrap());
        assert_eq!(leaks.live().len(), 0);
    });
}

#[test]
fn a_scope_measures_a_tag_and_nobody_else() {
    with_rig(|rig, stream| {
        let stats = Statistics::new(rig.heap());
        let (mine, other) = (AllocTag::new("mine").unwrap(), AllocTag::new("other").unwrap());
        let before = stats.allocate(&Request::new(77, stream).tag(mine)).unwrap();
        let scope = stats.scope(mine);
        let noise = stats.allocate(&Request::new(5000, stream).tag(other)).unwrap();
        let block = stats.allocate(&Request::new(1000, stream).tag(mine)).unwrap();
        stats.free(before).unwrap();
        let counts = scope.counts();
        assert_eq!((counts.allocations, counts.allocated_bytes, counts.frees), (1, 1000, 1));
        assert_eq!(stats.counts(other).live_bytes(), 5000);
        assert_eq!((stats.total().live_bytes(), stats.peak_bytes()), (6000, 6077));
        stats.free(noise).unwrap();
        stats.free(block).unwrap();
    });
}

#[test]
fn an_error_that_passes_counters_names_who_holds_most() {
    with_rig(|rig, stream| {
        let stats = Statistics::new(Limited::new(MIB, rig.heap()));
        let hog = AllocTag::new("hog").unwrap();
        let block = stats.allocate(&Request::new(900_000, stream).tag(hog)).unwrap();
        let error = stats.allocate(&Request::new(MIB, stream)).unwrap_err();
        assert_eq!(error.exhausted().unwrap().top_tags, [(hog, 900_000)]);
        stats.free(block).unwrap();
    });
}

#[test]
fn failures_come_when_they_were_planned_and_change_nothing() {
    with_rig(|rig, stream| {
        let plan = FailPlan { every_allocation: 3, every_free: 2, above_bytes: 10_000 };
        let failing = Failing::new(plan, rig.heap());
        let allocate = |bytes| failing.allocate(&Request::new(bytes, stream));
        let mut blocks = vec![allocate(1).unwrap(), allocate(1).unwrap()];
        assert!(allocate(1).unwrap_err().is_oom());
        blocks.push(allocate(10_000).unwrap());
        assert!(allocate(10_001).unwrap_err().is_oom());
        assert_eq!(failing.accounting().live_blocks, 3);
        failing.free(blocks.remove(0)).unwrap();
        let failed = failing.free(blocks.remove(0)).unwrap_err();
        assert!(!failed.error.is_oom() && failed.error.driver().is_some());
        assert_eq!(failing.accounting().live_blocks, 2);
        failing.free(failed.block).unwrap();
        let last = failing.free(blocks.remove(0)).unwrap_err().block;
        failing.free(last).unwrap();
    });
}

#[test]
fn trying_again_helps_where_the_resource_below_does_not_by_itself() {
    with_rig(|rig, stream| {
        let stock = |bytes| {
            // Blocks of the pool that were freed stay in the pool until it is trimmed.
            let pool = kiln_mem::DriverPool::new(rig.driver(), rig.order()).unwrap();
            let block = pool.allocate(&Request::new(bytes, stream)).unwrap();
            pool.free(block).unwrap();
            rig.synchronize(stream);
            pool
        };
        let direct =
            |pool| Retrying::new(1, Both { pool, direct: kiln_mem::Direct::new(rig.driver(), rig.order()) });
        let request = Request::new(40 * MIB, stream);
        let plain = stock(40 * MIB);
        let both = Both { pool: plain, direct: kiln_mem::Direct::new(rig.driver(), rig.order()) };
        let refused = both.allocate(&request).unwrap_err();
        assert!(refused.is_oom(), "{refused}");
        drop(both);
        let retrying = direct(stock(40 * MIB));
        let block = retrying.allocate(&request).unwrap();
        retrying.free(block).unwrap();
        let error = retrying.allocate(&Request::new(100 * MIB, stream)).unwrap_err();
        assert!(!error.exhausted().unwrap().steps.is_empty(), "{error}");
        retrying.trim().unwrap();
    });
}

/// Allocates directly; under pressure a pool that holds memory is trimmed.
struct Both {
    pool: kiln_mem::DriverPool,
    direct: kiln_mem::Direct,
}

impl MemoryResource for Both {
    fn key(&self) -> kiln_mem::ResourceKey {
        self.direct.key()
    }

    fn allocate(&self, request: &Request) -> kiln_mem::Result<DeviceBlock> {
        self.direct.allocate(request)
    }

    fn deallocate(&self, block: DeviceBlock, uses: &kiln_mem::Stamps) -> Result<(), kiln_mem::FreeError> {
        self.direct.deallocate(block, uses)
    }

    fn accounting(&self) -> kiln_mem::Accounting {
        self.direct.accounting()
    }

    fn reap(&self, rung: kiln_mem::Rung) -> kiln_mem::Result<kiln_mem::Relief> {
        Ok(self.pool.reap(rung)? + self.direct.reap(rung)?)
    }
}

impl std::fmt::Display for Both {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("both")
    }
}

#[test]
fn alignment_is_the_larger_of_both() {
    with_rig(|rig, stream| {
        let aligned = Aligned::new(64 << 10, rig.heap()).unwrap();
        for (asked, got) in [(1, 64 << 10), (2 * MIB, 2 * MIB)] {
            let block = aligned.allocate(&Request::new(100, stream).align(asked)).unwrap();
            assert_eq!(block.address().0 % got, 0);
            aligned.free(block).unwrap();
        }
        assert!(Aligned::new(3, rig.heap()).is_err());
    });
}

#[test]
fn a_trace_keeps_the_newest_and_counts_what_it_dropped() {
    with_rig(|rig, stream| {
        let config = TraceConfig { records_per_thread: 4, ..TraceConfig::default() };
        let traced = Traced::new(config, rig.heap());
        for bytes in 1..=5 {
            let block = traced.allocate(&Request::new(bytes, stream)).unwrap();
            traced.free(block).unwrap();
        }
        let records = traced.records();
        assert_eq!(records.iter().map(|record| record.bytes).collect::<Vec<_>>(), [4, 4, 5, 5]);
        assert_eq!(traced.dropped(), 6);
        assert!(traced.allocate(&Request::new(1 << 45, stream)).is_err());
        assert_eq!(traced.records().last().unwrap().action, TraceAction::Fail);
    });
}

#[test]
fn rmms_log_format_is_written_as_rmm_writes_it() {
    with_rig(|rig, stream| {
        let traced = Traced::new(TraceConfig::default(), rig.heap());
        let tag = AllocTag::new("a, b").unwrap();
        let block = traced.allocate(&Request::new(1000, stream).tag(tag)).unwrap();
        let address = block.address();
        traced.free(block).unwrap();
        let mut csv = Vec::new();
        write_rmm_csv(&traced.records(), &mut csv).unwrap();
        let text = String::from_utf8(csv).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "Thread,Time,Action,Pointer,Size,Stream,Tag");
        let fields: Vec<&str> = lines[1].split(',').collect();
        assert_eq!(fields[2..], ["allocate", &address.to_string(), "1000", "0x0", "a  b"]);
        let time: Vec<usize> = fields[1].split([':', '.']).map(str::len).collect();
        assert_eq!(time, [2, 2, 2, 6], "hours, minutes, seconds, microseconds");
        assert!(lines[2].contains(",free,") && lines.len() == 3);
    });
}

/// Reads a snapshot in Python and prints what PyTorch's tools would see.
const READ_SNAPSHOT: &str = "
import pickle, sys
snapshot = pickle.load(sys.stdin.buffer)
assert sorted(snapshot) == ['device_traces', 'segments']
events = snapshot['device_traces'][0]
assert all(set(event) >= {'action', 'addr', 'size', 'stream', 'frames'} for event in events), events
for segment in snapshot['segments']:
    at = segment['address']
    for block in segment['blocks']:
        assert block['address'] == at and block['state'] in ('active_allocated', 'inactive')
        at += block['size']
    assert at == segment['address'] + segment['total_size']
live = [b for s in snapshot['segments'] for b in s['blocks'] if b['state'] == 'active_allocated']
print(' '.join(event['action'] for event in events))
print([(b['size'], b['frames'][0]['name']) for b in live])
";

#[test]
fn a_snapshot_is_a_pickle_that_python_reads() {
    let Ok(mut python) = Command::new("python3")
        .args(["-c", READ_SNAPSHOT])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
    else {
        // The bytes are held against a reader of ours in the test below; here there is none of theirs.
        return;
    };
    let snapshot = snapshot();
    std::io::Write::write_all(&mut python.stdin.take().unwrap(), &snapshot).unwrap();
    let output = python.wait_with_output().unwrap();
    let (said, complaint) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success(), "{complaint}");
    assert_eq!(
        said,
        "alloc alloc free_requested free_completed alloc oom\n[(1000, 'kept'), (3145728, 'kept')]\n"
    );
}

#[test]
fn a_snapshot_uses_only_what_the_viewer_knows() {
    // Protocol 2, opened and closed once; the same records give the same bytes.
    let snapshot = snapshot();
    assert!(snapshot.starts_with(&[0x80, 2, b'}', b'(']) && snapshot.ends_with(b"u."));
    let text = String::from_utf8_lossy(&snapshot);
    for key in ["segments", "device_traces", "active_allocated", "free_completed", "kept", "oom"] {
        assert!(text.contains(key), "{key}");
    }
}

fn snapshot() -> Vec<u8> {
    let mut snapshot = Vec::new();
    with_rig(|rig, stream| {
        let traced = Arc::new(Traced::new(TraceConfig::default(), rig.heap()));
        let kept = AllocTag::new("kept").unwrap();
        let first = traced.allocate(&Request::new(1000, stream).tag(kept)).unwrap();
        let second = traced.allocate(&Request::new(2000, stream)).unwrap();
        traced.free(second).unwrap();
        let third = traced.allocate(&Request::new(3 * MIB, stream).tag(kept)).unwrap();
        assert!(traced.allocate(&Request::new(1 << 45, stream)).is_err());
        write_snapshot(&traced.records(), &mut snapshot).unwrap();
        traced.free(first).unwrap();
        traced.free(third).unwrap();
    });
    snapshot
}
