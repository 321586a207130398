//! Starts a worker process.
//!
//! The worker is this program again, by way of `/proc/self/exe`, which is the file that runs even if it was replaced or
//! removed meanwhile. It gets the socket as its standard input, which needs no code between fork and exec, and a
//! small environment: what the driver's libraries read, what the caller names, and the mark that makes it a worker.

use std::ffi::OsString;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kiln_driver::DeviceInfo;

use crate::area::{AREA_BYTES, Area};
use crate::config::{Config, Entry};
use crate::link::Link;
use crate::patience::Patience;
use crate::preparation::Outfitted;
use crate::process::{Ended, Process};
use crate::shared_file::SharedFile;
use crate::socket::{LONGEST_MESSAGE_BYTES, Socket};
use crate::start_error::StartError;
use crate::streams::StreamTable;
use crate::wire::{Farewell, Hello, Reader, Take, Welcome, Writer};
use crate::worker::entry_passed;

/// In the environment of a worker, and of nothing else.
pub(crate) const WORKER_VARIABLE: &str = "KILN_WORKER";
/// The process that started it.
pub(crate) const PARENT_VARIABLE: &str = "KILN_WORKER_PARENT";

/// What a worker's environment holds besides: by name, or by the beginning of a name.
const PASSED_ON: [&str; 5] = ["HOME", "LD_LIBRARY_PATH", "PATH", "RUST_BACKTRACE", "TMPDIR"];
const PASSED_ON_BEGINNINGS: [&str; 4] = ["CUDA_", "KILN_", "NVIDIA_", "LLVM_PROFILE"];

/// How long the end of a process may stay behind that of its socket.
const HANG_UP_LIMIT: Duration = Duration::from_secs(1);
/// How often somebody who waits for a worker to start looks whether that is still wanted.
const LOOK: Duration = Duration::from_millis(50);

/// A worker that was started and greeted, and has not answered yet.
pub(crate) struct Starting {
    process: Process,
    area: Area,
    socket: Socket,
    sent: io::Result<()>,
    since: Instant,
}

/// A worker that has its device.
pub(crate) struct Running {
    process: Process,
    pub(crate) outfitted: Outfitted,
    pub(crate) info: DeviceInfo,
}

impl Starting {
    /// Starts a worker and greets it.
    ///
    /// The thread that calls this must outlive the worker: the system ends a worker when the thread that
    /// started it ends.
    pub(crate) fn spawn(config: &Config) -> Result<Self, StartError> {
        let system = |what| move |error| StartError::System { what, error };
        let hello = hello(config)?;
        let file = SharedFile::create(AREA_BYTES).map_err(system("shared memory"))?;
        let area = Area::map(&file).map_err(system("shared memory"))?;
        let (socket, theirs) = Socket::pair().map_err(system("a socket"))?;
        let child = command(config)?
            .stdin(Stdio::from(theirs))
            .spawn()
            .map_err(|error| StartError::Spawn { program: program(config), error })?;
        let process = Process::adopt(child).map_err(system("a handle of the worker"))?;
        // A worker that ended already is found out when it does not answer, with its status.
        let sent = socket.send(&hello, Some(file.descriptor()));
        Ok(Self { process, area, socket, sent, since: Instant::now() })
    }

