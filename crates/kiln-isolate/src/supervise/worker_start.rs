//! Starts a worker process.
//!
//! The worker is this program again, started from `/proc/self/exe`: the file that is running, even if it was replaced or removed since. It
//! gets the socket as its standard input, which needs no code between fork and exec, and a small environment: what the driver's
//! libraries read, what the configuration names, and the variable that makes it a worker.

use std::ffi::OsString;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kiln_driver::DeviceInfo;

use super::cancellation::Cancellation;
use super::child_process::{ChildProcess, Ended};
use super::config::{IsolationConfig, WorkerEntry};
use super::start_error::WorkerStartError;
use super::worker_objects::WorkerHandle;
use crate::client::connection::Link;
use crate::client::stream_table::StreamTable;
use crate::protocol::environment::{self, PARENT_VARIABLE, WORKER_VARIABLE};
use crate::protocol::memory_file::MemoryFile;
use crate::protocol::segment::{SEGMENT_BYTES, Segment};
use crate::protocol::socket::{LONGEST_MESSAGE_BYTES, Socket};
use crate::protocol::wire::{Farewell, Hello, Reader, Take, Welcome, Writer};

/// Environment variables that every worker inherits, by name and by the beginning of the name.
const INHERITED: [&str; 5] = ["HOME", "LD_LIBRARY_PATH", "PATH", "RUST_BACKTRACE", "TMPDIR"];
const INHERITED_PREFIXES: [&str; 5] = ["CUDA_", "KILN_", "NVIDIA_", "NCCL_", "LLVM_PROFILE"];

/// How long after its socket a process may end.
const EXIT_DELAY_LIMIT: Duration = Duration::from_secs(1);
/// How often the start of a worker checks whether takeovers were cancelled.
const CANCELLATION_CHECK: Duration = Duration::from_millis(50);

/// A worker process that was started and has not answered the handshake yet.
pub(crate) struct StartingWorker {
    process: ChildProcess,
    segment: Segment,
    socket: Socket,
    sent: io::Result<()>,
    since: Instant,
}

/// A worker that has opened its device.
pub(crate) struct RunningWorker {
    process: ChildProcess,
    pub(crate) worker: WorkerHandle,
    pub(crate) info: DeviceInfo,
}

impl StartingWorker {
    /// Starts a worker and sends the handshake.
    ///
    /// The calling thread must outlive the worker: the system kills a worker when the thread that started it ends.
    pub(crate) fn spawn(config: &IsolationConfig) -> Result<Self, WorkerStartError> {
        let system = |what| move |error| WorkerStartError::System { what, error };
        let hello = hello(config)?;
        let file = MemoryFile::create(SEGMENT_BYTES).map_err(system("shared memory"))?;
        let segment = Segment::map(&file).map_err(system("shared memory"))?;
        let (socket, theirs) = Socket::pair().map_err(system("a socket"))?;
        let child = command(config)?
            .stdin(Stdio::from(theirs))
            .spawn()
            .map_err(|error| WorkerStartError::Spawn { program: program(config), error })?;
        let process = ChildProcess::adopt(child).map_err(system("a process descriptor"))?;
        // If the worker has ended already, the missing answer shows that, with the exit status.
        let sent = socket.send(&hello, Some(file.descriptor()));
        Ok(Self { process, segment, socket, sent, since: Instant::now() })
    }

