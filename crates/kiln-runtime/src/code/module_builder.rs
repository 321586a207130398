//! `ModuleBuilder`: the options of a compilation, and compiling and loading with them.

use std::path::{Path, PathBuf};

use kiln_cuda::nvrtc::{
    Architecture, CompileOptions, CompileTarget, CudaSource, Header, Nvrtc, NvrtcError, ToolkitHeaders,
    standard_headers,
};
use kiln_driver::DeviceKind;

use super::disk_entry::Payload;
use super::included_headers::read_headers;
use super::kernel_source::Source;
use super::library_fingerprint::LibraryFile;
use super::loaded_modules::{CompiledModule, Modules, load_cubin};
use crate::code_cache::{Key, KeyBuilder};
use crate::error::{CodeError, Result};
use crate::launch::{Kernel, Module};
use crate::runtime::DeviceRuntime;

/// How a source is compiled. Made by [`DeviceRuntime::source`]; ends with [`kernel`](Self::kernel).
#[derive(Clone, Debug)]
pub struct ModuleBuilder<'a> {
    runtime: &'a DeviceRuntime,
    source: Source<'a>,
    headers: Vec<(&'a str, &'a str)>,
    folders: Vec<PathBuf>,
    macros: Vec<(String, String)>,
    names: Vec<String>,
    further: Vec<String>,
    architecture: Option<String>,
    fmad: bool,
    line_info: bool,
}

impl DeviceRuntime {
    /// A kernel from source: CUDA C, PTX or cubin. CUDA C and PTX are compiled once and their machine code is kept: in memory while it is
    /// used, and on disk for the next process.
    ///
    /// ```
    /// use kiln::DeviceRuntime;
    ///
    /// const PTX: &str = "
    ///     .version 7.0
    ///     .target sm_70
    ///     .address_size 64
    ///     .visible .entry nothing(.param .u32 n) { ret; }";
    ///
    /// let gpu = DeviceRuntime::simulated(7)?;
    /// let nothing = gpu.kernel(PTX, "nothing")?;
    /// assert_eq!(nothing.signature().unwrap().parameters().len(), 1);
    /// # Ok::<(), kiln::Error>(())
    /// ```
    ///
    /// # Errors
    /// What the compiler says, with file and line; NVRTC missing, with how to get it; no kernel of that name.
    pub fn kernel<'a>(&'a self, source: impl Into<Source<'a>>, name: &str) -> Result<Kernel> {
        self.source(source).kernel(name)
    }

    /// Begins to say how a source is compiled.
    pub fn source<'a>(&'a self, source: impl Into<Source<'a>>) -> ModuleBuilder<'a> {
        ModuleBuilder {
            runtime: self,
            source: source.into(),
            headers: Vec::new(),
            folders: Vec::new(),
            macros: Vec::new(),
            names: Vec::new(),
            further: Vec::new(),
            architecture: None,
            fmad: true,
            line_info: self.info().kind == DeviceKind::Simulated,
        }
    }
}

impl<'a> ModuleBuilder<'a> {
    /// A header in memory, found by that name.
    #[must_use]
    pub fn header(mut self, name: &'a str, text: &'a str) -> Self {
        self.headers.push((name, text));
        self
    }

    /// A folder that headers are looked for in, before those of the CUDA toolkit (`cuda_fp16.h` and others), which are
    /// found beside NVRTC.
    #[must_use]
    pub fn include(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folders.push(folder.into());
        self
    }

    /// A macro with its value.
    #[must_use]
    pub fn define(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.macros.push((name.into(), value.into()));
        self
    }

    /// A template with its arguments, such as `scale<float>`; [`kernel`](Self::kernel) then takes the same words.
    #[must_use]
    pub fn instantiate(mut self, name: impl Into<String>) -> Self {
        self.names.push(name.into());
        self
    }

    /// Whether a multiplication and an addition become one instruction with one rounding; they do unless this says no.
    #[must_use]
    pub fn fmad(mut self, fmad: bool) -> Self {
        self.fmad = fmad;
        self
    }

