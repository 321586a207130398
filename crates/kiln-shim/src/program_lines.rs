//! Where the program queued work: its own lines, for what is found of that work.
//!
//! Functions of the API that queue work note the place of their caller before they do anything: the stack of the thread, and the frames of a Python interpreter where
//! the thread has some. A stack that a thread walked before is known again by its return addresses, which lie where they lay; names and lines are looked up when
//! something is found. Nothing is noted above a GPU, whose findings are about memory and not about a place, unless the process is recorded: then functions that wait and
//! allocate are noted, too, because a recording has the lines of both.

mod known_walks;
mod loaded_files;
mod native_frames;
mod python_frames;
mod submitted_work;
mod told_frames;

use std::backtrace::Backtrace;
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use kiln_driver::call::{Answer, Call};
use kiln_driver::layer::{Layer, Layered};
use kiln_driver::{Driver, Error, Site};

use crate::statistics;
use known_walks::KnownStack;
use loaded_files::LoadedFile;
use native_frames::NativeStack;
use python_frames::PythonFrame;
use submitted_work::SubmittedWork;
use told_frames::ToldFrame;

/// Frames of the program that are told.
const TOLD: usize = 3;
/// Different places of the program; those beyond are not told.
const MOST_PLACES: usize = 4096;

/// A place of the program. There are so few that they are kept as long as the process runs.
#[derive(Debug)]
pub(crate) struct ProgramPlace {
    python: Vec<PythonFrame>,
    native: Backtrace,
    /// Files of its code that may be unloaded.
    files: Vec<LoadedFile>,
    /// Looked up once.
    words: OnceLock<Option<String>>,
    line: OnceLock<Option<(String, u32)>>,
}

/// What tells places apart.
#[derive(Clone, PartialEq, Eq, Hash)]
enum PlaceKey {
    Python(Vec<PythonFrame>),
    Native(NativeStack, Vec<LoadedFile>),
}

thread_local! {
    /// The place from which the thread is in a function that is noted.
    static HERE: Cell<Option<&'static ProgramPlace>> = const { Cell::new(None) };
}

/// The work of each device whose places are noted.
static DEVICES: OnceLock<Vec<Arc<SubmittedWork>>> = OnceLock::new();

/// Whether a function of the API notes its caller.
pub(crate) mod noted {
    /// It does not.
    pub(crate) const NEVER: u8 = 0;
    /// It queues work, and does.
    pub(crate) const WORK: u8 = 1;
    /// It waits or allocates, and does in a process that is recorded.
    pub(crate) const RECORDED: u8 = 2;

    const QUEUE_WORK: [&str; 8] = [
        "cuLaunch",
        "cuMemcpy",
        "cuMemset",
        "cuGraphLaunch",
        "cuStreamAddCallback",
        "cuStreamBatchMemOp",
        "cuStreamWaitValue",
        "cuStreamWriteValue",
    ];
    const WAIT_OR_ALLOCATE: [&str; 7] = [
        "cuStreamWaitEvent",
        "cuStreamSynchronize",
        "cuCtxSynchronize",
        "cuEventSynchronize",
        "cuMemAlloc",
        "cuMemHostAlloc",
        "cuMemHostRegister",
    ];

    /// Which of these a function is, by its name.
    pub(crate) const fn kind_of(name: &str) -> u8 {
        if has_beginning(name, &QUEUE_WORK) {
            WORK
        } else if has_beginning(name, &WAIT_OR_ALLOCATE) {
            RECORDED
        } else {
            NEVER
        }
    }

    const fn has_beginning(name: &str, beginnings: &[&str]) -> bool {
        match beginnings {
            [] => false,
            [first, rest @ ..] => begins_with(name.as_bytes(), first.as_bytes()) || has_beginning(name, rest),
        }
    }

    const fn begins_with(name: &[u8], beginning: &[u8]) -> bool {
        match (name, beginning) {
            (_, []) => true,
            ([of_name, name @ ..], [wanted, beginning @ ..]) => {
                *of_name == *wanted && begins_with(name, beginning)
            }
            _ => false,
        }
    }
}

/// Which kinds of functions are noted: this one, and those before it.
static NOTED: AtomicU8 = AtomicU8::new(noted::NEVER);