    /// A descriptor that is readable once the worker has answered or ended.
    pub(crate) fn answer(&self) -> BorrowedFd<'_> {
        self.socket.descriptor()
    }

    /// How much longer it may take to answer.
    pub(crate) fn left(&self, config: &IsolationConfig) -> Duration {
        config.start_limit.saturating_sub(self.since.elapsed())
    }

    /// Waits for the answer. A worker that gives none in time, or before takeovers are cancelled, is killed.
    pub(crate) fn finish(
        mut self,
        config: &IsolationConfig,
        streams: Arc<StreamTable>,
        cancellation: &Cancellation,
    ) -> Result<RunningWorker, WorkerStartError> {
        let info = self.read_welcome(config, cancellation)?;
        let Self { process, segment, socket, .. } = self;
        let link = Arc::new(Link::new(segment, socket, config.spin, streams));
        Ok(RunningWorker { worker: WorkerHandle::new(process.id(), link), process, info })
    }

    fn read_welcome(
        &mut self,
        config: &IsolationConfig,
        cancellation: &Cancellation,
    ) -> Result<DeviceInfo, WorkerStartError> {
        let mut received = self.socket.receive(self.left(config).min(CANCELLATION_CHECK));
        while matches!(&received, Err(error) if error.kind() == io::ErrorKind::TimedOut)
            && !self.left(config).is_zero()
            && !cancellation.is_cancelled()
        {
            received = self.socket.receive(self.left(config).min(CANCELLATION_CHECK));
        }
        let received = match received {
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                return Err(WorkerStartError::TimedOut { after: self.since.elapsed() });
            }
            Err(_) => {
                // The socket closes a moment before the process can be waited for.
                let ended = self.process.ends_within(EXIT_DELAY_LIMIT);
                return match std::mem::replace(&mut self.sent, Ok(())) {
                    Err(error) if !ended => Err(WorkerStartError::System { what: "the handshake", error }),
                    _ => {
                        let status = self.process.ended().and_then(|ended| ended.status);
                        Err(WorkerStartError::Ended { status })
                    }
                };
            }
        };
        let mut reader = Reader::new(&received.bytes);
        let welcome = Welcome::take(&mut reader).and_then(|welcome| reader.end().map(|()| welcome));
        match welcome.map_err(|malformed| WorkerStartError::Violation(malformed.into()))? {
            Welcome::Ready(info) => Ok(*info),
            Welcome::Refused { absent, text } => Err(WorkerStartError::Device { absent, text }),
        }
    }
}

impl RunningWorker {
    pub(crate) fn link(&self) -> &Link {
        &self.worker.link
    }

    /// Its process id.
    pub(crate) fn process(&self) -> u32 {
        self.process.id()
    }

    /// A descriptor that is readable once the process has ended.
    pub(crate) fn handle(&self) -> BorrowedFd<'_> {
        self.process.handle()
    }

    /// Kills the process, and does not wait for its end.
    pub(crate) fn kill(&self) {
        self.process.kill();
    }

    /// Kills the process and waits for its end.
    pub(crate) fn kill_and_wait(self) {
        drop(self);
    }

    /// How the process ended, if it has.
    pub(crate) fn ended(&self) -> Option<Ended> {
        self.process.ended()
    }

    /// Waits for the process to exit by itself, up to a limit, then kills it. Returns its last message.
    pub(crate) fn wait_for_exit(self, limit: Duration) -> Option<Farewell> {
        let received = self.link().socket.receive(limit).ok();
        self.process.ends_within(limit);
        self.kill_and_wait();
        let received = received?;
        let mut reader = Reader::new(&received.bytes);
        Farewell::take(&mut reader).ok()
    }
}

fn program(config: &IsolationConfig) -> PathBuf {
    match &config.entry {
        WorkerEntry::Main | WorkerEntry::Test(_) => PathBuf::from("/proc/self/exe"),
        WorkerEntry::Program(program) => program.clone(),
    }
}

fn command(config: &IsolationConfig) -> Result<Command, WorkerStartError> {
    if environment::is_worker() {
        return Err(WorkerStartError::InsideWorker);
    }
    let mut command = Command::new(program(config));
    match &config.entry {
        WorkerEntry::Main if !environment::has_entry() => return Err(WorkerStartError::NoEntry),
        WorkerEntry::Main | WorkerEntry::Program(_) => {}
        WorkerEntry::Test(name) => {
            // A test that is only ever a worker may be marked `#[ignore]`. What the harness prints is not needed.
            command.args([name.as_str(), "--exact", "--include-ignored", "--nocapture", "--test-threads=1"]);
            command.stdout(Stdio::null());
        }
    }
    // Signals that a terminal sends to the client's group do not reach the worker.
    command.process_group(0);
    command.env_clear();
    command.envs(std::env::vars_os().filter(|(name, _)| is_inherited(config, name)));
    command.envs(config.variables.iter().cloned());
    command.env(WORKER_VARIABLE, "1").env(PARENT_VARIABLE, std::process::id().to_string());
    Ok(command)
}

fn is_inherited(config: &IsolationConfig, name: &OsString) -> bool {
    let Some(name) = name.to_str() else { return false };
    INHERITED.contains(&name)
        || INHERITED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || config.inherited_variables.iter().any(|wanted| wanted == name)
}

fn hello(config: &IsolationConfig) -> Result<Vec<u8>, WorkerStartError> {
    let hello = Writer::of(&Hello {
        spin_ns: u64::try_from(config.spin.as_nanos()).unwrap_or(u64::MAX),
        device: config.device.clone(),
    });
    if hello.len() > LONGEST_MESSAGE_BYTES {
        return Err(WorkerStartError::Argument { bytes: config.device.argument().len() });
    }
    Ok(hello)
}
