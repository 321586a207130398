//! The first calls of NVML, the management library: what a program asks before it uses a device.
//!
//! `kiln exec` gives the library to programs as `libnvidia-ml.so.1`, too. Both names are one file, so that both tell of the same devices: names, UUIDs,
//! places on the bus and free memory are those that the driver API tells. What a simulated device does not have, such as a temperature, answers
//! `NVML_ERROR_NOT_SUPPORTED`. Functions that are not here are not exported, and a program that looks them up finds none.

mod device_figures;
mod device_handles;
mod status_texts;
mod system;

use std::ffi::{c_char, c_int};

use crate::boundary::contained;
use crate::caller_memory::{Out, store_text};

/// What a function of NVML answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Status(c_int);

impl Status {
    const SUCCESS: Self = Self(0);
    const UNINITIALIZED: Self = Self(1);
    const INVALID_ARGUMENT: Self = Self(2);
    const NOT_SUPPORTED: Self = Self(3);
    const NOT_FOUND: Self = Self(6);
    const INSUFFICIENT_SIZE: Self = Self(7);
    const GPU_IS_LOST: Self = Self(15);
    const ARGUMENT_VERSION_MISMATCH: Self = Self(25);
    const UNKNOWN: Self = Self(999);
}

type Answer<T = ()> = Result<T, Status>;

/// Runs the body of a function.
fn answer(name: &'static str, body: impl FnOnce() -> Answer) -> c_int {
    let answered = contained(name, (Status::UNKNOWN, "NVML_ERROR_UNKNOWN"), body);
    answered.map_or_else(|status| status.0, |()| Status::SUCCESS.0)
}

/// Writes a result.
fn set<T: Copy>(out: Out<T>, value: T) -> Answer {
    out.set(value).map_err(|_| Status::INVALID_ARGUMENT)
}

/// Writes a text with its zero byte; one that does not fit is an error.
fn set_text(out: Out<c_char>, room: u32, text: &str) -> Answer {
    out.check().map_err(|_| Status::INVALID_ARGUMENT)?;
    if text.len() >= room as usize {
        return Err(Status::INSUFFICIENT_SIZE);
    }
    store_text(out, room as usize, text).map_err(|_| Status::INVALID_ARGUMENT)
}

/// Defines functions of NVML; forms of one function that take the same arguments have one body.
macro_rules! management_api {
    ($( fn $name:ident $(| $other:ident)* ($($argument:ident : $kind:ty),* $(,)?) $body:block )*) => {$(
        const _: () = {
            fn body($($argument: $kind),*) -> $crate::management::Answer $body

            #[unsafe(no_mangle)]
            extern "C" fn $name($($argument: $kind),*) -> ::std::ffi::c_int {
                $crate::management::answer(stringify!($name), move || body($($argument),*))
            }

            management_forms! { [$($other)*] ($($argument : $kind),*) }
        };
    )*};
}

/// Further names of a function.
macro_rules! management_forms {
    ([] ($($arguments:tt)*)) => {};
    ([$name:ident $($rest:ident)*] ($($argument:ident : $kind:ty),*)) => {
        #[unsafe(no_mangle)]
        extern "C" fn $name($($argument: $kind),*) -> ::std::ffi::c_int {
            $crate::management::answer(stringify!($name), move || body($($argument),*))
        }

        management_forms! { [$($rest)*] ($($argument : $kind),*) }
    };
}

use {management_api, management_forms};
