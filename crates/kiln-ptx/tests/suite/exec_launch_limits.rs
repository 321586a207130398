//! Each refusal of a launch at its limit: the last launch that is accepted, and the first that is not. A refusal that is taken out fails here.

use kiln_ptx::PtxModule;
use kiln_ptx::exec::{ExecProgram, LaunchError, LaunchShape};

/// The version of the PTX, directives behind the parameters, parameters, and code of a kernel.
#[derive(Clone)]
struct Kernel {
    version: &'static str,
    directives: String,
    parameters: String,
    body: String,
}

impl Kernel {
    fn new(body: impl Into<String>) -> Self {
        Self { version: "8.5", directives: String::new(), parameters: String::new(), body: body.into() }
    }

    fn bounded(directives: &str) -> Self {
        Self { directives: directives.to_owned(), ..Self::new("") }
    }

    fn taking(version: &'static str, bytes: u64) -> Self {
        Self { version, parameters: format!(".param .align 1 .b8 p[{bytes}]"), ..Self::new("") }
    }

    /// What is answered to a launch, as the name of the refusal and its text.
    fn launch(&self, shape: LaunchShape) -> Result<(), (&'static str, String)> {
        let Self { version, directives, parameters, body } = self;
        let text = format!(
            ".version {version}\n.target sm_90\n.address_size 64\n
            .visible .entry k({parameters}) {directives} {{ .reg .b32 %r<2>; .reg .b64 %d<2>; {body} ret; }}"
        );
        let program =
            ExecProgram::new(PtxModule::parse(&text).unwrap_or_else(|error| panic!("{error}: {text}")));
        let refused = program.entry("k").unwrap().check_launch(&shape);
        refused.map_err(|error| {
            let name = match &error {
                LaunchError::Shape { .. } => "shape",
                LaunchError::Bounds { .. } => "bounds",
                LaunchError::Shared { .. } => "shared",
                LaunchError::StaticShared { .. } => "static shared",
                LaunchError::Local { .. } => "local",
                LaunchError::Parameters { .. } => "parameters",
                LaunchError::Operand { .. } => "operand",
                LaunchError::HostMemory { .. } => "host memory",
                LaunchError::Cluster { .. } => "cluster",
                _ => "other",
            };
            (name, error.to_string())
        })
    }
}

fn shape(grid: [u32; 3], block: [u32; 3]) -> LaunchShape {
    LaunchShape::new(grid, block)
}

/// The last launch that is accepted, and the first that is not, for the reason of this name.
#[track_caller]
fn assert_limit(name: &str, accepted: (&Kernel, LaunchShape), refused: (&Kernel, LaunchShape)) {
    assert_eq!(accepted.0.launch(accepted.1), Ok(()), "{name}");
    match refused.0.launch(refused.1) {
        Err((found, _)) => assert_eq!(found, name),
        Ok(()) => panic!("{name}: {:?} is accepted", refused.1),
    }
}

fn one() -> LaunchShape {
    LaunchShape::linear(1, 32)
}

#[test]
fn shapes_and_bounds() {
    let any = Kernel::new("");
    for (accepted, refused) in [
        (shape([1; 3], [1024, 1, 1]), shape([1; 3], [1025, 1, 1])),
        (shape([1; 3], [32, 32, 1]), shape([1; 3], [32, 32, 2])),
        (shape([1; 3], [1; 3]), shape([1; 3], [1, 0, 1])),
        (shape([1; 3], [1; 3]), shape([0, 1, 1], [1; 3])),
        (shape([1; 3], [1; 3]), shape([1, 1, 0], [1; 3])),
    ] {
        assert_limit("shape", (&any, accepted), (&any, refused));
    }
    let exact = Kernel::bounded(".reqntid 8, 8");
    for refused in [[8, 4, 1], [64, 1, 1], [8, 8, 2]] {
        assert_limit("bounds", (&exact, shape([1; 3], [8, 8, 1])), (&exact, shape([1; 3], refused)));
    }
    let most = Kernel::bounded(".maxntid 96");
    for accepted in [1, 95, 96] {
        assert_limit(
            "bounds",
            (&most, LaunchShape::linear(1, accepted)),
            (&most, LaunchShape::linear(1, 97)),
        );
    }
    let clustered = |blocks: u32| Kernel::bounded(&format!(".reqnctapercluster {blocks}"));
    assert_limit("cluster", (&clustered(1), one()), (&clustered(2), LaunchShape::linear(3, 32)));
    assert_limit(
        "cluster",
        (&clustered(2), LaunchShape::linear(2, 32)),
        (&clustered(16), LaunchShape::linear(16, 32)),
    );
}

#[test]
fn shared_and_local_memory() {
    let shared =
        |bytes: u64| Kernel::new(format!(".shared .b8 s[{bytes}]; mov.u64 %d0, s; st.shared.u8 [%d0], 1;"));
    let limit = LaunchShape::MAX_STATIC_SHARED_BYTES;
    assert_limit("static shared", (&shared(limit), one()), (&shared(limit + 1), one()));
    let with = |bytes: u64| LaunchShape { dynamic_shared_bytes: bytes as u32, ..one() };
    let (some, left) = (shared(1000), LaunchShape::MAX_SHARED_BYTES - 1000);
    assert_limit("shared", (&some, with(left)), (&some, with(left + 1)));
    let local =
        |bytes: u64| Kernel::new(format!(".local .b8 l[{bytes}]; mov.u64 %d0, l; st.local.u8 [%d0], 1;"));
    let limit = LaunchShape::MAX_LOCAL_BYTES;
    assert_limit("local", (&local(limit), one()), (&local(limit + 16), one()));
    // All blocks of a cooperative launch are there at once: 2^31 blocks of 32 threads with 256 KiB each.
    let (frame, many) = (local(256 << 10), shape([0x7fff_ffff, 1, 1], [32, 1, 1]));
    assert_limit("host memory", (&frame, many), (&frame, LaunchShape { cooperative: true, ..many }));
}

#[test]
fn parameters_by_version() {
    let (narrow, wide) = (LaunchShape::MAX_NARROW_PARAMETER_BYTES, LaunchShape::MAX_PARAMETER_BYTES);
    for (version, limit) in [("8.0", narrow), ("8.1", wide)] {
        let (accepted, refused) = (Kernel::taking(version, limit), Kernel::taking(version, limit + 1));
        assert_limit("parameters", (&accepted, one()), (&refused, one()));
    }
}

#[test]
fn operands_of_barriers() {
    for (accepted, refused) in [
        ("bar.sync 15;", "bar.sync 16;"),
        ("bar.sync 0, 32;", "bar.sync 0, 33;"),
        ("bar.sync 1, 64;", "bar.sync 1, 0;"),
    ] {
        assert_limit("operand", (&Kernel::new(accepted), one()), (&Kernel::new(refused), one()));
    }
}
