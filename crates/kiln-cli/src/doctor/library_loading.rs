//! A library that was found is loaded in another process, and where there is a GPU its first operation, too: this command again, under the name `load-library`. A
//! library that crashes, ends the process or never returns does so there.

use std::io::{self, ErrorKind, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use kiln::DeviceRuntime;
use kiln::libraries::{FoundLibrary, LibraryOrigin, MissingLibrary, SearchedPlace};

use super::library_cost::{Sample, sample_operation};
use super::load_library::{DEVICE, Loaded, NAME, answer_in};
use crate::signal_name::signal_text;

/// How long a library may take. From a slow disk the largest ones take a second or two.
const TIME_LIMIT: Duration = Duration::from_secs(10);
/// How long its first use may take beside that, the start of CUDA included.
const SAMPLE_LIMIT: Duration = Duration::from_secs(20);
/// How often is looked whether the process has ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The most bytes that are read: the initialisers of a library may print before the answer.
const OUTPUT_LIMIT: u64 = 1 << 20;

/// The library with the version that it tells, and how its first use on a device goes, if kiln calls it.
///
/// # Errors
/// It cannot be used; it did not load within the time limit; it ended the process that loaded it.
pub(super) fn load(
    found: &FoundLibrary,
    gpu: Option<&DeviceRuntime>,
) -> Result<(FoundLibrary, Option<Sample>), MissingLibrary> {
    let device = gpu.filter(|_| sample_operation(found.kind).is_some()).map(DeviceRuntime::ordinal);
    let place = SearchedPlace {
        path: found.path.clone(),
        why: String::new(),
        is_incomplete: false,
        is_too_old: false,
        is_unloadable: false,
    };
    let place = match answer(found, device) {
        Ok((loaded, sample)) => match loaded.why {
            None => return Ok((FoundLibrary { version: loaded.version(), ..found.clone() }, sample)),
            Some(why) => {
                let is_too_old = loaded.is_too_old;
                SearchedPlace { why, is_too_old, is_unloadable: !is_too_old, ..place }
            }
        },
        Err(why) => SearchedPlace { why, is_unloadable: true, ..place },
    };
    let variable = (found.origin == LibraryOrigin::Configured).then(|| found.kind.variable());
    Err(MissingLibrary { kind: found.kind, tried: vec![place], variable })
}

/// What the process found out, or why it found out nothing.
fn answer(found: &FoundLibrary, device: Option<u32>) -> Result<(Loaded, Option<Sample>), String> {
    let (mut output, mut process) =
        start(found, device).map_err(|error| format!("no process could be started to load it: {error}"))?;
    let ended = wait(&mut output, &mut process, device.is_some());
    if !matches!(ended, Ok((_, Some(_)))) {
        // It has not ended; afterwards it has, whatever these answer.
        let _ = process.kill();
        let _ = process.wait();
    }
    match ended {
        Ok((printed, Some(status))) => {
            let (loaded, sample) = (Loaded::find(&printed), answer_in(&printed));
            let is_awaited = device.is_some() && loaded.as_ref().is_some_and(|loaded| loaded.why.is_none());
            match (loaded, sample, status.code()) {
                (Some(loaded), None, _) if is_awaited => {
                    let died = format!("its first use ended its process with {}", end_text(status));
                    Ok((loaded, Some(Sample::Died(died))))
                }
                (Some(loaded), sample, Some(0)) => Ok((loaded, sample)),
                _ => Err(format!("loading it ended its process with {}", end_text(status))),
            }
        }
        Ok((printed, None)) => match Loaded::find(&printed).filter(|_| device.is_some()) {
            Some(loaded) => {
                let late = format!("its first use did not end within {} s", SAMPLE_LIMIT.as_secs());
                Ok((loaded, Some(Sample::Died(late))))
            }
            None => Err(format!("loading it did not end within {} s", TIME_LIMIT.as_secs())),
        },
        Err(error) => Err(format!("what loads it could not be asked: {error}")),
    }
}

fn start(found: &FoundLibrary, device: Option<u32>) -> io::Result<(UnixStream, Child)> {
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_read_timeout(Some(LOOK_EVERY))?;
    // The file that is running, even if it was replaced or removed since.
    let mut command = Command::new("/proc/self/exe");
    command.arg(NAME);
    if let Some(device) = device {
        command.args([DEVICE, &device.to_string()]);
    }
    command.args(["--", found.kind.name()]).arg(&found.path);
    if let Some(version) = found.version {
        command.arg(version.to_string());
    }
    command.stdin(Stdio::null()).stdout(OwnedFd::from(theirs));
    // The command, which holds the other end, is dropped here: the end of the output is seen when the process ends.
    Ok((ours, command.spawn()?))
}

/// What the process prints, and how it ends; none if it does not in time.
fn wait(
    output: &mut UnixStream,
    process: &mut Child,
    is_sampled: bool,
) -> io::Result<(Vec<u8>, Option<ExitStatus>)> {
    let (began, mut printed, mut ended) = (Instant::now(), Vec::new(), None);
    loop {
        let room = OUTPUT_LIMIT.saturating_sub(printed.len() as u64);
        let is_over = match output.by_ref().take(room).read_to_end(&mut printed) {
            Ok(_) => true,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => false,
            Err(error) => return Err(error),
        };
        // What it started may still hold the output: it is read once more after the end, and then no longer.
        if let Some(status) = ended {
            return Ok((printed, Some(status)));
        }
        ended = process.try_wait()?;
        let is_late = || match is_sampled && Loaded::find(&printed).is_some() {
            true => began.elapsed() >= TIME_LIMIT + SAMPLE_LIMIT,
            false => began.elapsed() >= TIME_LIMIT,
        };
        if ended.is_none() && began.elapsed() >= TIME_LIMIT && is_late() {
            return Ok((printed, None));
        }
        if is_over && ended.is_none() {
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

fn end_text(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => signal_text(u8::try_from(signal).unwrap_or(u8::MAX)),
        (None, code) => format!("exit status {}", code.unwrap_or_default()),
    }
}
