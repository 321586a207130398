//! Starts a worker process.
//!
//! The worker is this program again, by way of `/proc/self/exe`, which is the file that runs even if it was replaced or
//! removed meanwhile. It gets the socket as its standard input, which needs no code between fork and exec, and a
//! small environment: what the driver's libraries read, what the caller names, and the mark that makes it a worker.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kiln_driver::DeviceInfo;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::area::{AREA_BYTES, Area};
use crate::bell::timespec;
use crate::config::{Config, Entry};
use crate::link::Link;
use crate::preparation::Outfitted;
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

/// A worker that was started and greeted, and has not answered yet.
pub(crate) struct Starting {
    child: Option<Child>,
    handle: OwnedFd,
    area: Area,
    socket: Option<Socket>,
    sent: io::Result<()>,
    since: Instant,
}

/// A worker that has its device.
pub(crate) struct Running {
    child: Child,
    handle: OwnedFd,
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
        let mut child = command(config)?
            .stdin(Stdio::from(theirs))
            .spawn()
            .map_err(|error| StartError::Spawn { program: program(config), error })?;
        let handle = match process_handle(&child) {
            Ok(handle) => handle,
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(StartError::System { what: "a handle of the worker", error });
            }
        };
        // A worker that ended already is found out when it does not answer, with its status.
        let sent = socket.send(&hello, Some(file.descriptor()));
        let (child, socket) = (Some(child), Some(socket));
        Ok(Self { child, handle, area, socket, sent, since: Instant::now() })
    }

    /// Readable once it answered, or ended.
    pub(crate) fn answer(&self) -> Option<BorrowedFd<'_>> {
        self.socket.as_ref().map(Socket::descriptor)
    }

    /// Waits for its answer. A worker that gives none is ended.
    pub(crate) fn finish(
        mut self,
        config: &Config,
        streams: Arc<StreamTable>,
    ) -> Result<Running, StartError> {
        let info = self.read_welcome(config.start_limit)?;
        let handle = self.handle.try_clone();
        let handle = handle.map_err(|error| StartError::System { what: "a descriptor", error })?;
        let (Some(child), Some(socket)) = (self.child.take(), self.socket.take()) else {
            return Err(StartError::Ended { status: None });
        };
        let link = Arc::new(Link::new(self.area.clone(), socket, config.spin, streams));
        Ok(Running { outfitted: Outfitted::new(child.id(), link), child, handle, info })
    }

    fn read_welcome(&mut self, limit: Duration) -> Result<DeviceInfo, StartError> {
        let (Some(socket), Some(child)) = (&self.socket, &mut self.child) else {
            return Err(StartError::Ended { status: None });
        };
        let said = match socket.receive(limit.saturating_sub(self.since.elapsed())) {
            Ok(said) => said,
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                return Err(StartError::TimedOut { after: self.since.elapsed() });
            }
            Err(_) => {
                // The socket closes a moment before the process can be waited for.
                ends_within(self.handle.as_fd(), Duration::from_secs(1));
                let status = child.try_wait().ok().flatten();
                return match std::mem::replace(&mut self.sent, Ok(())) {
                    Err(error) if status.is_none() => Err(StartError::System { what: "a greeting", error }),
                    _ => Err(StartError::Ended { status }),
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

impl Drop for Starting {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // It has nothing of ours; whatever state it is in, it ends here.
            let _ = child.kill();
            let _ = child.wait();
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
        self.child.id()
    }

    /// Readable once the process ended.
    pub(crate) fn handle(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }

    /// Ends it at once, whatever it does, and does not wait for that.
    pub(crate) fn strike(&self) {
        let _ = pidfd_send_signal(&self.handle, Signal::KILL);
    }

    /// Ends it at once, whatever it does, and waits for that.
    pub(crate) fn kill(mut self) -> Option<ExitStatus> {
        self.strike();
        self.child.wait().ok()
    }

    /// How it ended, if it did.
    pub(crate) fn status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Waits for it to end by itself for so long, then ends it. What it said last is the answer.
    pub(crate) fn finish(self, limit: Duration) -> Option<Farewell> {
        let said = self.link().socket.receive(limit).ok();
        let ended = ends_within(self.handle(), limit);
        if ended {
            let mut child = self.child;
            let _ = child.wait();
        } else {
            self.kill();
        }
        let said = said?;
        let mut reader = Reader::new(&said.bytes);
        Farewell::take(&mut reader).ok()
    }
}

fn ends_within(handle: BorrowedFd<'_>, limit: Duration) -> bool {
    let mut waiting = [PollFd::from_borrowed_fd(handle, PollFlags::IN)];
    matches!(poll(&mut waiting, Some(&timespec(limit))), Ok(1..))
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
            // The harness talks on standard output, and has nothing to say.
            command.args([name.as_str(), "--exact", "--nocapture", "--test-threads=1"]).stdout(Stdio::null());
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

fn process_handle(child: &Child) -> io::Result<OwnedFd> {
    let process = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let process = process.ok_or(io::ErrorKind::NotFound)?;
    Ok(pidfd_open(process, PidfdFlags::empty())?)
}
