//! The encoding of every message between the two processes.
//!
//! Numbers are little-endian, a length precedes what it measures, and a tag precedes each alternative. Decoding trusts nothing: a length is
//! compared with what is left before memory is allocated, and an unknown tag or bytes left over are errors. [`VERSION`] is part of the
//! handshake and is raised with every change.

mod code_image;
mod command;
mod device;
mod error;
#[cfg(test)]
mod fuzz_tests;
mod handshake;
mod reader;
mod request;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod samples;
mod static_text;
mod tensor_map;
mod times;
mod writer;

pub(crate) use code_image::{
    ABORT, IMAGE_COMMUNICATOR, IMAGE_COMMUNICATOR_ID, IMAGE_CUBIN, IMAGE_HOST_KERNELS, IMAGE_LIBRARY,
    IMAGE_PTX, IMAGE_PTX_TO_KEEP, is_kept,
};
pub(crate) use command::{WireCommand, WireLaunch, WirePlace, put_declared};
pub(crate) use error::{put_error, take_error};
pub(crate) use handshake::{Farewell, Hello, Welcome};
pub(crate) use reader::{Malformed, Reader};
pub(crate) use request::{Ask, Request, TimesAsk, WireNode, WireObject, WirePart};
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use tensor_map::WireBoxes;
pub(crate) use tensor_map::{WireTensorMap, take_tensor_map};
pub(crate) use times::{MAX_TOLD, ToldTime, ToldTimes};
pub(crate) use writer::{Put, Take, Writer};

/// The version of the format.
pub(crate) const VERSION: u32 = 6;
