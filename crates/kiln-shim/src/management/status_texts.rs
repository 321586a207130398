//! Texts of what the functions answer.

use std::ffi::{CStr, c_char, c_int};

const TEXTS: &[(c_int, &CStr)] = &[
    (0, c"Success"),
    (1, c"Uninitialized"),
    (2, c"Invalid Argument"),
    (3, c"Not Supported"),
    (4, c"Insufficient Permissions"),
    (5, c"Already Initialized"),
    (6, c"Not Found"),
    (7, c"Insufficient Size"),
    (8, c"Insufficient External Power"),
    (9, c"Driver Not Loaded"),
    (10, c"Timeout"),
    (11, c"Interrupt Request Issue"),
    (12, c"NVML Shared Library Not Found"),
    (13, c"Function Not Found"),
    (14, c"Corrupted infoROM"),
    (15, c"GPU is lost"),
    (16, c"GPU requires reset"),
    (17, c"GPU access blocked by the operating system"),
    (18, c"Driver/library version mismatch"),
    (19, c"In use by another client"),
    (20, c"Insufficient Memory"),
    (21, c"No data"),
    (25, c"Argument version mismatch"),
    (26, c"Deprecated"),
    (999, c"Unknown Error"),
];

#[unsafe(no_mangle)]
extern "C" fn nvmlErrorString(status: c_int) -> *const c_char {
    let text = TEXTS.iter().find(|(number, _)| *number == status);
    text.map_or(c"Unknown Error", |(_, text)| *text).as_ptr()
}