    /// Asks that the code says which source line each instruction came from; findings then do, too. Code for a simulated device always does.
    #[must_use]
    pub fn line_info(mut self) -> Self {
        self.line_info = true;
        self
    }

    /// The architecture that CUDA C is compiled for, such as `sm_90a`, `compute_90a` or `sm_100f`, instead of the device's own. With an `a` or `f`
    /// the code may use instructions that only this architecture or its family has, such as `wgmma`.
    #[must_use]
    pub fn architecture(mut self, name: impl Into<String>) -> Self {
        self.architecture = Some(name.into());
        self
    }

    /// An argument as NVRTC takes it.
    #[must_use]
    pub fn option(mut self, option: impl Into<String>) -> Self {
        self.further.push(option.into());
        self
    }

    /// Compiles, unless that was done before, and looks a kernel up.
    ///
    /// # Errors
    /// As for [`DeviceRuntime::kernel`].
    pub fn kernel(&self, name: &str) -> Result<Kernel> {
        self.load()?.kernel(name)
    }

    /// Compiles, unless that was done before, and loads the module: for its [variables](Module::global), and for several kernels. While it is
    /// loaded, the same source with the same options is the same module, with the same variables.
    ///
    /// # Errors
    /// As for [`DeviceRuntime::kernel`].
    pub fn module(&self) -> Result<Module> {
        Ok(self.load()?.into_module())
    }

    /// The PTX, compiled unless that was done before: what a tool reads that wants to know more than a launch does.
    ///
    /// ```
    /// use kiln::DeviceRuntime;
    ///
    /// const PTX: &str = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry nothing() { ret; }";
    ///
    /// let gpu = DeviceRuntime::simulated(0)?;
    /// let ptx = gpu.source(PTX).ptx()?;
    /// assert!(kiln_ptx::PtxModule::parse(&ptx).unwrap().find_function("nothing").is_some());
    /// # Ok::<(), kiln::Error>(())
    /// ```
    ///
    /// # Errors
    /// What the compiler says; machine code, which has no PTX.
    pub fn ptx(&self) -> Result<String> {
        match self.source {
            Source::Cubin(_) => Err(CodeError::NoPtx.into()),
            Source::Ptx(ptx) => Ok(ptx.to_owned()),
            Source::CudaC { name, text } => {
                let key = self.key(name, text)?;
                let modules = Modules::of(self.runtime.inner());
                Ok(modules.payload_alone(&key, || self.compile(name, text))?.ptx)
            }
        }
    }

    fn load(&self) -> Result<CompiledModule> {
        let modules = Modules::of(self.runtime.inner());
        match self.source {
            Source::Cubin(cubin) => load_cubin(self.runtime, cubin),
            Source::Ptx(ptx) => modules.load_ptx(self.runtime, ptx_key(self.runtime, ptx), ptx),
            Source::CudaC { name, text } => {
                let key = self.key(name, text)?;
                modules.load_compiled(self.runtime, key, || self.compile(name, text))
            }
        }
    }

    /// How NVRTC is asked, once it is known what for.
    fn options(&self, target: CompileTarget) -> CompileOptions {
        CompileOptions {
            fmad: self.fmad,
            line_info: self.line_info,
            include_folders: self.folders.clone(),
            macros: self.macros.clone(),
            names: self.names.clone(),
            further: self.further.clone(),
            ..CompileOptions::new(target)
        }
    }

    /// What NVRTC makes code for so that the device can run it.
    fn target(&self, nvrtc: &Nvrtc) -> Result<CompileTarget> {
        let info = self.runtime.info();
        if let Some(name) = &self.architecture {
            let asked: Architecture =
                name.parse().map_err(|error| CodeError::from(NvrtcError::ArchitectureName(error)))?;
            let is_own = asked.number() == Architecture::from(info.capability).number();
            return Ok(match info.kind {
                DeviceKind::Cuda if is_own => CompileTarget::Cubin(asked),
                _ => CompileTarget::Ptx(asked),
            });
        }
        let target = nvrtc
            .target_for(info.capability)
            .ok_or(CodeError::DeviceTooOld { nvrtc: nvrtc.version(), capability: info.capability })?;
        Ok(match info.kind {
            DeviceKind::Cuda => target,
            // A simulated device runs PTX; machine code would be thrown away.
            DeviceKind::Simulated => CompileTarget::Ptx(target.architecture()),
        })
    }

