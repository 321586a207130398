//! N1: all-reduces through kiln, beside NCCL called directly in the same processes on the same memory.
//!
//! `kiln-bench n1 --device cuda` starts a process for each rank: first one rank alone, then two ranks. There is one GPU for both. NCCL refuses that for ranks of one
//! host, so each process is given another host (`NCCL_HOSTID`), and the data goes through sockets: device times say what kiln adds, not how fast NCCL is over NVLink.
//!
//! Three figures for each number of bytes: `call` is what a submission takes on the host, and its last row is what kiln takes more than `ncclAllReduce`; `device` is the time
//! between events on the stream around several submissions, so that it counts what a slow submission keeps the device waiting for; `graph` is the time of the same in a
//! graph, which the host has no part in. Kiln's calls of NCCL are blocking, as those of the first row are. The row with non-blocking calls is NCCL alone, too.

use std::io::Read;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use cudarc::driver::sys;
use kiln::group::{
    CollectiveCall, DeviceCommunicator, RankEnvironment, Reduction, Rendezvous, RendezvousConfig,
};
use kiln::{DeviceRuntime, GpuRef, Stream};
use serde_json::json;

use crate::Failure;
use crate::raw_driver::{self, Raw};
use crate::raw_graph::RawGraph;
use crate::raw_library::nccl::{self, Calls, RawId, RawRank};
use crate::result_table::Table;
use crate::timing::{Percentiles, Subject, subject};
use crate::workload::launch::runtime;
use crate::workload::library_comparison::{captured, check_equal, recorded, replayed};

/// Bytes of a buffer.
const SIZES: [usize; 7] = [4, 256, 4 << 10, 64 << 10, 1 << 20, 16 << 20, 256 << 20];
/// Submissions of a batch move so many bytes, and are no more than that: NCCL makes the host wait when too many are queued.
const BATCH_BYTES: usize = 4 << 20;
const BATCH_LIMIT: usize = 16;
/// Batches of each subject in a repeat, where they are short and where they are long.
const BATCHES: usize = 8;
const LONG_BATCHES: usize = 2;
/// From so many bytes on.
const LONG_BYTES: usize = 16 << 20;
/// The ranks of one number must be done within this.
const LIMIT: Duration = Duration::from_secs(480);

/// N1.
pub(crate) fn ranks(table: &mut Table, repeats: usize) -> Result<(), Failure> {
    let version = nccl::version()?;
    let (major, minor, patch) = (version / 10_000, version / 100 % 100, version % 100);
    table.note(format!("n1: NCCL {major}.{minor}.{patch}; all ranks on the first GPU, data through sockets"));
    for size in [1, 2] {
        let (rows, ended) = Ranks::start(size, repeats)?.wait();
        table.add_peers(&rows)?;
        ended?;
    }
    Ok(())
}

/// The processes of the ranks; those that still run are ended when this is dropped.
struct Ranks(Vec<RankProcess>);

struct RankProcess {
    child: Child,
    said: JoinHandle<String>,
    told: Option<JoinHandle<String>>,
}

impl Ranks {
    fn start(size: u32, repeats: usize) -> Result<Self, Failure> {
        // A port that is free now; it is given back for rank 0 to take.
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut ranks = Self(Vec::new());
        for rank in 0..size {
            let mut command = Command::new(std::env::current_exe()?);
            command.arg("--all-reduce").arg(repeats.to_string());
            command.env("KILN_RANK", rank.to_string()).env("KILN_WORLD_SIZE", size.to_string());
            command.env("KILN_LOCAL_RANK", "0").env("KILN_MEETING_POINT", format!("127.0.0.1:{port}"));
            command.env("NCCL_HOSTID", format!("kiln-bench-{rank}"));
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = command.spawn()?;
            let said = text_of(child.stdout.take());
            let told = Some(text_of(child.stderr.take()));
            ranks.0.push(RankProcess { child, said, told });
        }
        Ok(ranks)
    }

    /// Waits for all of them, and gives what rank 0 printed, also if that is not all. One that fails ends the others, which would wait for it.
    fn wait(mut self) -> (String, Result<(), Failure>) {
        let end = Instant::now() + LIMIT;
        let failed: Option<Failure> = loop {
            match self.look() {
                Ok(0) => break None,
                Ok(left) if Instant::now() >= end => {
                    break Some(format!("{left} of the ranks are not done after {LIMIT:?}").into());
                }
                Ok(_) => std::thread::sleep(Duration::from_millis(20)),
                Err(failure) => break Some(failure),
            }
        };
        self.end();
        (
            self.0.drain(..).next().map_or_else(String::new, |zero| joined(zero.said)),
            failed.map_or(Ok(()), Err),
        )
    }