/// Whether functions of a kind note their caller; the child of a fork has no devices.
#[inline]
pub(crate) fn is_noted(kind: u8) -> bool {
    kind != noted::NEVER && NOTED.load(Ordering::Relaxed) >= kind
}

/// Notes the caller of a function of the API. No lock of the library is held: a Python interpreter may be waited for.
#[inline(never)]
pub(crate) fn enter(name: &'static str) {
    let python = python_frames::current(TOLD);
    let from = (&raw const python).addr();
    if !python.is_empty() {
        return HERE.set(place_of(PlaceKey::Python(python)));
    }
    if let Some(known) = known_walks::find(name, from) {
        return HERE.set(known);
    }
    statistics::count_stack_walk();
    let (native, slots) = NativeStack::walk(from);
    let unloads = loaded_files::unloads();
    let files = loaded_files::that_may_go(native.addresses());
    // A stack in files that stay is the same for as long as the process runs.
    let unloads = (!files.is_empty()).then_some(unloads);
    let place = place_of(PlaceKey::Native(native, files));
    if let Some(slots) = slots {
        known_walks::keep(name, from, KnownStack { slots, unloads, place });
    }
    HERE.set(place);
}

/// The function returns.
#[inline]
pub(crate) fn leave() {
    HERE.set(None);
}

/// The place of a key; none if there are too many.
fn place_of(key: PlaceKey) -> Option<&'static ProgramPlace> {
    static PLACES: OnceLock<Mutex<HashMap<PlaceKey, &'static ProgramPlace>>> = OnceLock::new();
    let mut known: MutexGuard<'_, _> =
        PLACES.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(place) = known.get(&key) {
        return Some(place);
    }
    if known.len() >= MOST_PLACES {
        return None;
    }
    let (python, native, files) = match &key {
        PlaceKey::Python(frames) => (frames.clone(), Backtrace::disabled(), Vec::new()),
        PlaceKey::Native(_, files) => (Vec::new(), Backtrace::force_capture(), files.clone()),
    };
    let place = ProgramPlace { python, native, files, words: OnceLock::new(), line: OnceLock::new() };
    let place: &'static ProgramPlace = Box::leak(Box::new(place));
    known.insert(key, place);
    Some(place)
}

/// The layer around a device that notes which work comes from which place.
struct PlacingLayer(Arc<SubmittedWork>);

/// Notes the callers of functions from here on, those that a recording needs if there is one. With `tells_work` a layer around each device notes from where its work comes.
pub(crate) fn begin(devices: &mut [Arc<dyn Driver>], (tells_work, is_recorded): (bool, bool)) {
    if !tells_work && !is_recorded {
        return;
    }
    if tells_work {
        let work: Vec<Arc<SubmittedWork>> = devices.iter().map(|_| Arc::new(SubmittedWork::new())).collect();
        for (driver, work) in devices.iter_mut().zip(&work) {
            *driver = Arc::new(Layered::new(driver.clone(), PlacingLayer(work.clone())));
        }
        // The state of the process is made once.
        let _ = DEVICES.set(work);
    }
    extern "C" fn in_child() {
        NOTED.store(noted::NEVER, Ordering::Relaxed);
    }
    // SAFETY: the function does not unwind, and lives as long as the library, which is never unloaded while it is in use.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    NOTED.store(if is_recorded { noted::RECORDED } else { noted::WORK }, Ordering::Relaxed);
}

impl Layer for PlacingLayer {
    fn after(&self, call: &Call<'_>, answer: Result<Answer<'_>, &Error>) {
        if let (Call::Submit { stream, .. }, Ok(Answer::Submission(number))) = (call, answer)
            && let Some(place) = HERE.get()
        {
            self.0.note(*stream, number, place);
        }
    }
}

impl ProgramPlace {
    fn told(&self) -> Vec<ToldFrame> {
        told_frames::told(&self.native, &self.files, TOLD)
    }

    /// The innermost frames of the program, such as `run.c:42 in step, run.c:90 in main`.
    fn words(&self) -> Option<&str> {
        let words = self.words.get_or_init(|| {
            let frames: Vec<String> = match self.python.as_slice() {
                [] => self.told().iter().map(ToString::to_string).collect(),
                python => python.iter().map(ToString::to_string).collect(),
            };
            (!frames.is_empty()).then(|| frames.join(", "))
        });
        words.as_deref()
    }