    /// Everything that decides what comes out. NVRTC is not loaded for it: that takes longer than all the rest of a launch whose
    /// code is there already. Its file and the device decide together what it would be asked for.
    fn key(&self, name: &str, text: &str) -> Result<Key> {
        let mut key = device_key(self.runtime)
            .part("name", name.as_bytes())
            .part("source", text.as_bytes())
            .part("nvrtc", LibraryFile::compiler()?.identity().as_bytes());
        // NVRTC writes the folder of the process into the lines of a source without one.
        if self.line_info
            && Path::new(name).is_relative()
            && let Ok(folder) = std::env::current_dir()
        {
            key = key.part("folder", folder.as_os_str().as_encoded_bytes());
        }
        for argument in self.options(CompileTarget::Ptx(self.runtime.info().capability.into())).arguments() {
            key = key.part("argument", argument.as_bytes());
        }
        if let Some(architecture) = &self.architecture {
            key = key.part("architecture", architecture.as_bytes());
        }
        for name in &self.names {
            key = key.part("instance", name.as_bytes());
        }
        for (name, text) in &self.headers {
            key = key.part("header name", name.as_bytes()).part("header", text.as_bytes());
        }
        let all = self.headers.iter().fold(text.to_owned(), |all, (_, header)| all + "\n" + header);
        // Headers of C++ and of the toolkit are found without being given; which ones they are decides what comes out.
        if all.contains("include") {
            for header in standard_headers() {
                key = key.part("standard header", header.text.as_bytes());
            }
            if let Ok(headers) = ToolkitHeaders::of_process() {
                key = key.part("toolkit headers", headers.identity().as_bytes());
            }
        }
        for (path, contents) in read_headers(&all, &self.folders) {
            key = key.part("file", path.as_os_str().as_encoded_bytes()).part("contents", &contents);
        }
        Ok(key.finish())
    }

    fn compile(&self, name: &str, text: &str) -> Result<Payload> {
        let nvrtc = Nvrtc::load().map_err(CodeError::from)?;
        let headers: Vec<Header<'_>> =
            self.headers.iter().map(|(name, text)| Header { name, text }).collect();
        let source = CudaSource { headers: &headers, ..CudaSource::new(name, text) };
        let compiled = nvrtc.compile(&source, &self.options(self.target(nvrtc)?));
        let compiled = compiled.map_err(|error: NvrtcError| CodeError::from(error))?;
        let names = self.headers.iter().map(|(name, _)| *name).chain([name]);
        let ptx = names.fold(compiled.ptx, without_current_folder);
        Ok(Payload { cubin: compiled.cubin, names: compiled.names, ..Payload::of_ptx(ptx) })
    }
}

/// Names the source in line information as the caller does. NVRTC puts the current folder in front of it, where no such file need be.
fn without_current_folder(ptx: String, name: &str) -> String {
    let Ok(folder) = std::env::current_dir() else { return ptx };
    if Path::new(name).is_absolute() || !ptx.contains(".file") {
        return ptx;
    }
    let wrong = format!("\"{}\"", folder.join(name).display());
    ptx.replace(&wrong, &format!("\"{name}\""))
}

/// Everything that decides what machine code a driver makes of PTX.
pub fn ptx_key(runtime: &DeviceRuntime, ptx: &str) -> Key {
    device_key(runtime).part("ptx", ptx.as_bytes()).finish()
}

/// The device that code is for.
fn device_key(runtime: &DeviceRuntime) -> KeyBuilder {
    let info = runtime.info();
    KeyBuilder::new()
        .part("driver", info.driver_version.to_string().as_bytes())
        .part("device", info.kind.to_string().as_bytes())
        .part("capability", info.capability.to_string().as_bytes())
}

/// Counts that the module of a key was asked for and is loaded, for a caller that holds it.
pub fn count_found(runtime: &DeviceRuntime, key: &Key) {
    Modules::of(runtime.inner()).count_found(key);
}