    /// How many still run, unless one has failed.
    fn look(&mut self) -> Result<usize, Failure> {
        let mut left = 0;
        for (rank, process) in self.0.iter_mut().enumerate() {
            match process.child.try_wait()? {
                None => left += 1,
                Some(status) if status.success() => {}
                Some(status) => {
                    let told = process.told.take().map_or_else(String::new, joined);
                    return Err(format!("rank {rank}: {status}: {}", told.trim()).into());
                }
            }
        }
        Ok(left)
    }

    fn end(&mut self) {
        for process in &mut self.0 {
            // One that has ended already needs no more.
            let _ = process.child.kill();
            let _ = process.child.wait();
        }
    }
}

impl Drop for Ranks {
    fn drop(&mut self) {
        self.end();
    }
}

/// Reads what a process prints, so that it never waits for its reader.
fn text_of(from: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = Vec::new();
        // What came before a failure is what there is.
        let _ = from.map(|mut from| from.read_to_end(&mut text));
        String::from_utf8_lossy(&text).into_owned()
    })
}

fn joined(reader: JoinHandle<String>) -> String {
    reader.join().unwrap_or_default()
}

/// Measures in this process, which is one of the ranks; rank 0 prints a row a line.
pub(crate) fn in_this_process(repeats: usize) -> Result<(), Failure> {
    let ranks = RankEnvironment::from_process()?.ok_or("no launcher says which rank this is")?;
    let job = Arc::new(Rendezvous::join(&RendezvousConfig::from_environment(&ranks)?)?);
    let rank = Rank::join(&job)?;
    for bytes in SIZES {
        rank.measure(bytes, repeats.max(1))?;
    }
    // No rank leaves while another still measures.
    job.barrier("end")?;
    Ok(())
}

/// One rank of three communicators.
struct Rank {
    raw: Raw,
    gpu: DeviceRuntime,
    kiln: DeviceCommunicator,
    blocking: RawRank,
    non_blocking: RawRank,
    direct_stream: sys::CUstream,
    stream: Stream,
    native_stream: sys::CUstream,
}

impl Rank {
    fn join(job: &Arc<Rendezvous>) -> Result<Self, Failure> {
        let (raw, gpu) = (Raw::new()?, runtime()?);
        let kiln = DeviceCommunicator::meet(&gpu, job, &Default::default())?;
        let direct = |name: &str, calls| -> Result<RawRank, Failure> {
            if job.rank() == 0 {
                job.put(name, &RawId::new()?.0)?;
            }
            let id = job.get(name)?[..].try_into().map(RawId)?;
            RawRank::join(&raw, id, (job.rank(), job.size()), calls)
        };
        let (blocking, non_blocking) =
            (direct("blocking", Calls::Blocking)?, direct("non-blocking", Calls::NonBlocking)?);
        let (direct_stream, stream) = (raw.stream()?, gpu.stream()?);
        let prepared = gpu.prepare_block_use(&stream, &[])?;
        let native_stream = std::ptr::with_exposed_provenance_mut(prepared.native_stream()? as usize);
        prepared.finish()?;
        Ok(Self { raw, gpu, kiln, blocking, non_blocking, direct_stream, stream, native_stream })
    }

    /// All figures for buffers of so many bytes.
    fn measure(&self, bytes: usize, repeats: usize) -> Result<(), Failure> {
        let count = bytes / size_of::<f32>();
        let (from, to) = (self.gpu.upload(&vec![1.0_f32; count])?, self.gpu.zeros::<f32>(count)?);
        let pair = Pair { rank: self, from, to, count };
        pair.check()?;
        let calls = (BATCH_BYTES / bytes).clamp(1, BATCH_LIMIT);
        let batches = repeats * if bytes < LONG_BYTES { BATCHES } else { LONG_BATCHES };
        let name = |figure: &str| {
            let ranks = if self.kiln.size() == 1 { "n1.alone" } else { "n1" };
            format!("{ranks}.{}.{figure}", in_short(bytes))
        };
        pair.submissions(&name("call"), calls, batches)?;
        pair.between_events(&name("device"), calls, batches)?;
        pair.in_graphs(&name("graph"), calls, batches)?;
        self.settle()
    }

    fn settle(&self) -> Result<(), Failure> {
        self.gpu.synchronize()?;
        raw_driver::settle()
    }

    /// Measures subjects in turn, after one turn that does not count. Every rank takes the same turns. The first subject is what the others are compared with.
    fn compare(
        &self,
        workload: &str,
        turns: usize,
        mut subjects: Vec<(&str, Subject<'_>)>,
    ) -> Result<Vec<Percentiles>, Failure> {
        let mut values: Vec<Vec<f64>> = subjects.iter().map(|_| Vec::with_capacity(turns)).collect();
        for turn in 0..=turns {
            for ((_, measure), values) in subjects.iter_mut().zip(&mut values) {
                let value = measure()?;
                if turn > 0 {
                    values.push(value);
                }
            }
        }
        let spreads: Vec<Percentiles> = values.into_iter().map(Percentiles::of).collect();
        for ((subject, _), spread) in subjects.iter().zip(&spreads) {
            self.print(workload, subject, *spread);
        }
        Ok(spreads)
    }

    #[expect(clippy::print_stdout, reason = "the process that started this one reads it")]
    fn print(&self, workload: &str, subject: &str, Percentiles { p50, p99 }: Percentiles) {
        if self.kiln.rank() == 0 {
            let row = json!({"workload": workload, "subject": subject, "p50": p50, "p99": p99, "unit": "ns"});
            println!("{row}");
        }
    }
}

/// What is reduced, and where to.
struct Pair<'r> {
    rank: &'r Rank,
    from: GpuRef<f32>,
    to: GpuRef<f32>,
    count: usize,
}