    /// The file and the line of the innermost frame of the program that has one.
    fn line(&self) -> Option<(&str, u32)> {
        let line = self.line.get_or_init(|| match self.python.as_slice() {
            [] => self.told().iter().find_map(ToldFrame::line),
            [innermost, ..] => innermost.line(),
        });
        line.as_ref().map(|(file, line)| (file.as_str(), *line))
    }
}

/// The file and the line of the program from which the thread is in a function that is noted.
pub(crate) fn line_here() -> Option<(&'static str, u32)> {
    HERE.get()?.line()
}

/// The same of work that was queued, on a device.
pub(crate) fn line_of(device: u32, site: &Site) -> Option<(&'static str, u32)> {
    place_of_work(device, &site.stream.to_string(), site.submission.0)?.line()
}

/// From where a submission was queued.
fn place_of_work(device: u32, stream: &str, number: u64) -> Option<&'static ProgramPlace> {
    DEVICES.get()?.get(device as usize)?.place_of(stream, number)
}

/// The text of a finding with the places from which the work was queued that it names, and these places.
pub(crate) fn with_places(text: &str) -> (String, Vec<String>) {
    let mut seen: Vec<(u32, &str, u64)> = Vec::new();
    let (mut told, mut all) = (text.to_owned(), Vec::new());
    for (device, stream, number) in named_work(text) {
        if seen.contains(&(device, stream, number)) {
            continue;
        }
        seen.push((device, stream, number));
        if let Some(words) = place_of_work(device, stream, number).and_then(ProgramPlace::words) {
            told.push_str(&format!("\n       {stream} submission {number} was queued at {words}"));
            all.push(words.to_owned());
        }
    }
    (told, all)
}

/// The work that a text names, as `stream:3.1 submission 7`, with the ordinal of its device.
fn named_work(text: &str) -> Vec<(u32, &str, u64)> {
    let words: Vec<&str> = text.split(|mark: char| mark.is_whitespace() || mark == ',').collect();
    let number = |word: &str| word.trim_end_matches(|mark: char| !mark.is_ascii_digit()).parse().ok();
    let device = |at: usize| -> Option<u32> {
        let word = words.get(at.checked_sub(2)?)?;
        (word.trim_start_matches('(') == "device").then(|| words.get(at - 1)?.parse().ok()).flatten()
    };
    let named = words.windows(3).enumerate().filter_map(|(at, words)| match words {
        [stream, "submission", last] if stream.contains("stream:") => {
            // Where there is one device, it is not named.
            Some((device(at).unwrap_or(0), stream.trim_start_matches('('), number(last)?))
        }
        _ => None,
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_found_in_a_text() {
        let text = "launch add_one on stream:3.1 submission 12 writes bytes 0..256 of memory:1.1, and nothing orders it after launch set on \
                    stream:4.1 submission 7, which read them. Repeat with seed 3.";
        assert_eq!(named_work(text), [(0, "stream:3.1", 12), (0, "stream:4.1", 7)]);
        let text = "launch set (device 1 stream:0.1 submission 2): out of bounds";
        assert_eq!(named_work(text), [(1, "stream:0.1", 2)]);
        assert_eq!(named_work("the stream:x submission none"), []);
    }

    #[test]
    fn functions_that_queue_work_wait_or_allocate_are_known_by_their_names() {
        for name in ["cuLaunchKernel", "cuMemcpyHtoDAsync_v2", "cuGraphLaunch", "cuStreamWaitValue32_v2"] {
            assert_eq!(noted::kind_of(name), noted::WORK, "{name}");
        }
        for name in ["cuMemAlloc_v2", "cuMemAllocHost_v2", "cuStreamSynchronize", "cuStreamWaitEvent_ptsz"] {
            assert_eq!(noted::kind_of(name), noted::RECORDED, "{name}");
        }
        for name in ["cuGraphCreate", "cuMem", "cuMemFree_v2", "cuStreamQuery", ""] {
            assert_eq!(noted::kind_of(name), noted::NEVER, "{name}");
        }
    }
}
