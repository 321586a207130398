//! The frames of a stack in words: those of the program's own code.
//!
//! The standard library knows the names and lines of code. It reads the list of loaded files once, so of a file that was loaded later, or at the address of another one,
//! nothing that it says is taken: such a frame is told by its file and the address in it, and so is one that has no name.

use std::backtrace::Backtrace;
use std::fmt;
use std::sync::OnceLock;

use super::loaded_files::{self, LoadedFile};

/// Where a program begins.
const BEGINNINGS: [&str; 5] =
    ["_start", "__libc_start_main", "__libc_start_call_main", "start_thread", "clone"];
/// Parts of the paths of sources that are not the program's own: of packages, and of what comes with a compiler.
const OF_OTHERS: [&str; 6] =
    ["/registry/src/", "/.cargo/git/checkouts/", "/rustc/", "/rustlib/src/", "/usr/include/", "/usr/lib/"];
/// The names of frames of which the standard library knows none.
const UNKNOWN: &str = "<unknown>";

/// A frame of the program, as it is told.
pub(super) struct ToldFrame {
    /// Empty if it is not known.
    name: String,
    /// The file and the line, such as `run.c:42`, or the file and the address in it, such as `run+0x1234`.
    place: Option<Place>,
}

enum Place {
    Line(String),
    Address(String),
}

/// A frame as the standard library says it.
struct Frame<'t> {
    name: &'t str,
    line: Option<String>,
    /// Where its code goes on; 0 if that is not said.
    ip: usize,
}

impl fmt::Display for ToldFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(Place::Line(place) | Place::Address(place)) if self.name.is_empty() => f.write_str(place),
            Some(Place::Line(place) | Place::Address(place)) => write!(f, "{place} in {}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

impl ToldFrame {
    /// The file, and the line in it.
    pub(super) fn line(&self) -> Option<(String, u32)> {
        let Some(Place::Line(place)) = &self.place else { return None };
        let (file, line) = place.rsplit_once(':')?;
        Some((file.to_owned(), line.parse().ok()?))
    }

    fn is_of_others(&self) -> bool {
        matches!(&self.place, Some(Place::Line(line)) if OF_OTHERS.iter().any(|part| line.contains(part)))
    }
}

/// The innermost frames of the program: those outside of the function of the API that it called, with their lines where these are known, and of code of others only if
/// it has no other. The files are those that its code lay in and that may be unloaded.
pub(super) fn told(stack: &Backtrace, files: &[LoadedFile], most: usize) -> Vec<ToldFrame> {
    /// The files that the standard library knows: it looks when it is asked first, which is below.
    static KNOWN_FILES: OnceLock<Vec<LoadedFile>> = OnceLock::new();
    let known_files = KNOWN_FILES.get_or_init(loaded_files::all);
    let (text, with_addresses) = (stack.to_string(), format!("{stack:#}"));
    let frames = with_ips(read(&text), &with_addresses);
    let first = frames.iter().position(|frame| is_of_api(frame.name)).map_or(0, |at| at + 1);
    let of_program = frames.into_iter().skip(first);
    let of_program = of_program.take_while(|frame| !BEGINNINGS.contains(&frame.name));
    let mut told = Vec::new();
    for frame in of_program {
        let file = files.iter().find(|file| file.holds(frame.ip));
        let is_known = loaded_files::stays(frame.ip) || file.is_none_or(|file| known_files.contains(file));
        if is_known && (frame.name != UNKNOWN || frame.line.is_some()) {
            told.push(ToldFrame { name: frame.name.to_owned(), place: frame.line.map(Place::Line) });
        } else if let Some((place, name)) = loaded_files::place_in_file(file, frame.ip) {
            told.push(ToldFrame { name, place: Some(Place::Address(place)) });
        }
    }
    if told.iter().any(|frame| !frame.is_of_others()) {
        told.retain(|frame| !frame.is_of_others());
    }
    told.truncate(most);
    told
}

/// Whether a name is one of the driver API, such as `cuLaunchKernel`.
fn is_of_api(name: &str) -> bool {
    let rest = name.strip_prefix("cu").unwrap_or_default();
    let is_word = rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_word && rest.starts_with(|first: char| first.is_ascii_uppercase())
}

/// The frames with their addresses, from the longer words for the same stack, which begin with frames of the standard library itself.
fn with_ips<'t>(mut frames: Vec<Frame<'t>>, longer: &str) -> Vec<Frame<'t>> {
    let ips: Vec<usize> = read(longer).iter().filter_map(|frame| ip_of(frame.name)).collect();
    for (frame, ip) in frames.iter_mut().rev().zip(ips.iter().rev()) {
        frame.ip = *ip;
    }
    frames
}

/// `0x7f0012 - step` has an address; the frame at 0, which only the longer words have, has none.
fn ip_of(name: &str) -> Option<usize> {
    let (address, _) = name.trim_start().strip_prefix("0x")?.split_once(" - ")?;
    usize::from_str_radix(address, 16).ok().filter(|ip| *ip != 0)
}

/// The names of frames with their lines, from what a backtrace says in words.
fn read(text: &str) -> Vec<Frame<'_>> {
    let mut frames: Vec<Frame<'_>> = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(place) = line.strip_prefix("at ") {
            if let Some(frame) = frames.last_mut() {
                frame.line = Some(without_column(place));
            }
        } else if let Some((number, name)) = line.split_once(": ")
            && number.bytes().all(|byte| byte.is_ascii_digit())
        {
            frames.push(Frame { name, line: None, ip: 0 });
        }
    }
    frames
}

/// `./run.c:42:5` as `run.c:42`.
fn without_column(place: &str) -> String {
    let place = place.strip_prefix("./").unwrap_or(place);
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match place.rsplit_once(':') {
        Some((before, column))
            if is_number(column) && before.rsplit_once(':').is_some_and(|(_, line)| is_number(line)) =>
        {
            before.to_owned()
        }
        _ => place.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_in_words_is_read() {
        let text = "   0: kiln_shim::enter\n             at ./src/a.rs:3:5\n   1: cuLaunchKernel\n   2: step\n             at ./run.c:42:5\n   3: <unknown>\n";
        let longer = "   0:     0x10 - walk\n   1:     0x11 - kiln_shim::enter\n   2:     0x12 - cuLaunchKernel\n   3:     0x13 - step::h01\n                 at /a/run.c:42:5\n   4:     0x14 - <unknown>\n   5:     0x0 - <unknown>\n";
        let frames = with_ips(read(text), longer);
        assert_eq!((frames[2].name, frames[2].line.as_deref()), ("step", Some("run.c:42")));
        assert_eq!((frames.len(), frames[1].line.clone(), frames[3].name), (4, None, UNKNOWN));
        assert_eq!(frames.iter().map(|frame| frame.ip).collect::<Vec<_>>(), [0x11, 0x12, 0x13, 0x14]);
        assert_eq!(without_column("/a/b.c:7"), "/a/b.c:7");
    }

    #[test]
    fn the_words_of_a_stack_have_the_addresses_of_its_frames() {
        let stack = Backtrace::force_capture();
        let (text, longer) = (stack.to_string(), format!("{stack:#}"));
        let frames = with_ips(read(&text), &longer);
        assert!(frames.len() > 2 && frames.iter().all(|frame| frame.ip != 0), "{longer}");
        let own = frames.iter().find(|frame| frame.name.contains("the_words_of_a_stack")).unwrap();
        assert!(loaded_files::stays(own.ip), "{longer}");
    }
}
