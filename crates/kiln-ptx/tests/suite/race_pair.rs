//! A kernel that races, and its twin that does not.

use kiln_ptx::PtxModule;
use kiln_ptx::exec::{
    DeviceHeap, ExecFindingKind, ExecOutcome, ExecProgram, LaunchShape, Options, RaceCause, SimpleMemory,
};

/// What the wrong twin must be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Race,
    NarrowScope,
    DifferentSizes,
    NoFence,
    PendingCopy,
    NonCoherent,
    NoProxyFence,
    InactiveLane,
}

impl Told {
    pub(crate) fn is(self, kind: &ExecFindingKind) -> bool {
        match kind {
            ExecFindingKind::Race { cause: RaceCause::Unordered, .. } => self == Self::Race,
            ExecFindingKind::Race { cause: RaceCause::NarrowScope, .. } => self == Self::NarrowScope,
            ExecFindingKind::Race { cause: RaceCause::DifferentSizes, .. } => self == Self::DifferentSizes,
            ExecFindingKind::Race { cause: RaceCause::NoFence, .. } => self == Self::NoFence,
            ExecFindingKind::PendingCopy { .. } => self == Self::PendingCopy,
            ExecFindingKind::NonCoherent { .. } => self == Self::NonCoherent,
            ExecFindingKind::NoProxyFence { .. } => self == Self::NoProxyFence,
            ExecFindingKind::InactiveLane { .. } => self == Self::InactiveLane,
            _ => false,
        }
    }
}

/// A pair. `#1` and `#2` in the body stand for what differs.
pub(crate) struct Pair {
    pub(crate) name: &'static str,
    /// Blocks and threads.
    pub(crate) shape: (u32, u32),
    pub(crate) told: Told,
    pub(crate) body: &'static str,
    pub(crate) wrong: [&'static str; 2],
    pub(crate) right: [&'static str; 2],
}

impl Pair {
    /// Runs one of the twins. A name that ends with `sm_60` is for that target, one that begins with `grid` for a cooperative launch, and one that begins with
    /// `cluster` for a cluster of all blocks.
    pub(crate) fn run(&self, fix: [&str; 2], options: &Options<'_>) -> ExecOutcome {
        self.run_in_memory(fix, options).0
    }

    /// The same, with what is left in memory.
    pub(crate) fn run_in_memory(&self, fix: [&str; 2], options: &Options<'_>) -> (ExecOutcome, Vec<u8>) {
        let clustered = self.name.starts_with("cluster");
        let target = match self.name.ends_with("sm_60") {
            true => "sm_60",
            false if clustered => "sm_90",
            false => "sm_80",
        };
        let text = format!(
            ".version 8.0\n.target {target}\n.address_size 64
            .extern .func (.param .b64 r) malloc (.param .b64 n);
            .extern .func free (.param .b64 p);
            .visible .entry k(.param .u64 data) {{
                .shared .align 16 .b8 s[1024];
                .reg .pred %p<8>; .reg .b32 %r<16>, %t, %b, %g, %n, %m, %lane; .reg .b64 %d<16>, %data, %own, %other; .reg .b32 %s, %so;
                ld.param.u64 %data, [data];
                mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; mov.u32 %n, %ntid.x; mov.u32 %m, %nctaid.x; mov.u32 %lane, %laneid;
                mad.lo.u32 %g, %b, %n, %t;
                mul.wide.u32 %own, %g, 4; add.s64 %own, %own, %data;
                mov.u32 %s, s; shl.b32 %r15, %t, 2; add.u32 %so, %s, %r15;
                {}
                ret;
            }}",
            self.body.replace("#1", fix[0]).replace("#2", fix[1])
        );
        let module = PtxModule::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", self.name));
        let program = ExecProgram::new(module);
        let mut memory = SimpleMemory::new();
        let data = memory.allocate(8192);
        let heap = DeviceHeap::new(512);
        let options = Options { heap: Some(&heap), step_limit: 5_000_000, ..*options };
        let cooperative = self.name.starts_with("grid");
        let mut shape = LaunchShape { cooperative, ..LaunchShape::linear(self.shape.0, self.shape.1) };
        if clustered {
            shape = shape.in_clusters([self.shape.0, 1, 1]);
        }
        let entry = program.entry("k").unwrap();
        assert!(entry.unsupported().is_empty(), "{}: {:?}", self.name, entry.unsupported());
        let outcome = entry.launch(&shape, &data.to_le_bytes(), &[], &memory, &options).unwrap();
        (outcome, memory.read(data, 8192).unwrap())
    }
}
