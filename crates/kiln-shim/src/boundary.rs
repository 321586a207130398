//! What every exported function goes through: no panic leaves it, and its answer becomes a result code.

use std::cell::Cell;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

use kiln_driver::{Code, Error, ErrorKind, Refusal};

use crate::program_lines::noted;
use crate::{program_lines, records};

/// What a function of the API answers.
pub(crate) type Answer<T = ()> = Result<T, Code>;

thread_local! {
    /// Whether a null stream is the thread's stream in the call that runs.
    static NULL_IS_PER_THREAD: Cell<bool> = const { Cell::new(false) };
    /// Whether the thread runs a function of the program for a stream.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Whether the thread runs a function of the program for a stream, from which no call is permitted.
pub(crate) fn is_inside() -> bool {
    INSIDE.get()
}

/// Says whether it does.
pub(crate) fn set_inside(inside: bool) {
    INSIDE.set(inside);
}

/// Runs the body of an exported function. One that panics answers what is said, and a note tells of it.
pub(crate) fn contained<T>(
    name: &'static str,
    (answered, its_name): (T, &str),
    body: impl FnOnce() -> Result<(), T>,
) -> Result<(), T> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
        records::note(&format!(
            "{name} failed inside of kiln and answered {its_name}; this is a bug of kiln"
        ));
        Err(answered)
    })
}

/// Runs the body of a function of the API, whose caller is noted or not by its kind (`program_lines::noted`).
#[inline]
pub(crate) fn answer<const KIND: u8>(name: &'static str, body: impl FnOnce() -> Answer) -> c_int {
    let is_noted = program_lines::is_noted(KIND);
    if is_noted {
        program_lines::enter(name);
    }
    let answered = contained(name, (Code::UNKNOWN, "CUDA_ERROR_UNKNOWN"), body);
    if is_noted {
        program_lines::leave();
    }
    match answered {
        Ok(()) => Code::SUCCESS.0,
        Err(code) => {
            note_refused(name, code);
            code.0
        }
    }
}

/// Tells of a call where none is permitted.
#[cold]
fn note_refused(name: &str, code: Code) {
    if code == Code::NOT_PERMITTED && is_inside() {
        records::note_once(
            &format!("{name} inside"),
            &format!(
                "{name} was called by a function that the program gave to cuLaunchHostFunc or cuStreamAddCallback, where no call is permitted"
            ),
        );
    }
}

/// The same for the form of a function in which a null stream is the thread's stream.
#[inline]
pub(crate) fn answer_per_thread<const KIND: u8>(name: &'static str, body: impl FnOnce() -> Answer) -> c_int {
    let before = NULL_IS_PER_THREAD.replace(true);
    let code = answer::<KIND>(name, body);
    NULL_IS_PER_THREAD.set(before);
    code
}

/// Whether a null stream is the thread's stream in the call that runs.
pub(crate) fn null_is_per_thread() -> bool {
    NULL_IS_PER_THREAD.get()
}

/// What a function that is not implemented answers.
pub(crate) fn unsupported(name: &'static str) -> c_int {
    answer::<{ noted::NEVER }>(name, || {
        records::note_once(name, &format!("{name} is not implemented and answered CUDA_ERROR_NOT_SUPPORTED"));
        Err(Code::NOT_SUPPORTED)
    })
}

/// The result code of an error below.
pub(crate) fn code_of(error: &Error) -> Code {
    match error.kind() {
        ErrorKind::OutOfMemory { .. } => Code::OUT_OF_MEMORY,
        ErrorKind::Lost(fault) => {
            records::note_loss(fault.code, &error.to_string());
            fault.code
        }
        ErrorKind::Unsupported { .. } => {
            records::note_once(&error.to_string(), &error.to_string());
            Code::NOT_SUPPORTED
        }
        ErrorKind::Refused(refusal) => match refusal {
            Refusal::Stale { .. } | Refusal::Foreign { .. } => Code::INVALID_HANDLE,
            Refusal::Image { code, .. } => code.unwrap_or(Code::INVALID_IMAGE),
            Refusal::NotFound { .. } => Code::NOT_FOUND,
            Refusal::CooperativeResidencyExceeded { .. } => Code::COOPERATIVE_LAUNCH_TOO_LARGE,
            Refusal::Driver(code) => *code,
            _ => Code::INVALID_VALUE,
        },
        _ => Code::UNKNOWN,
    }
}

/// Turns errors below into result codes.
pub(crate) trait OrCode<T> {
    /// The value, or the code.
    fn or_code(self) -> Answer<T>;
}

impl<T> OrCode<T> for Result<T, Error> {
    fn or_code(self) -> Answer<T> {
        self.map_err(|error| code_of(&error))
    }
}

/// Defines functions of the API. A second name after `|` is the form in which a null stream is the thread's stream; one after `=` is an older name of the
/// same function.
macro_rules! driver_api {
    ($( $(#[$doc:meta])* fn $name:ident $(| $per_thread:ident)? ($($arguments:tt)*) $(= $older:ident)? $body:block )*) => {$(
        driver_function! { [$name $($per_thread)? $(= $older)?] ($($arguments)*) $body }
    )*};
}

/// One function of the API.
macro_rules! driver_function {
    ([$name:ident] ($($argument:ident : $kind:ty),* $(,)?) $body:block) => {
        const _: () = {
            #[unsafe(no_mangle)]
            extern "C" fn $name($($argument: $kind),*) -> ::std::ffi::c_int {
                $crate::boundary::answer::<{ $crate::program_lines::noted::kind_of(stringify!($name)) }>(stringify!($name), move || -> $crate::boundary::Answer { $body })
            }
        };
    };
    ([$name:ident = $older:ident] ($($argument:ident : $kind:ty),* $(,)?) $body:block) => {
        const _: () = {
            #[allow(clippy::too_many_arguments, reason = "the API has as many")]
            fn body($($argument: $kind),*) -> $crate::boundary::Answer $body

            #[unsafe(no_mangle)]
            extern "C" fn $name($($argument: $kind),*) -> ::std::ffi::c_int {
                $crate::boundary::answer::<{ $crate::program_lines::noted::kind_of(stringify!($name)) }>(stringify!($name), move || body($($argument),*))
            }

            #[unsafe(no_mangle)]
            extern "C" fn $older($($argument: $kind),*) -> ::std::ffi::c_int {
                $crate::boundary::answer::<{ $crate::program_lines::noted::kind_of(stringify!($older)) }>(stringify!($older), move || body($($argument),*))
            }
        };
    };
    ([$name:ident $per_thread:ident] ($($argument:ident : $kind:ty),* $(,)?) $body:block) => {
        const _: () = {
            #[allow(clippy::too_many_arguments, reason = "the API has as many")]
            fn body($($argument: $kind),*) -> $crate::boundary::Answer $body

            #[unsafe(no_mangle)]
            extern "C" fn $name($($argument: $kind),*) -> ::std::ffi::c_int {
                $crate::boundary::answer::<{ $crate::program_lines::noted::kind_of(stringify!($name)) }>(stringify!($name), move || body($($argument),*))
            }

            #[unsafe(no_mangle)]
            extern "C" fn $per_thread($($argument: $kind),*) -> ::std::ffi::c_int {
                $crate::boundary::answer_per_thread::<{ $crate::program_lines::noted::kind_of(stringify!($per_thread)) }>(stringify!($per_thread), move || body($($argument),*))
            }
        };
    };
}