const RAW: &str = "ncclAllReduce";
const RAW_GROUP: &str = "NCCL, non-blocking, in a group";
const KILN: &str = "kiln";

impl Pair<'_> {
    fn call(&self) -> CollectiveCall<'_> {
        self.rank.kiln.all_reduce(&self.from, &self.to, Reduction::Sum)
    }

    fn submit(&self) -> Result<(), Failure> {
        self.call().on(&self.rank.stream).submit()?;
        Ok(())
    }

    fn direct(&self, by: &RawRank) -> Result<(), Failure> {
        by.queue(self.rank.direct_stream, [self.from.address().0, self.to.address().0], self.count)
    }

    /// All three must give the sum of as many ones as there are ranks.
    fn check(&self) -> Result<(), Failure> {
        let wanted = vec![self.rank.kiln.size() as f32; self.count];
        let clear = || -> Result<(), Failure> {
            self.to.fill(0.0)?;
            self.rank.settle()
        };
        self.submit()?;
        check_equal("n1 by kiln", 0.0, &self.to.download()?, &wanted)?;
        for by in [&self.rank.blocking, &self.rank.non_blocking] {
            clear()?;
            self.direct(by)?;
            self.rank.settle()?;
            check_equal("n1 by NCCL", 0.0, &wanted, &self.to.download()?)?;
        }
        Ok(())
    }

    fn submissions(&self, workload: &str, calls: usize, batches: usize) -> Result<(), Failure> {
        let settle = || self.rank.settle();
        let subjects = vec![
            (RAW, subject(calls, || self.direct(&self.rank.blocking), settle)),
            (RAW_GROUP, subject(calls, || self.direct(&self.rank.non_blocking), settle)),
            (KILN, subject(calls, || self.submit(), settle)),
        ];
        let spreads = self.rank.compare(workload, batches, subjects)?;
        if let [raw, _, kiln] = spreads[..] {
            let over = Percentiles { p50: kiln.p50 - raw.p50, p99: kiln.p99 - raw.p99 };
            self.rank.print(workload, "kiln over ncclAllReduce", over);
        }
        Ok(())
    }

    fn between_events(&self, workload: &str, calls: usize, batches: usize) -> Result<(), Failure> {
        let Rank { raw, direct_stream, native_stream, blocking, .. } = self.rank;
        let events = [raw.timed_event()?, raw.timed_event()?];
        let timed = |stream: sys::CUstream, queue: &dyn Fn() -> Result<(), Failure>| {
            raw_driver::record(events[0], stream)?;
            (0..calls).try_for_each(|_| queue())?;
            raw_driver::record(events[1], stream)?;
            self.rank.settle()?;
            Ok(raw_driver::elapsed_ns(events[0], events[1])? / calls as f64)
        };
        let subjects: Vec<(&str, Subject<'_>)> = vec![
            (RAW, Box::new(|| timed(*direct_stream, &|| self.direct(blocking)))),
            (KILN, Box::new(|| timed(*native_stream, &|| self.submit()))),
        ];
        self.rank.compare(workload, batches, subjects).map(drop)
    }

    fn in_graphs(&self, workload: &str, calls: usize, batches: usize) -> Result<(), Failure> {
        let Rank { raw, gpu, direct_stream, blocking, .. } = self.rank;
        let direct = RawGraph::capture(raw, *direct_stream, calls, || self.direct(blocking))?;
        let graph = recorded(gpu, calls, |graph| Ok(self.call().record(graph).map(drop)?))?;
        let subjects = vec![(RAW, captured(&direct, calls)), (KILN, replayed(&graph, calls))];
        self.rank.compare(workload, batches, subjects)?;
        self.rank.settle()
    }
}

/// A number of bytes as people say it.
fn in_short(bytes: usize) -> String {
    match bytes {
        0..1024 => format!("{bytes}B"),
        1024..1_048_576 => format!("{}KiB", bytes >> 10),
        _ => format!("{}MiB", bytes >> 20),
    }
}

#[cfg(test)]
mod tests {
    use super::{SIZES, in_short};

    #[test]
    fn sizes_are_named_in_short() {
        let names = SIZES.map(in_short);
        assert_eq!(names, ["4B", "256B", "4KiB", "64KiB", "1MiB", "16MiB", "256MiB"]);
    }
}
