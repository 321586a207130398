//! One compilation by NVRTC.

use std::ffi::{CStr, CString, c_char, c_int};

use super::diagnostic::Diagnostic;
use super::error::{CompileFailure, NvrtcError};
use super::options::{CompileOptions, CompileTarget};
use super::source::CudaSource;
use super::symbols::{Api, COMPILATION, Program, Status};
use crate::libraries::ToolkitHeaders;

/// Code that was compiled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Compiled {
    /// The PTX.
    pub ptx: String,
    /// The machine code, if that was the target.
    pub cubin: Option<Vec<u8>>,
    /// Each name expression with the name it has in the code.
    pub names: Vec<(String, String)>,
    /// What the compiler had to say although it succeeded.
    pub diagnostics: Vec<Diagnostic>,
}

/// A program of NVRTC; it is destroyed with this.
pub(super) struct Compilation<'a> {
    api: &'a Api,
    raw: Program,
}

impl<'a> Compilation<'a> {
    /// Hands a source over.
    pub(super) fn new(api: &'a Api, source: &CudaSource<'_>) -> Result<Self, NvrtcError> {
        let text = c_text("the source", source.text)?;
        let name = c_text("the name of the source", source.name)?;
        let mut headers = Vec::with_capacity(source.headers.len());
        for header in source.headers {
            headers.push((c_text(header.name, header.text)?, c_text("the name of a header", header.name)?));
        }
        let texts: Vec<*const c_char> = headers.iter().map(|(text, _)| text.as_ptr()).collect();
        let names: Vec<*const c_char> = headers.iter().map(|(_, name)| name.as_ptr()).collect();
        let mut compilation = Self { api, raw: std::ptr::null_mut() };
        // SAFETY: every text ends in a zero and lives until the call returns, which copies them; there are as many
        // headers and names as the count says; the out-parameter is a live field.
        let status = unsafe {
            (api.create)(
                &mut compilation.raw,
                text.as_ptr(),
                name.as_ptr(),
                c_int::try_from(headers.len()).unwrap_or(c_int::MAX),
                texts.as_ptr(),
                names.as_ptr(),
            )
        };
        compilation.check("nvrtcCreateProgram", status)?;
        Ok(compilation)
    }

    /// Compiles. The toolkit's headers are looked for after those of the options.
    pub(super) fn run(
        self,
        source: &CudaSource<'_>,
        options: &CompileOptions,
        toolkit: Option<&ToolkitHeaders>,
    ) -> Result<Compiled, NvrtcError> {
        for name in &options.names {
            let text = c_text("a name expression", name)?;
            // SAFETY: the program is ours alone, and the text ends in a zero and is copied by the call.
            let status = unsafe { (self.api.add_name)(self.raw, text.as_ptr()) };
            self.check("nvrtcAddNameExpression", status)?;
        }
        let mut arguments = options.arguments();
        let folders = toolkit.into_iter().flat_map(|toolkit| &toolkit.folders);
        arguments.extend(folders.map(|folder| format!("--include-path={}", folder.display())));
        let texts =
            arguments.iter().map(|argument| c_text("an option", argument)).collect::<Result<Vec<_>, _>>()?;
        let pointers: Vec<*const c_char> = texts.iter().map(|text| text.as_ptr()).collect();
        let count = c_int::try_from(pointers.len()).unwrap_or(c_int::MAX);
        // SAFETY: the program is ours alone; every option ends in a zero and lives until the call returns, and there are
        // as many as the count says.
        let status = unsafe { (self.api.compile)(self.raw, count, pointers.as_ptr()) };
        let log = self.text("nvrtcGetProgramLog", self.api.log_size, self.api.log)?;
        let diagnostics = Diagnostic::parse(&log);
        // A wrong option and a failing built-in step come with a log too, and then the log is what helps.
        if status == COMPILATION || (status != 0 && !diagnostics.is_empty()) {
            return Err(CompileFailure { source: source.name.into(), diagnostics, log, hint: None }.into());
        }
        self.check("nvrtcCompileProgram", status)?;
        let names = options.names.iter().map(|name| Ok((name.clone(), self.lowered(name)?)));
        let names = names.collect::<Result<_, NvrtcError>>()?;
        let cubin = match options.target {
            CompileTarget::Ptx(_) => None,
            CompileTarget::Cubin(_) => {
                Some(self.bytes("nvrtcGetCUBIN", self.api.cubin_size, self.api.cubin)?)
            }
        };
        let ptx = self.text("nvrtcGetPTX", self.api.ptx_size, self.api.ptx)?;
        Ok(Compiled { ptx, cubin, names, diagnostics })
    }

    fn lowered(&self, name: &str) -> Result<String, NvrtcError> {
        let text = c_text("a name expression", name)?;
        let mut lowered: *const c_char = std::ptr::null();
        // SAFETY: the program was compiled, the text ends in a zero, and the out-parameter is a live local.
        let status = unsafe { (self.api.lowered_name)(self.raw, text.as_ptr(), &mut lowered) };
        self.check("nvrtcGetLoweredName", status)?;
        // SAFETY: on success the name ends in a zero and lives as long as the program.
        Ok(unsafe { CStr::from_ptr(lowered) }.to_string_lossy().into_owned())
    }

    fn text(
        &self,
        call: &'static str,
        size: unsafe extern "C" fn(Program, *mut usize) -> Status,
        read: unsafe extern "C" fn(Program, *mut c_char) -> Status,
    ) -> Result<String, NvrtcError> {
        Ok(crate::convert::text(&self.bytes(call, size, read)?))
    }

    /// Asks how long something is, and for it.
    fn bytes(
        &self,
        call: &'static str,
        size: unsafe extern "C" fn(Program, *mut usize) -> Status,
        read: unsafe extern "C" fn(Program, *mut c_char) -> Status,
    ) -> Result<Vec<u8>, NvrtcError> {
        let mut len = 0;
        // SAFETY: the program is ours alone and the out-parameter is a live local.
        self.check(call, unsafe { size(self.raw, &mut len) })?;
        let mut bytes = vec![0u8; len];
        // SAFETY: the call writes as many bytes as it just said there are.
        self.check(call, unsafe { read(self.raw, bytes.as_mut_ptr().cast()) })?;
        Ok(bytes)
    }

    fn check(&self, call: &'static str, status: Status) -> Result<(), NvrtcError> {
        check(self.api, call, status)
    }
}

impl Drop for Compilation<'_> {
    fn drop(&mut self) {
        if !self.raw.is_null() {
            // SAFETY: NVRTC made the program, and nothing uses it any more.
            unsafe { (self.api.destroy)(&mut self.raw) };
        }
    }
}

/// An error unless NVRTC said yes.
pub(super) fn check(api: &Api, call: &'static str, status: Status) -> Result<(), NvrtcError> {
    if status == 0 {
        return Ok(());
    }
    // SAFETY: the call takes every number and returns a text that is never freed.
    let text = unsafe { (api.error_text)(status) };
    let text = match text.is_null() {
        true => String::new(),
        // SAFETY: as above, and it is not null.
        false => unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned(),
    };
    Err(NvrtcError::Failed { call, code: status, text })
}

fn c_text(what: &str, text: &str) -> Result<CString, NvrtcError> {
    CString::new(text).map_err(|_| NvrtcError::ZeroByte { what: what.into() })
}
