//! Where the program queued work: its own lines, for what is found of that work.
//!
//! Functions of the API that queue work note the place of their caller before they do anything: the stack of the thread, and the frames of a Python interpreter where
//! the thread has some. A stack that a thread walked before is known again by its return addresses, which lie where they lay; names and lines are looked up when
//! something is found. Nothing is noted above a GPU, whose findings are about memory and not about a place.

mod native_frames;
mod python_frames;

use std::backtrace::Backtrace;
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use kiln_driver::call::{Answer, Call};
use kiln_driver::layer::{Layer, Layered};
use kiln_driver::{Driver, Error, StreamId, Submission};

use native_frames::{NativeStack, ReturnSlots};
use python_frames::PythonFrame;

/// Frames of the program that are told.
const TOLD: usize = 3;
/// Different places of the program; those beyond are not told.
const PLACES: usize = 4096;
/// Submissions of a stream whose places are known.
const SUBMISSIONS: usize = 65_536;
/// Walks of a thread that are kept.
const WALKS: usize = 16;

/// A place of the program.
#[derive(Debug)]
pub(crate) struct ProgramPlace {
    python: Vec<PythonFrame>,
    native: Backtrace,
    /// Looked up once.
    words: OnceLock<Option<String>>,
}

/// What tells places apart.
#[derive(Clone, PartialEq, Eq, Hash)]
struct PlaceKey {
    python: Vec<PythonFrame>,
    native: NativeStack,
}

/// All places, and what was queued from which.
#[derive(Default)]
struct Places {
    known: HashMap<PlaceKey, Arc<ProgramPlace>>,
    submitted: HashMap<(u32, StreamId), SubmittedWork>,
}

/// The last submissions of a stream, the oldest first.
type SubmittedWork = VecDeque<(Submission, Arc<ProgramPlace>)>;

/// A stack that a thread walked.
struct KnownWalk {
    /// The function of the API, and an address in the frame that walked.
    function: &'static str,
    from: usize,
    slots: ReturnSlots,
    place: Option<Arc<ProgramPlace>>,
}

/// Those of a thread; the oldest is replaced.
struct KnownWalks {
    walks: Vec<KnownWalk>,
    next: usize,
}

thread_local! {
    /// The place from which the thread is in a function that queues work.
    static HERE: RefCell<Option<Arc<ProgramPlace>>> = const { RefCell::new(None) };
    static KNOWN: RefCell<KnownWalks> = const { RefCell::new(KnownWalks { walks: Vec::new(), next: 0 }) };
}

fn places() -> MutexGuard<'static, Places> {
    static PLACES: OnceLock<Mutex<Places>> = OnceLock::new();
    PLACES.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes the caller of a function of the API, and says whether it did. No lock of the library is held: a Python interpreter may be waited for.
#[inline(never)]
pub(crate) fn enter(name: &'static str) -> bool {
    if !is_noted(name) {
        return false;
    }
    let python = python_frames::current(TOLD);
    let from = (&raw const python).addr();
    let is_native = python.is_empty();
    let known = if is_native { KnownWalks::find(name, from) } else { None };
    set_here(known.unwrap_or_else(|| {
        let (native, slots) = NativeStack::walk(from);
        let place = place_of(PlaceKey { python, native });
        if let Some(slots) = slots.filter(|_| is_native) {
            KnownWalks::keep(KnownWalk { function: name, from, slots, place: place.clone() });
        }
        place
    }));
    true
}

/// The place of a key; none if there are too many.
fn place_of(key: PlaceKey) -> Option<Arc<ProgramPlace>> {
    let mut places = places();
    if let Some(known) = places.known.get(&key) {
        return Some(known.clone());
    }
    if places.known.len() >= PLACES {
        return None;
    }
    let (python, native) = (key.python.clone(), Backtrace::force_capture());
    let place = Arc::new(ProgramPlace { python, native, words: OnceLock::new() });
    places.known.insert(key, place.clone());
    Some(place)
}

impl KnownWalks {
    /// The place of a stack that this thread walked before.
    fn find(function: &'static str, from: usize) -> Option<Option<Arc<ProgramPlace>>> {
        let is_same = |walk: &&KnownWalk| {
            walk.from == from && std::ptr::eq(walk.function, function) && walk.slots.are_there()
        };
        let find = |known: &RefCell<Self>| Some(known.borrow().walks.iter().find(is_same)?.place.clone());
        // A thread that ends has none any more.
        KNOWN.try_with(find).ok().flatten()
    }