    /// Readable once it answered, or ended.
    pub(crate) fn answer(&self) -> BorrowedFd<'_> {
        self.socket.descriptor()
    }

    /// How much longer it may take to answer.
    pub(crate) fn left(&self, config: &Config) -> Duration {
        config.start_limit.saturating_sub(self.since.elapsed())
    }

    /// Waits for its answer, as long as patience lasts. A worker that gives none is ended.
    pub(crate) fn finish(
        mut self,
        config: &Config,
        streams: Arc<StreamTable>,
        patience: &Patience,
    ) -> Result<Running, StartError> {
        let info = self.read_welcome(config, patience)?;
        let Self { process, area, socket, .. } = self;
        let link = Arc::new(Link::new(area, socket, config.spin, streams));
        Ok(Running { outfitted: Outfitted::new(process.id(), link), process, info })
    }

    fn read_welcome(&mut self, config: &Config, patience: &Patience) -> Result<DeviceInfo, StartError> {
        let mut said = self.socket.receive(self.left(config).min(LOOK));
        while matches!(&said, Err(error) if error.kind() == io::ErrorKind::TimedOut)
            && !self.left(config).is_zero()
            && !patience.is_at_end()
        {
            said = self.socket.receive(self.left(config).min(LOOK));
        }
        let said = match said {
            Ok(said) => said,
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                return Err(StartError::TimedOut { after: self.since.elapsed() });
            }
            Err(_) => {
                // The socket closes a moment before the process can be waited for.
                let ended = self.process.ends_within(HANG_UP_LIMIT);
                return match std::mem::replace(&mut self.sent, Ok(())) {
                    Err(error) if !ended => Err(StartError::System { what: "a greeting", error }),
                    _ => Err(StartError::Ended { status: self.process.ended().and_then(|it| it.status) }),
                };
            }
        };
        let mut reader = Reader::new(&said.bytes);
        let welcome = Welcome::take(&mut reader).and_then(|welcome| reader.end().map(|()| welcome));
        match welcome.map_err(|malformed| StartError::Violation(malformed.into()))? {
            Welcome::Ready(info) => Ok(*info),
            Welcome::Refused { absent, text } => Err(StartError::Device { absent, text }),
        }
    }
}

impl Running {
    /// The way to it.
    pub(crate) fn link(&self) -> &Link {
        &self.outfitted.link
    }

    /// Its process.
    pub(crate) fn process(&self) -> u32 {
        self.process.id()
    }

    /// Readable once the process ended.
    pub(crate) fn handle(&self) -> BorrowedFd<'_> {
        self.process.handle()
    }

    /// Ends it at once, whatever it does, and does not wait for that.
    pub(crate) fn strike(&self) {
        self.process.strike();
    }

    /// Ends it at once, whatever it does, and waits for that.
    pub(crate) fn kill(self) {
        drop(self);
    }

    /// How it ended, if it did.
    pub(crate) fn ended(&self) -> Option<Ended> {
        self.process.ended()
    }

    /// Waits for it to end by itself for so long, then ends it. What it said last is the answer.
    pub(crate) fn finish(self, limit: Duration) -> Option<Farewell> {
        let said = self.link().socket.receive(limit).ok();
        self.process.ends_within(limit);
        self.kill();
        let said = said?;
        let mut reader = Reader::new(&said.bytes);
        Farewell::take(&mut reader).ok()
    }
}

fn program(config: &Config) -> PathBuf {
    match &config.entry {
        Entry::Main | Entry::Test(_) => PathBuf::from("/proc/self/exe"),
        Entry::Program(program) => program.clone(),
    }
}

fn command(config: &Config) -> Result<Command, StartError> {
    if std::env::var_os(WORKER_VARIABLE).is_some() {
        return Err(StartError::InsideWorker);
    }
    let mut command = Command::new(program(config));
    match &config.entry {
        Entry::Main if !entry_passed() => return Err(StartError::NoEntry),
        Entry::Main | Entry::Program(_) => {}
        Entry::Test(name) => {
            // A test that is only ever a worker may be marked `#[ignore]`. What the harness prints is not needed.
            command.args([name.as_str(), "--exact", "--include-ignored", "--nocapture", "--test-threads=1"]);
            command.stdout(Stdio::null());
        }
    }
    // What a terminal sends to the client is the client's business.
    command.process_group(0);
    command.env_clear();
    command.envs(std::env::vars_os().filter(|(name, _)| is_passed_on(config, name)));
    command.envs(config.variables.iter().cloned());
    command.env(WORKER_VARIABLE, "1").env(PARENT_VARIABLE, std::process::id().to_string());
    Ok(command)
}

fn is_passed_on(config: &Config, name: &OsString) -> bool {
    let Some(name) = name.to_str() else { return false };
    PASSED_ON.contains(&name)
        || PASSED_ON_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
        || config.passed_on.iter().any(|wanted| wanted == name)
}

fn hello(config: &Config) -> Result<Vec<u8>, StartError> {
    let hello = Writer::of(&Hello {
        spin_ns: u64::try_from(config.spin.as_nanos()).unwrap_or(u64::MAX),
        backend: config.backend.name().into(),
        argument: config.backend.argument().into(),
    });
    if hello.len() > LONGEST_MESSAGE_BYTES {
        return Err(StartError::Argument { bytes: config.backend.argument().len() });
    }
    Ok(hello)
}
