//! The stack of a thread.

use std::backtrace::Backtrace;
use std::ffi::{c_int, c_void};

/// Frames that tell two stacks apart.
const FRAMES: usize = 32;
/// Where a program begins.
const BEGINNINGS: [&str; 5] =
    ["_start", "__libc_start_main", "__libc_start_call_main", "start_thread", "clone"];

/// The innermost return addresses of a stack.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct NativeStack(Vec<usize>);

/// What the unwinder of the C library's compiler has.
#[repr(C)]
struct Context {
    _private: [u8; 0],
}

unsafe extern "C" {
    fn _Unwind_Backtrace(each: extern "C" fn(*mut Context, *mut c_void) -> c_int, data: *mut c_void)
    -> c_int;
    fn _Unwind_GetIP(context: *mut Context) -> usize;
}

impl NativeStack {
    /// That of the calling thread.
    pub(super) fn current() -> Self {
        extern "C" fn each(context: *mut Context, data: *mut c_void) -> c_int {
            const GO_ON: c_int = 0;
            const END: c_int = 5;
            // SAFETY: `current` gave its vector, which lives until the walk is over, and has room for so many.
            let frames = unsafe { &mut *data.cast::<Vec<usize>>() };
            // SAFETY: the unwinder gives the context of the frame.
            frames.push(unsafe { _Unwind_GetIP(context) });
            if frames.len() < FRAMES { GO_ON } else { END }
        }
        let mut frames: Vec<usize> = Vec::with_capacity(FRAMES);
        let data: *mut Vec<usize> = &mut frames;
        // SAFETY: the function does not unwind, and gets the vector alone.
        unsafe { _Unwind_Backtrace(each, data.cast()) };
        Self(frames)
    }
}

/// The innermost frames of the program: those outside of the function of the API that it called, with their lines where these are known.
pub(super) fn told(stack: &Backtrace, most: usize) -> Vec<String> {
    let text = stack.to_string();
    let frames = read(&text);
    let first = frames.iter().position(|(name, _)| is_of_api(name)).map_or(0, |at| at + 1);
    let of_program = frames.into_iter().skip(first);
    let of_program = of_program.take_while(|(name, _)| !BEGINNINGS.contains(name));
    let known = of_program.filter(|(name, line)| line.is_some() || *name != "<unknown>");
    let told = known.take(most).map(|(name, line)| match line {
        Some(line) => format!("{line} in {name}"),
        None => name.to_owned(),
    });
    told.collect()
}

/// Whether a name is one of the driver API, such as `cuLaunchKernel`.
fn is_of_api(name: &str) -> bool {
    let rest = name.strip_prefix("cu").unwrap_or_default();
    let is_word = rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_word && rest.starts_with(|first: char| first.is_ascii_uppercase())
}

/// The names of frames with their lines, from what a backtrace says in words.
fn read(text: &str) -> Vec<(&str, Option<String>)> {
    let mut frames: Vec<(&str, Option<String>)> = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(place) = line.strip_prefix("at ") {
            if let Some((_, known)) = frames.last_mut() {
                *known = Some(without_column(place));
            }
        } else if let Some((number, name)) = line.split_once(": ")
            && number.bytes().all(|byte| byte.is_ascii_digit())
        {
            frames.push((name, None));
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
        let frames = read(text);
        assert_eq!(frames[2], ("step", Some("run.c:42".to_owned())));
        assert_eq!((frames.len(), frames[1].1.clone(), frames[3].0), (4, None, "<unknown>"));
        assert_eq!(without_column("/a/b.c:7"), "/a/b.c:7");
    }

    #[test]
    fn one_place_has_one_stack() {
        let stacks: Vec<NativeStack> = (0..2).map(|_| NativeStack::current()).collect();
        assert!(stacks[0] == stacks[1] && !stacks[0].0.is_empty());
    }
}
