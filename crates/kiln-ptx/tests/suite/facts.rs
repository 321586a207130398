//! What a launch learns about an entry.

use kiln_ptx::{EntryFacts, Family, Feature, PtxModule, PtxParameterKind};

fn load(file: &str) -> PtxModule {
    let path = format!("{}/tests/data/{file}.ptx", env!("CARGO_MANIFEST_DIR"));
    PtxModule::parse(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn facts(file: &str, entry: &str) -> EntryFacts {
    let module = load(file);
    module.facts(module.find_function(entry).unwrap()).unwrap()
}

#[test]
fn parameters_lie_where_the_abi_puts_them() {
    use PtxParameterKind::{Bytes, Pointer, Value, Word};
    // by_value(struct { float; char; }, signed char, unsigned short, bool, double, float*)
    let by_value = facts("elementwise", "by_value").signature;
    let layout: Vec<_> =
        by_value.parameters.iter().map(|p| (p.kind, p.offset, p.size_bytes, p.align_bytes)).collect();
    assert_eq!(
        layout,
        [
            (Bytes, 0, 8, 4),
            (Value, 8, 1, 1),
            (Value, 10, 2, 2),
            (Value, 12, 1, 1),
            (Value, 16, 8, 8),
            (Pointer, 24, 8, 8),
        ]
    );
    assert_eq!(by_value.size_bytes, 32);

    // view(struct { float*; int; const float*; })
    let view = facts("pointers", "view").signature;
    assert_eq!((view.parameters[0].kind, view.parameters[0].size_bytes), (Bytes, 24));
    assert_eq!(view.parameters[0].pointers.iter().map(|p| p.offset).collect::<Vec<_>>(), [0, 16]);

    // grid_stride(const float*, float*, long long): the number could be a pointer that is never followed.
    let kinds: Vec<_> =
        facts("elementwise", "grid_stride").signature.parameters.iter().map(|p| p.kind).collect();
    assert_eq!(kinds, [Pointer, Pointer, Word]);
}

#[test]
fn shared_memory_static_and_dynamic() {
    let module = load("shared");
    let bytes = |entry: &str| {
        let shared = module.facts(module.find_function(entry).unwrap()).unwrap().shared;
        (shared.static_bytes, shared.is_dynamic())
    };
    assert_eq!(bytes("block_sum"), (1024, false));
    assert_eq!(bytes("histogram"), (1024, false));
    assert_eq!(bytes("transpose"), (32 * 33 * 4, false));
    assert_eq!(bytes("dynamic_reverse"), (0, true));
    assert_eq!(bytes("warp_sum"), (0, false));

    let bulk = facts("hopper", "bulk").shared;
    assert_eq!((bulk.static_bytes, bulk.dynamic_align_bytes), (8, 128));
    assert_eq!(bulk.dynamic_offset(), 128);
    assert_eq!((bulk.layout.len(), bulk.dynamic.len()), (1, 1));
}

#[test]
fn shared_variables_of_called_functions_count() {
    let text = ".version 9.0 .target sm_90 .address_size 64
        .shared .align 4 .b8 used[12];
        .shared .align 4 .b8 unused[100];
        .func f() { .shared .align 16 .b8 inner[16]; .reg .b32 %r; ld.shared.u32 %r, [used]; ret; }
        .entry k() { call f; ret; }
        .entry other() { ret; }";
    let module = PtxModule::parse(text).unwrap();
    let shared = |entry: &str| module.facts(module.find_function(entry).unwrap()).unwrap().shared;
    assert_eq!(shared("k").layout.iter().map(|(_, offset)| *offset).collect::<Vec<_>>(), [0, 16]);
    assert_eq!(shared("k").static_bytes, 32);
    assert_eq!(shared("other").static_bytes, 0);
}

#[test]
fn barriers_and_bounds() {
    let block_sum = facts("shared", "block_sum");
    assert_eq!(block_sum.barriers.block, 1);
    assert_eq!(block_sum.bounds.max_threads_per_block(), Some(256));
    assert_eq!(block_sum.bounds.min_blocks_per_multiprocessor, Some(2));
    let counted = facts("shared", "counted").barriers;
    assert_eq!((counted.block, counted.warp), (1, true));
    assert_eq!(facts("elementwise", "saxpy").barriers.block, 0);
    let cluster = facts("hopper", "cluster");
    assert!(cluster.barriers.cluster && !cluster.barriers.memory);
    assert_eq!(cluster.bounds.required_cluster, Some([2, 1, 1]));
    assert!(facts("hopper", "bulk").barriers.memory);

    let text = ".version 9.0 .target sm_90 .address_size 64 .entry k() {
        .reg .b32 %r<2>; .reg .pred %p;
        barrier.sync 3, 64; bar.red.popc.u32 %r1, 5, %p; bar.arrive 15, 32; }";
    let module = PtxModule::parse(text).unwrap();
    assert_eq!(
        module.facts(module.find_function("k").unwrap()).unwrap().barriers.block,
        1 << 3 | 1 << 5 | 1 << 15
    );
}

#[test]
fn features_beyond_the_ordinary_are_named() {
    let features = |file: &str, entry: &str| -> Vec<Feature> {
        facts(file, entry).requirements.features.iter().map(|(feature, _)| *feature).collect()
    };
    assert_eq!(features("elementwise", "saxpy"), []);
    assert_eq!(features("tensor", "matrix"), [Feature::Family(Family::TensorCore)]);
    assert_eq!(features("tensor", "copies"), []);
    assert_eq!(features("hopper", "bulk"), [Feature::Family(Family::BulkCopy)]);
    assert_eq!(features("hopper", "cluster"), [Feature::Family(Family::Cluster), Feature::ClusterLaunch]);
    assert_eq!(
        features("textures", "sample"),
        [Feature::Family(Family::Texture), Feature::Family(Family::Surface)]
    );
    assert_eq!(features("cooperative", "two_steps"), [Feature::CooperativeLaunch]);
    assert_eq!(features("host_calls", "talk"), [Feature::Printf]);
    assert_eq!(features("host_calls", "insist"), [Feature::Assert]);
    assert_eq!(features("host_calls", "heap"), [Feature::Heap]);
    assert_eq!(features("control", "indirect"), [Feature::IndirectCall]);
    assert_eq!(features("control", "recurse"), []);
}

#[test]
fn unsupported_instructions_are_listed_with_their_places() {
    let text = ".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n.reg .b64 %rd<3>;\n\tclusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%rd1], [%rd2];\nret;\n}\n";
    let module = PtxModule::parse(text).unwrap();
    let asks = module.facts(module.find_function("k").unwrap()).unwrap();
    let place = asks.unsupported.first().unwrap();
    assert!(place.instruction.starts_with("clusterlaunchcontrol"), "{}", place.instruction);
    assert_eq!((place.family, &*place.function), (Family::Cluster, "k"));
    assert_eq!((place.position.line, place.position.column), (7, 2));
    assert!(facts("hopper", "cluster").unsupported.is_empty(), "clusters are executed");
    assert!(facts("hopper", "bulk").unsupported.is_empty(), "`cp.async.bulk` is executed");
    assert!(facts("textures", "sample").unsupported.is_empty(), "`tex` and `sust` are executed");
    assert!(facts("tensor", "matrix").unsupported.is_empty(), "`wmma` is executed");
    assert!(facts("tensor", "raw_mma").unsupported.is_empty(), "`mma` is executed");
}

#[test]
fn requirements_name_version_and_architecture() {
    let requirements = facts("pointers-sm_120", "view").requirements;
    assert_eq!((requirements.version.major, requirements.version.minor), (9, 4));
    assert_eq!(requirements.target.sm(), Some(120));
}

#[test]
fn device_functions_are_no_entries() {
    let module = load("pointers");
    assert!(module.facts(module.find_function("_Z8store_atPfif").unwrap()).is_none());
}