    fn keep(walk: KnownWalk) {
        let _ = KNOWN.try_with(|known| {
            let Self { walks, next } = &mut *known.borrow_mut();
            match walks.get_mut(*next) {
                Some(oldest) => *oldest = walk,
                None => walks.push(walk),
            }
            *next = (*next + 1) % WALKS;
        });
    }
}

/// The function returns.
pub(crate) fn leave(was_noted: bool) {
    if was_noted {
        set_here(None);
    }
}

fn set_here(place: Option<Arc<ProgramPlace>>) {
    // A thread that ends has no place any more, and may still make calls.
    let _ = HERE.try_with(|here| here.replace(place));
}

/// Whether a function may queue work.
fn queues_work(name: &str) -> bool {
    const BEGINNINGS: [&str; 6] =
        ["cuLaunch", "cuMemcpy", "cuMemset", "cuGraphLaunch", "cuStreamWriteValue", "cuStreamBatchMemOp"];
    BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
}

/// The layer around a device that notes which work comes from which place.
struct PlacingLayer(u32);

/// Whether places are noted.
static NOTES: AtomicBool = AtomicBool::new(false);

/// Puts a layer around each device that notes from where its work comes.
pub(crate) fn note_places(devices: &mut [Arc<dyn Driver>]) {
    for (driver, device) in devices.iter_mut().zip(0..) {
        *driver = Arc::new(Layered::new(driver.clone(), PlacingLayer(device)));
    }
    extern "C" fn in_child() {
        NOTES.store(false, Ordering::Relaxed);
    }
    // SAFETY: the function does not unwind, and lives as long as the library, which is never unloaded while it is in use.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    NOTES.store(true, Ordering::Relaxed);
}

/// Whether a function notes its caller; the child of a fork has no devices.
fn is_noted(name: &str) -> bool {
    NOTES.load(Ordering::Relaxed) && queues_work(name)
}

impl Layer for PlacingLayer {
    fn after(&self, call: &Call<'_>, answer: Result<Answer<'_>, &Error>) {
        let (Call::Submit { stream, .. }, Ok(Answer::Submission(number))) = (call, answer) else { return };
        let Some(place) = HERE.try_with(|here| here.borrow().clone()).ok().flatten() else { return };
        let mut places = places();
        let submitted = places.submitted.entry((self.0, *stream)).or_default();
        if submitted.len() >= SUBMISSIONS {
            submitted.pop_front();
        }
        submitted.push_back((number, place));
    }
}

impl ProgramPlace {
    /// The innermost frames of the program, such as `run.c:42 in step, run.c:90 in main`.
    fn words(&self) -> Option<&str> {
        let words = self.words.get_or_init(|| {
            let frames = match self.python.as_slice() {
                [] => native_frames::told(&self.native, TOLD),
                python => python.iter().map(ToString::to_string).collect(),
            };
            (!frames.is_empty()).then(|| frames.join(", "))
        });
        words.as_deref()
    }
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
        let place = places().place_of(device, stream, number);
        if let Some(words) = place.as_ref().and_then(|place| place.words()) {
            told.push_str(&format!("\n       {stream} submission {number} was queued at {words}"));
            all.push(words.to_owned());
        }
    }
    (told, all)
}

impl Places {
    /// From where a submission was queued.
    fn place_of(&self, device: u32, stream: &str, number: u64) -> Option<Arc<ProgramPlace>> {
        let is_meant = |(of, id): &&(u32, StreamId)| *of == device && id.to_string() == stream;
        let submitted = self.submitted.get(self.submitted.keys().find(is_meant)?)?;
        let at = submitted.binary_search_by_key(&number, |(submission, _)| submission.0).ok()?;
        submitted.get(at).map(|(_, place)| place.clone())
    }
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
    fn functions_that_queue_work_are_known_by_their_names() {
        assert!(
            queues_work("cuLaunchKernel")
                && queues_work("cuMemcpyHtoDAsync_v2")
                && queues_work("cuGraphLaunch")
        );
        assert!(
            !queues_work("cuMemAlloc_v2")
                && !queues_work("cuGraphCreate")
                && !queues_work("cuStreamSynchronize")
        );
    }
}
