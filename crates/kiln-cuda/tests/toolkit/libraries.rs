//! Finding libraries, in folders made for it. Real shared libraries come from the C compiler, where there is one.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use kiln_cuda::{LibraryKind, LibraryOrigin, SearchEnvironment};

/// A machine in a folder; the folder goes with it.
pub(crate) struct Machine {
    root: PathBuf,
}

impl Machine {
    pub(crate) fn new(name: &str) -> Self {
        let root = std::env::temp_dir().join(format!("kiln-libraries-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&root).unwrap();
        Self { root: root.canonicalize().unwrap() }
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    pub(crate) fn write(&self, path: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// A real shared library of a text in C.
    fn built(&self, path: &str, text: &str) -> PathBuf {
        let file = self.path(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let source = self.write("text.c", text.as_bytes());
        let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&file).arg(source).status();
        assert!(built.unwrap().success());
        file
    }

    /// A real shared library that calls itself `soname`.
    fn library(&self, path: &str, soname: &str) -> PathBuf {
        let file = self.path(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let source = self.write("empty.c", b"int nothing;");
        let soname = format!("-Wl,-soname,{soname}");
        let built =
            Command::new("cc").args(["-shared", "-fPIC", &soname, "-o"]).arg(&file).arg(source).status();
        assert!(built.unwrap().success());
        file
    }

    pub(crate) fn environment(&self) -> SearchEnvironment {
        SearchEnvironment::below(&self.root)
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.root).unwrap();
    }
}

/// Whether there is a C compiler; if not the test is counted as skipped.
fn compiler(test: &str) -> bool {
    static THERE: OnceLock<bool> = OnceLock::new();
    let there = *THERE.get_or_init(|| Command::new("cc").arg("--version").output().is_ok());
    if !there {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "there is no C compiler");
        if let Some(log) = std::env::var_os("KILN_SKIP_LOG").filter(|path| !path.is_empty()) {
            let mut log = std::fs::OpenOptions::new().create(true).append(true).open(log).unwrap();
            log.write_all(format!("{test}: there is no C compiler\n").as_bytes()).unwrap();
        }
    }
    there
}

fn found_at(environment: &SearchEnvironment, kind: LibraryKind) -> (PathBuf, LibraryOrigin, Option<String>) {
    let found = environment.find(kind).unwrap();
    (found.path, found.origin, found.version.map(|version| version.to_string()))
}

#[test]
fn an_empty_machine_has_none_of_them() {
    let machine = Machine::new("empty");
    for kind in LibraryKind::ALL {
        let missing = machine.environment().find(kind).unwrap_err();
        assert_eq!(missing.kind, kind);
        assert!(!missing.tried.is_empty());
        let text = missing.to_string();
        assert!(text.contains(kind.variable()) && text.contains(kind.python_package()), "{text}");
    }
}

#[test]
fn files_that_only_have_the_name_are_not_found() {
    let machine = Machine::new("names");
    let empty = machine.write("usr/lib64/libcublas.so.13", b"");
    let text = machine.write("usr/lib64/libcublas.so", b"GROUP ( libcublas.so.13 )");
    let cut = machine.write("usr/lib64/libcublas.so.12", b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    machine.write("usr/lib64/libcublasXt.so.13", b"\x7fELF");
    let missing = machine.environment().find(LibraryKind::Cublas).unwrap_err();
    let refused: Vec<&Path> =
        missing.tried.iter().map(|tried| tried.path.as_path()).filter(|path| path.is_file()).collect();
    assert_eq!(refused, [empty.as_path(), &cut, &text], "newest first, and each with its reason");
}

#[test]
fn a_library_that_ends_too_early_is_told_with_its_bytes() {
    if !compiler("a_library_that_ends_too_early_is_told_with_its_bytes") {
        return;
    }
    let machine = Machine::new("incomplete");
    let file = machine.library("usr/lib64/libcufft.so.12", "libcufft.so.12");
    let whole = std::fs::read(&file).unwrap();
    assert_eq!(machine.environment().find(LibraryKind::Cufft).unwrap().path, file);
    for bytes in [whole.len() / 2, 4096, 200] {
        std::fs::write(&file, &whole[..bytes]).unwrap();
        let missing = machine.environment().find(LibraryKind::Cufft).unwrap_err();
        let found = missing.tried.iter().find(|place| place.path == file).unwrap();
        let text = format!("incomplete: {bytes} of {} bytes; install it again", whole.len());
        assert_eq!((found.why.as_str(), found.is_incomplete), (text.as_str(), true));
    }
    // The next place that has a whole one serves.
    let whole = machine.library("usr/local/cuda-13.0/lib64/libcufft.so.12", "libcufft.so.12");
    assert_eq!(machine.environment().find(LibraryKind::Cufft).unwrap().path, whole);
}

#[test]
fn a_library_that_is_too_old_is_told_with_its_version_and_passed_over() {
    if !compiler("a_library_that_is_too_old_is_told_with_its_version_and_passed_over") {
        return;
    }
    let machine = Machine::new("old");
    for (kind, old, whole) in [
        (LibraryKind::Nvrtc, "libnvrtc.so.11.1.74", "libnvrtc.so.11.2.152"),
        (LibraryKind::Cublas, "libcublas.so.11.11.3.6", "libcublas.so.12.0.1.189"),
        (LibraryKind::CublasLt, "libcublasLt.so.11", "libcublasLt.so.12"),
        (LibraryKind::Cufft, "libcufft.so.10.9.0.58", "libcufft.so.11.0.0.21"),
        (LibraryKind::Cudnn, "libcudnn.so.8.9.7", "libcudnn.so.9"),
        (LibraryKind::Cusolver, "libcusolver.so.11.4.1.48", "libcusolver.so.11"),
        (LibraryKind::Cusparse, "libcusparse.so.11.7.5.86", "libcusparse.so.12"),
        (LibraryKind::Nccl, "libnccl.so.2.17.1", "libnccl.so.2"),
    ] {
        let soname = |file: &str| file.split('.').take(3).collect::<Vec<_>>().join(".");
        let old = machine.library(&format!("usr/lib64/{old}"), &soname(old));
        let missing = machine.environment().find(kind).unwrap_err();
        let text = missing.to_string();
        let file = old.display().to_string();
        let wanted = format!("{kind} at {file} is too old: version ");
        assert!(
            text.starts_with(&wanted)
                && text.contains(", kiln needs ")
                && text.contains(" or newer; install"),
            "{text}"
        );
        // One that a variable names, or that is loaded, is not replaced by another.
        let named = machine.environment().with_variable(kind.variable(), &old).find(kind).unwrap_err();
        assert!(named.to_string().contains("too old: version "), "{named}");
        let loaded = machine.environment().with_loaded(&old).find(kind).unwrap_err();
        assert!(loaded.to_string().starts_with(&wanted), "{loaded}");
        let whole = machine.library(&format!("usr/local/cuda/lib64/{whole}"), &soname(whole));
        assert_eq!(machine.environment().find(kind).unwrap().path, whole);
    }
    // A number that belongs to another name is no version.
    let other = machine.library("mine/libother.so.1", "libcublasLt.so");
    let named = machine.environment().with_variable("KILN_CUBLASLT", &other);
    let found = named.find(LibraryKind::CublasLt).unwrap();
    assert_eq!((found.path, found.version), (other, None));
    let old = machine.library("usr/lib64/libcurand.so.9", "libcurand.so.9");
    assert_eq!(machine.environment().find(LibraryKind::Curand).unwrap().path, old, "kiln does not call it");
}

#[test]
fn a_library_that_is_loaded_tells_its_version_and_what_is_wrong_with_it() {
    if !compiler("a_library_that_is_loaded_tells_its_version_and_what_is_wrong_with_it") {
        return;
    }
    let machine = Machine::new("loads");
    let properties = |function: &str, [major, minor, patch]: [u32; 3], symbol: &str| {
        let values = format!("*value = part == 0 ? {major} : part == 1 ? {minor} : {patch}");
        format!(
            "int {function}(int part, int *value) {{ {values}; return 0; }} int {symbol}(void) {{ return 0; }}"
        )
    };
    let loaded = |kind: LibraryKind, name: &str, text: &str| {
        let file = machine.built(name, text);
        let found = machine.environment().with_variable(kind.variable(), &file).find(kind).unwrap();
        assert_eq!(found.version, None, "{name} does not say it");
        (file.display().to_string(), found.load())
    };
    let of = |answer: Result<kiln_cuda::FoundLibrary, kiln_cuda::MissingLibrary>| {
        answer.unwrap().version.unwrap().to_string()
    };
    let solver = |version| properties("cusolverGetProperty", version, "cusolverDnCreate");
    let (_, new) = loaded(LibraryKind::Cusolver, "new/libcusolver.so", &solver([11, 4, 2]));
    assert_eq!(of(new), "11.4.2");
    let (file, old) = loaded(LibraryKind::Cusolver, "old/libcusolver.so", &solver([11, 4, 1]));
    let text = old.unwrap_err().to_string();
    let wanted = format!(
        "cuSOLVER at {file}, which KILN_CUSOLVER names, is too old: version 11.4.1, kiln needs 11.4.2 or newer; install"
    );
    assert!(text.starts_with(&wanted) && text.matches("too old").count() == 1, "{text}");
    let nccl =
        "int ncclGetVersion(int *v) { *v = 21708; return 0; } int ncclGetUniqueId(void *id) { return 0; }";
    let (_, old) = loaded(LibraryKind::Nccl, "old/libnccl.so", nccl);
    assert!(old.unwrap_err().to_string().contains("too old: version 2.17.8, kiln needs 2.18"));
    let nccl = nccl.replace("21708", "21800");
    assert_eq!(of(loaded(LibraryKind::Nccl, "new/libnccl.so", &nccl).1), "2.18.0");
    let (file, none) = loaded(LibraryKind::Nvrtc, "libnvrtc.so", "int nothing;");
    let text = none.unwrap_err().to_string();
    let wanted = format!(
        "NVRTC at {file}, which KILN_NVRTC names, has no `nvrtcGetSupportedArchs`, which every NVRTC has; "
    );
    assert!(text.starts_with(&wanted), "{text}");
    let lacking = "int no_such_function(void); int cufftCreate(void) { return no_such_function(); }";
    let (file, none) = loaded(LibraryKind::Cufft, "libcufft.so", lacking);
    let missing = none.unwrap_err();
    let text = missing.to_string();
    assert!(
        text.starts_with(&format!("cuFFT at {file}, which KILN_CUFFT names, cannot be loaded: "))
            && text.contains("undefined symbol: no_such_function; install"),
        "{text}"
    );
    assert!(missing.unusable().is_some_and(|place| place.is_unloadable));
}

#[test]
fn what_is_wrong_with_a_named_place_is_told_once() {
    if !compiler("what_is_wrong_with_a_named_place_is_told_once") {
        return;
    }
    let machine = Machine::new("named");
    let named = |kind: LibraryKind, path: &Path| {
        machine.environment().with_variable(kind.variable(), path).find(kind).unwrap_err().to_string()
    };
    let old = machine.library("libcublasLt.so.11", "libcublasLt.so.11");
    let (text, file) = (named(LibraryKind::CublasLt, &old), old.display().to_string());
    assert!(
        text.starts_with(&format!("cuBLASLt at {file}, which KILN_CUBLASLT names, is too old: ")),
        "{text}"
    );
    assert_eq!((text.matches("too old").count(), text.matches("wrong place").count()), (1, 0), "{text}");
    let half = machine.library("libcufft.so.12", "libcufft.so.12");
    let whole = std::fs::read(&half).unwrap();
    std::fs::write(&half, &whole[..4096]).unwrap();
    let (text, file) = (named(LibraryKind::Cufft, &half), half.display().to_string());
    let wanted = format!("cuFFT at {file}, which KILN_CUFFT names, is incomplete: 4096 of ");
    assert!(text.starts_with(&wanted) && !text.contains("not found"), "{text}");
    let folder = machine.path("empty");
    std::fs::create_dir_all(&folder).unwrap();
    let (text, folder) = (named(LibraryKind::Cusolver, &folder), folder.display().to_string());
    assert!(
        text.starts_with("KILN_CUSOLVER is set to a wrong place: cuSOLVER was not found; install"),
        "{text}"
    );
    assert!(text.ends_with(&format!("({folder}: has no file libcusolver.so)")), "{text}");
}

#[test]
fn each_place_is_searched_in_its_turn() {
    if !compiler("each_place_is_searched_in_its_turn") {
        return;
    }
    let machine = Machine::new("places");
    let kind = LibraryKind::Cufft;
    let soname = "libcufft.so.12";
    let site = "lib/python3.12/site-packages/nvidia/cu13/lib/libcufft.so.12";
    let mut environment = machine
        .environment()
        .with_variable("CUDA_HOME", machine.path("home"))
        .with_variable("LD_LIBRARY_PATH", machine.path("ld"))
        .with_variable("VIRTUAL_ENV", machine.path("venv"))
        .with_variable("CONDA_PREFIX", machine.path("conda"));
    // From the last place to the first: each new file is found before all the others.
    for (path, origin) in [
        ("usr/local/cuda-12.4/lib64/libcufft.so.11", LibraryOrigin::Toolkit),
        ("usr/local/cuda-13.0/lib64/libcufft.so.12", LibraryOrigin::Toolkit),
        ("conda/lib/libcufft.so.12", LibraryOrigin::Conda),
        (&format!("venv/{site}"), LibraryOrigin::Python),
        ("usr/lib64/libcufft.so.12", LibraryOrigin::System),
        ("ld/libcufft.so.12", LibraryOrigin::System),
        ("home/lib64/libcufft.so.12", LibraryOrigin::CudaHome),
    ] {
        let file = machine.library(path, if path.ends_with("11") { "libcufft.so.11" } else { soname });
        let found = environment.find(kind).unwrap();
        assert_eq!((&found.path, found.origin), (&file, origin));
    }
    let configured = machine.library("mine/libcufft.so.12", soname);
    environment = environment.with_variable("KILN_CUFFT", machine.path("mine"));
    assert_eq!(found_at(&environment, kind), (configured, LibraryOrigin::Configured, Some("12".into())));
    let loaded = machine.path("loaded/libcufft.so.11.2.3");
    let environment = environment.with_loaded(machine.path("loaded/libcufftw.so.11")).with_loaded(&loaded);
    assert_eq!(found_at(&environment, kind), (loaded, LibraryOrigin::Loaded, Some("11.2.3".into())));
}

#[test]
fn a_configured_path_without_the_library_is_not_passed_over() {
    if !compiler("a_configured_path_without_the_library_is_not_passed_over") {
        return;
    }
    let machine = Machine::new("configured");
    machine.library("usr/lib64/libnccl.so.2", "libnccl.so.2");
    let wrong = machine.environment().with_variable("KILN_NCCL", machine.path("nowhere/libnccl.so"));
    let missing = wrong.find(LibraryKind::Nccl).unwrap_err();
    assert_eq!(missing.tried.len(), 1);
    assert!(missing.tried[0].path.ends_with("nowhere/libnccl.so"));
    let other = machine.library("mine/libnccl.so", "libsomething.so.1");
    let missing =
        machine.environment().with_variable("KILN_NCCL", &other).find(LibraryKind::Nccl).unwrap_err();
    assert!(missing.tried[0].why.contains("libsomething.so.1"), "{missing}");
}

#[test]
fn versions_come_from_links_packages_and_sonames() {
    if !compiler("versions_come_from_links_packages_and_sonames") {
        return;
    }
    let machine = Machine::new("versions");
    let folder = "usr/local/cuda/lib64";
    machine.library(&format!("{folder}/libcublas.so.12.4.5.8"), "libcublas.so.12");
    std::os::unix::fs::symlink("libcublas.so.12.4.5.8", machine.path(&format!("{folder}/libcublas.so.12")))
        .unwrap();
    std::os::unix::fs::symlink("libcublas.so.12", machine.path(&format!("{folder}/libcublas.so"))).unwrap();
    let (_, _, version) = found_at(&machine.environment(), LibraryKind::Cublas);
    assert_eq!(version.as_deref(), Some("12.4.5"));

    machine.library("usr/lib/libcurand.so", "libcurand.so.10");
    let (_, _, version) = found_at(&machine.environment(), LibraryKind::Curand);
    assert_eq!(version.as_deref(), Some("10"));

    let packages = "venv/lib/python3.11/site-packages";
    let file = machine.library(&format!("{packages}/nvidia/cudnn/lib/libcudnn.so.9"), "libcudnn.so.9");
    std::fs::create_dir_all(machine.path(&format!("{packages}/nvidia_cudnn_cu13-9.13.0.50.dist-info")))
        .unwrap();
    let environment = machine.environment().with_variable("VIRTUAL_ENV", machine.path("venv"));
    assert_eq!(
        found_at(&environment, LibraryKind::Cudnn),
        (file, LibraryOrigin::Python, Some("9.13.0".into()))
    );
}

#[test]
fn the_python_on_the_path_tells_where_its_packages_are() {
    if !compiler("the_python_on_the_path_tells_where_its_packages_are") {
        return;
    }
    let machine = Machine::new("python");
    let file = machine
        .library("py/lib/python3.10/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12", "libnvrtc.so.12");
    machine.write("py/bin/python3.10", b"");
    machine.write("bin/nothing", b"");
    std::os::unix::fs::symlink(machine.path("py/bin/python3.10"), machine.path("bin/python3")).unwrap();
    let path = std::env::join_paths([machine.path("empty"), machine.path("bin")]).unwrap();
    let environment = machine.environment().with_variable("PATH", path);
    let (found, origin, _) = found_at(&environment, LibraryKind::Nvrtc);
    assert_eq!((found, origin), (file, LibraryOrigin::Python));
}

#[test]
fn the_loaders_configuration_is_read_with_its_includes() {
    if !compiler("the_loaders_configuration_is_read_with_its_includes") {
        return;
    }
    let machine = Machine::new("configuration");
    machine.write("etc/ld.so.conf", b"# comment\ninclude ld.so.conf.d/*.conf\ninclude /etc/ld.so.conf\n");
    machine.write("etc/ld.so.conf.d/cuda.conf", b"/vendor/lib # the vendor's\n");
    machine.write("etc/ld.so.conf.d/cuda.conf.bak", b"/elsewhere\n");
    machine.library("elsewhere/libcusparse.so.12", "libcusparse.so.12");
    assert!(machine.environment().find(LibraryKind::Cusparse).is_err());
    let file = machine.library("vendor/lib/libcusparse.so.12", "libcusparse.so.12");
    let (found, origin, _) = found_at(&machine.environment(), LibraryKind::Cusparse);
    assert_eq!((found, origin), (file, LibraryOrigin::System));
}

#[test]
fn this_process_answers_for_every_library_without_a_panic() {
    let environment = SearchEnvironment::of_process();
    for kind in LibraryKind::ALL {
        match environment.find(kind) {
            Ok(found) => assert!(found.path.is_file() && !found.to_string().is_empty()),
            Err(missing) => assert_eq!(missing.kind, kind),
        }
    }
}
