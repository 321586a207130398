//! The server: a thread that reads the recording, one that accepts connections, and one for each connection.

use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::access_token::AccessToken;
use super::connections::Connections;
use super::request::Refusal;
use super::response::Response;
use super::router::Router;
use super::session::Session;
use crate::watch_error::WatchError;
use crate::watched_job::{RepeatCommandText, WatchedFiles, WatchedJob};
use crate::watched_recording::{WatchedRecording, locked};

/// How often a file is looked at that has nothing new.
const POLL: Duration = Duration::from_millis(200);
/// How long an accept that fails, as for lack of descriptors, is not repeated.
const RETRY: Duration = Duration::from_millis(50);

/// How a recording is watched.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WatchOptions {
    /// The port of the page; 0 is any free one.
    pub port: u16,
    /// What is expected of the file.
    pub file: ExpectedFile,
    /// The command that records the program again, where it is known.
    pub repeat: Option<RepeatCommandText>,
}

/// What is expected of a file when watching begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ExpectedFile {
    /// It is a recording.
    #[default]
    There,
    /// It is a recording, or is not there yet, or has no start yet.
    Awaited,
    /// It is about to be made; what is there now is not looked at.
    New,
}

/// A page that is served until this is dropped.
pub struct WatchServer {
    recording: Arc<WatchedRecording>,
    job: Arc<WatchedJob>,
    shared: Arc<Running>,
    url: String,
    address: SocketAddr,
}

/// What the threads share.
struct Running {
    router: Router,
    connections: Arc<Connections>,
    stops: AtomicBool,
    stopped: Mutex<bool>,
    changed: Condvar,
}

impl WatchServer {
    /// Opens a recording and serves its page.
    ///
    /// # Errors
    /// A file that is no recording, of another version, or cannot be read; a port that is in use or cannot be opened.
    pub fn start(file: &Path, options: &WatchOptions) -> Result<Self, WatchError> {
        Self::start_job(WatchedFiles::Files(vec![file.to_owned()]), options)
    }

    /// Opens the recordings of the ranks of one job, and serves one page for all of them.
    ///
    /// # Errors
    /// As [`start`](Self::start), for any of the files.
    pub fn start_job(files: WatchedFiles, options: &WatchOptions) -> Result<Self, WatchError> {
        let job = Arc::new(WatchedJob::new(files).repeated_by(options.repeat.clone()));
        for recording in job.recordings() {
            let opens = match options.file {
                ExpectedFile::There => true,
                ExpectedFile::Awaited => !is_missing(recording.path()),
                ExpectedFile::New => false,
            };
            if opens {
                recording.open()?;
            }
        }
        let port = options.port;
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|error| match error.kind() {
                io::ErrorKind::AddrInUse => WatchError::PortInUse { port },
                _ => WatchError::NoPort { port, error },
            })?;
        let address = listener.local_addr().map_err(|error| WatchError::NoPort { port, error })?;
        let token = AccessToken::random().map_err(WatchError::NoRandomNumbers)?;
        let url = format!("http://{address}/{token}/");
        let shared = Arc::new(Running {
            router: Router { job: job.clone(), token, port: address.port() },
            connections: Arc::default(),
            stops: AtomicBool::new(false),
            stopped: Mutex::new(false),
            changed: Condvar::new(),
        });
        // From here on an error ends the threads that were started.
        let recording = job.recording(0).unwrap_or_else(|| Arc::new(WatchedRecording::new("".as_ref())));
        let server = Self { recording, job, shared, url, address };
        let running = server.shared.clone();
        spawn("kiln-watch-file", move || running.follow())?;
        let running = server.shared.clone();
        spawn("kiln-watch-page", move || running.accept(&listener))?;
        Ok(server)
    }

    /// The address of the page, with its token.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// All recordings.
    pub fn job(&self) -> &Arc<WatchedJob> {
        &self.job
    }

    /// The first recording.
    pub fn recording(&self) -> &Arc<WatchedRecording> {
        &self.recording
    }

    /// Waits for ever.
    pub fn wait(&self) {
        let mut stopped = locked(&self.shared.stopped);
        while !*stopped {
            stopped = self.shared.changed.wait(stopped).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for WatchServer {
    fn drop(&mut self) {
        self.shared.stops.store(true, Ordering::Release);
        *locked(&self.shared.stopped) = true;
        self.shared.changed.notify_all();
        self.shared.connections.close();
        // Wakes the thread that accepts.
        let _ = TcpStream::connect_timeout(&self.address, RETRY);
    }
}

impl Running {
    /// Reads what is new in the file, again and again.
    fn follow(&self) {
        while !self.stops() {
            if !self.router.job.read_more() {
                let stopped = locked(&self.stopped);
                let _ = self.changed.wait_timeout_while(stopped, POLL, |stopped| !*stopped);
            }
        }
    }

    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        while !self.stops() {
            match listener.accept() {
                Ok((stream, _)) => self.serve(stream),
                Err(_) => std::thread::sleep(RETRY),
            }
        }
    }

    fn serve(self: &Arc<Self>, mut stream: TcpStream) {
        let Some(guard) = self.connections.add(&stream) else {
            let busy = Response::refused(Refusal(503, "too many requests at once; try again"));
            let _ = stream.set_write_timeout(Some(RETRY));
            let _ = stream.write_all(&busy.bytes(false, false));
            return;
        };
        let running = self.clone();
        // A connection for which there is no thread is closed.
        let _ = spawn("kiln-watch-client", move || Session { stream, router: &running.router, guard }.run());
    }

    fn stops(&self) -> bool {
        self.stops.load(Ordering::Acquire)
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), WatchError> {
    let started = std::thread::Builder::new().name(name.to_owned()).spawn(work);
    started.map(|_| ()).map_err(WatchError::NoThread)
}

/// Whether a program may still make the file.
fn is_missing(file: &Path) -> bool {
    file.metadata().map_or(true, |known| known.is_file() && known.len() == 0)
}
