//! The frames of a Python interpreter, by the documented functions that it has, where the process is one.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt;
use std::sync::OnceLock;

/// An object of the interpreter.
type Object = *mut c_void;

/// Frames that are looked at.
const DEPTH: usize = 64;
/// Parts of the paths of files that are not the program's own.
const OF_OTHERS: [&str; 4] = ["site-packages", "dist-packages", "/lib/python3", "<frozen"];

/// A line of Python code.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct PythonFrame {
    file: String,
    line: i32,
    function: String,
}

impl fmt::Display for PythonFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{} in {}", self.file, self.line, self.function)
    }
}

impl PythonFrame {
    /// The file, and the line in it.
    pub(super) fn line(&self) -> Option<(String, u32)> {
        Some((self.file.clone(), u32::try_from(self.line).ok()?))
    }
}

macro_rules! interpreter {
    ($($name:ident = $symbol:literal ($($argument:ty),*) -> $result:ty;)*) => {
        /// The functions of the interpreter that are called.
        struct Interpreter {
            $($name: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl Interpreter {
            /// Those of this process, if all are there.
            fn find() -> Option<Self> {
                Some(Self { $(
                    // SAFETY: the signature is the one that the documentation of Python's C API says.
                    $name: unsafe { symbol($symbol)? },
                )* })
            }
        }
    };
}

interpreter! {
    is_initialized = c"Py_IsInitialized" () -> c_int;
    thread_state = c"PyGILState_GetThisThreadState" () -> Object;
    ensure = c"PyGILState_Ensure" () -> c_int;
    release = c"PyGILState_Release" (c_int) -> ();
    error_occurred = c"PyErr_Occurred" () -> Object;
    error_clear = c"PyErr_Clear" () -> ();
    frame_of = c"PyThreadState_GetFrame" (Object) -> Object;
    frame_back = c"PyFrame_GetBack" (Object) -> Object;
    frame_code = c"PyFrame_GetCode" (Object) -> Object;
    frame_line = c"PyFrame_GetLineNumber" (Object) -> c_int;
    attribute = c"PyObject_GetAttrString" (Object, *const c_char) -> Object;
    text = c"PyUnicode_AsUTF8" (Object) -> *const c_char;
    drop_reference = c"Py_DecRef" (Object) -> ();
}

/// A function of the process.
///
/// # Safety
/// `F` has to be the type of the function's pointer.
unsafe fn symbol<F: Copy>(name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: the name is a string of C.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    // SAFETY: both are pointers, and the caller says that the type is right.
    (!address.is_null()).then(|| unsafe { std::mem::transmute_copy(&address) })
}

/// A reference to an object that is given back.
struct Reference<'i>(&'i Interpreter, Object);

impl<'i> Reference<'i> {
    fn new(interpreter: &'i Interpreter, object: Object) -> Option<Self> {
        (!object.is_null()).then_some(Self(interpreter, object))
    }
}

impl Drop for Reference<'_> {
    fn drop(&mut self) {
        // SAFETY: the reference is ours, and the thread holds the interpreter's lock as long as there are any.
        unsafe { (self.0.drop_reference)(self.1) }
    }
}

/// The innermost frames of the program's own code on the calling thread, or of any code if it has none; nothing where the process is no interpreter, or the thread has no part
/// in it. No lock of this library is held: the thread may wait for the interpreter's.
pub(super) fn current(most: usize) -> Vec<PythonFrame> {
    static INTERPRETER: OnceLock<Option<Interpreter>> = OnceLock::new();
    let Some(python) = INTERPRETER.get_or_init(Interpreter::find) else { return Vec::new() };
    // SAFETY: both may be called by any thread at any time; a thread without a state has no frames, and is not given one.
    let is_in_python = unsafe { (python.is_initialized)() != 0 && !(python.thread_state)().is_null() };
    if !is_in_python {
        return Vec::new();
    }
    // SAFETY: the thread has a state, and waits for the lock here if the code that called the driver gave it away.
    let state = unsafe { (python.ensure)() };
    // SAFETY: the thread holds the lock.
    let frames = unsafe { frames(python) };
    // SAFETY: as it was before.
    unsafe { (python.release)(state) };
    let is_own = |frame: &&PythonFrame| !OF_OTHERS.iter().any(|part| frame.file.contains(part));
    let own: Vec<PythonFrame> = frames.iter().filter(is_own).take(most).cloned().collect();
    if own.is_empty() { frames.into_iter().take(most).collect() } else { own }
}

/// All frames, the innermost first.
///
/// # Safety
/// The thread holds the interpreter's lock.
unsafe fn frames(python: &Interpreter) -> Vec<PythonFrame> {
    let mut frames = Vec::new();
    // SAFETY: the thread holds the lock. With an exception under way nothing is looked at, as that would be lost.
    unsafe {
        if !(python.error_occurred)().is_null() {
            return frames;
        }
        let mut next = Reference::new(python, (python.frame_of)((python.thread_state)()));
        while let Some(frame) = next.filter(|_| frames.len() < DEPTH) {
            let line = (python.frame_line)(frame.1);
            if let Some(code) = Reference::new(python, (python.frame_code)(frame.1))
                && let (Some(file), Some(function)) =
                    (text_of(&code, c"co_filename"), text_of(&code, c"co_name"))
            {
                frames.push(PythonFrame { file, line, function });
            }
            next = Reference::new(python, (python.frame_back)(frame.1));
        }
        // What could not be read is no exception of the program.
        (python.error_clear)();
    }
    frames
}

/// An attribute that is a text.
///
/// # Safety
/// The thread holds the interpreter's lock.
unsafe fn text_of(object: &Reference<'_>, name: &CStr) -> Option<String> {
    let python = object.0;
    // SAFETY: the object is alive, and the text lives as long as the attribute, to which there is a reference.
    unsafe {
        let attribute = Reference::new(python, (python.attribute)(object.1, name.as_ptr()))?;
        let text = (python.text)(attribute.1);
        (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
    }
}
