//! Effects of compiled kernels against truth written by hand from their CUDA source.

use kiln_ptx::{PointerAccess, PtxFunctionId, PtxModule, ScalarType};

/// File, kernel, and for each word of its parameters that is a pointer: parameter, offset, what the kernel does.
type Truth = (&'static str, &'static str, &'static [(usize, u32, PointerAccess)]);

const R: PointerAccess = PointerAccess::Reads;
const W: PointerAccess = PointerAccess::Writes;
const RW: PointerAccess = PointerAccess::Both;
const NO: PointerAccess = PointerAccess::Neither;
const ANY: PointerAccess = PointerAccess::Unknown;

const TRUTH: &[Truth] = &[
    ("elementwise", "saxpy", &[(1, 0, R), (2, 0, RW)]),
    ("elementwise", "grid_stride", &[(0, 0, R), (1, 0, W)]),
    ("elementwise", "vectors", &[(0, 0, R), (1, 0, W), (2, 0, R), (3, 0, W)]),
    ("elementwise", "by_value", &[(5, 0, W)]),
    ("elementwise", "_Z8unrolledIiLi8EEvPKT_PS0_", &[(0, 0, R), (1, 0, W)]),
    ("elementwise", "_Z8unrolledIhLi5EEvPKT_PS0_", &[(0, 0, R), (1, 0, W)]),
    ("control", "recurse", &[(0, 0, W)]),
    ("control", "pairs", &[(0, 0, RW)]),
    ("control", "dense_switch", &[(0, 0, R), (1, 0, W)]),
    ("control", "collatz", &[(0, 0, RW)]),
    ("control", "indirect", &[(0, 0, RW)]),
    ("control-debug", "dense_switch", &[(0, 0, R), (1, 0, W)]),
    ("control-debug", "pairs", &[(0, 0, RW)]),
    ("control-sm_75", "recurse", &[(0, 0, W)]),
    ("shared", "block_sum", &[(0, 0, R), (1, 0, W)]),
    ("shared", "warp_sum", &[(0, 0, R), (1, 0, W)]),
    ("shared", "dynamic_reverse", &[(0, 0, RW)]),
    ("shared", "histogram", &[(0, 0, R), (1, 0, RW)]),
    ("shared", "transpose", &[(0, 0, R), (1, 0, W)]),
    ("shared", "counted", &[(0, 0, RW)]),
    ("shared-lineinfo", "histogram", &[(0, 0, R), (1, 0, RW)]),
    ("atomics", "integers", &[(0, 0, RW), (1, 0, RW), (2, 0, RW), (3, 0, RW)]),
    ("atomics", "floats", &[(0, 0, RW), (1, 0, RW), (2, 0, W)]),
    ("atomics", "scopes", &[(0, 0, RW), (1, 0, RW)]),
    ("atomics", "insert", &[(0, 0, RW), (1, 0, R)]),
    ("host_calls", "talk", &[(0, 0, R)]),
    ("host_calls", "insist", &[(0, 0, R), (1, 0, W)]),
    ("host_calls", "heap", &[(0, 0, W)]),
    ("host_calls", "leak", &[(0, 0, W)]),
    ("numbers", "halves", &[(0, 0, R), (1, 0, R), (2, 0, W), (3, 0, W), (4, 0, W)]),
    ("numbers", "integers", &[(0, 0, R), (1, 0, R), (2, 0, W), (3, 0, W), (4, 0, W)]),
    ("numbers", "doubles", &[(0, 0, R), (1, 0, W), (2, 0, W)]),
    ("assembly", "blocks", &[(0, 0, W)]),
    ("assembly", "wide_add", &[(0, 0, R), (1, 0, R), (2, 0, W)]),
    ("assembly", "logic", &[(0, 0, RW)]),
    ("cooperative", "two_steps", &[(0, 0, RW), (1, 0, W)]),
    ("tensor", "matrix", &[(0, 0, R), (1, 0, W)]),
    ("tensor", "raw_mma", &[(0, 0, R), (1, 0, W)]),
    ("tensor", "copies", &[(0, 0, R), (1, 0, W)]),
    ("hopper", "cluster", &[(0, 0, W)]),
    ("hopper", "bulk", &[(0, 0, R), (1, 0, W)]),
    // What a texture or surface shows belongs to its handle, which is no pointer.
    ("textures", "sample", &[(2, 0, W)]),
    // A structure by value: the pointers inside it, not the length between them.
    ("pointers", "view", &[(0, 0, W), (0, 16, R)]),
    ("pointers", "choose", &[(0, 0, W), (1, 0, W), (2, 0, R)]),
    ("pointers", "through_calls", &[(0, 0, W), (1, 0, R)]),
    ("pointers", "picked", &[(0, 0, W), (1, 0, W), (2, 0, R)]),
    // Writes through a pointer that was in memory: it may be either of these.
    ("pointers", "chase", &[(0, 0, ANY), (1, 0, W)]),
    ("pointers", "remember", &[(1, 0, R)]),
    ("pointers", "use_remembered", &[(0, 0, ANY)]),
    ("pointers", "walk", &[(0, 0, R), (1, 0, W)]),
    ("pointers", "local_pointers", &[(0, 0, W), (1, 0, W)]),
    ("pointers", "unused", &[(2, 0, W)]),
    // Compiled for debugging, every variable lives in local memory and every helper is called.
    ("pointers-debug", "view", &[(0, 0, W), (0, 16, R)]),
    ("pointers-debug", "choose", &[(0, 0, W), (1, 0, W), (2, 0, R)]),
    ("pointers-debug", "through_calls", &[(0, 0, W), (1, 0, R)]),
    ("pointers-debug", "picked", &[(0, 0, W), (1, 0, W), (2, 0, R)]),
    ("pointers-debug", "walk", &[(0, 0, R), (1, 0, W)]),
    ("pointers-debug", "chase", &[(0, 0, ANY), (1, 0, W)]),
    // Newer compilers mark pointers and choose between addresses of parameters.
    ("pointers-sm_120", "view", &[(0, 0, W), (0, 16, R)]),
    ("pointers-sm_120", "choose", &[(0, 0, W), (1, 0, W), (2, 0, R)]),
    ("pointers-sm_120", "picked", &[(0, 0, W), (1, 0, W), (2, 0, R)]),
    ("pointers-sm_120", "remember", &[(0, 0, NO), (1, 0, R)]),
    ("pointers-sm_120", "unused", &[(0, 0, NO), (2, 0, W)]),
];

#[test]
fn compiled_kernels_do_what_their_source_says() {
    for (file, kernel, expected) in TRUTH {
        let module = load(file);
        let effects = module.effects(find(&module, kernel)).unwrap();
        let found: Vec<_> = effects
            .pointers
            .iter()
            .filter(|used| used.is_pointer)
            .map(|used| (used.parameter, used.offset, used.effect.access()))
            .collect();
        assert_eq!(&found, expected, "{kernel} of {file}.ptx; doubts: {:?}", effects.doubts);
    }
}

#[test]
fn elements_have_the_types_they_are_accessed_with() {
    use ScalarType::{B64, F32, F64, U8, U32, U64};
    let types = |file: &str, kernel: &str, parameter: usize| {
        let module = load(file);
        let effects = module.effects(find(&module, kernel)).unwrap();
        effects.pointer(parameter, 0).unwrap().elements.map(|set| set.iter().collect::<Vec<_>>())
    };
    assert_eq!(types("elementwise", "saxpy", 1), Some(vec![F32]));
    assert_eq!(types("elementwise", "saxpy", 2), Some(vec![F32]));
    assert_eq!(types("elementwise", "vectors", 1), Some(vec![F32]), "four at once");
    assert_eq!(types("elementwise", "vectors", 2), Some(vec![F64]));
    assert_eq!(types("elementwise", "_Z8unrolledIhLi5EEvPKT_PS0_", 1), Some(vec![U8]));
    assert_eq!(types("atomics", "integers", 0).unwrap()[0].size_bytes(), 4);
    assert_eq!(types("atomics", "integers", 2), Some(vec![B64, U64]));
    assert_eq!(types("shared", "histogram", 1), Some(vec![U32]));
    assert_eq!(types("pointers-sm_120", "unused", 0), Some(vec![]), "nothing is accessed there");
    assert_eq!(types("pointers", "chase", 1), None, "another access may reach it");
    assert_eq!(types("tensor", "copies", 0), None, "an asynchronous copy has no type");
}

#[test]
fn doubts_name_the_instruction() {
    let module = load("pointers");
    let effects = module.effects(find(&module, "chase")).unwrap();
    let [doubt] = &effects.doubts[..] else { panic!("{:?}", effects.doubts) };
    assert_eq!((&*doubt.function, doubt.position.line), ("chase", 262));
    assert_eq!(doubt.reason, "an address loaded from memory or put together from data");
    assert!(module.effects(find(&module, "view")).unwrap().doubts.is_empty());
}

#[test]
fn texels_belong_to_the_handle_they_are_accessed_through() {
    let module = load("textures");
    let effects = module.effects(find(&module, "sample")).unwrap();
    let of = |parameter| effects.pointer(parameter, 0).map(|used| (used.is_pointer, used.effect.access()));
    assert_eq!(of(0), Some((false, R)), "the texture");
    assert_eq!(of(1), Some((false, RW)), "the surface");
    assert_eq!(effects.doubts, []);
}

#[test]
fn a_handle_out_of_memory_may_be_any() {
    let text = "
        .version 9.0
        .target sm_90
        .address_size 64
        .global .surfref named;
        .visible .entry bindless(.param .u64 handles, .param .u64 out) {
            .reg .b32 %r<2>;
            .reg .b64 %rd<4>;
            ld.param.u64 %rd1, [handles];
            ld.param.u64 %rd2, [out];
            ld.global.u64 %rd3, [%rd1];
            mov.u32 %r1, 0;
            sust.b.1d.b32.trap [%rd3, {%r1}], {%r1};
            st.global.u32 [%rd2], %r1;
            ret;
        }
        .visible .entry by_name(.param .u64 out) {
            .reg .b32 %r<3>;
            .reg .b64 %rd<2>;
            ld.param.u64 %rd1, [out];
            mov.u32 %r1, 0;
            suld.b.1d.b32.trap {%r2}, [named, {%r1}];
            st.global.u32 [%rd1], %r2;
            ret;
        }";
    let module = PtxModule::parse(text).unwrap();
    let bindless = module.effects(find(&module, "bindless")).unwrap();
    assert_eq!(bindless.pointer(0, 0).unwrap().effect.access(), ANY);
    let [doubt] = &bindless.doubts[..] else { panic!("{:?}", bindless.doubts) };
    assert_eq!(doubt.reason, "a texture or surface whose handle does not come from a parameter");
    let by_name = module.effects(find(&module, "by_name")).unwrap();
    assert_eq!(by_name.pointer(0, 0).unwrap().effect.access(), W);
    assert_eq!(by_name.doubts, []);
}

#[test]
fn only_entries_with_code_have_effects() {
    let module = load("pointers");
    assert!(module.effects(find(&module, "_Z8store_atPfif")).is_none());
    assert!(module.effects(PtxFunctionId(9999)).is_none());
}

fn load(file: &str) -> PtxModule {
    let path = format!("{}/tests/data/{file}.ptx", env!("CARGO_MANIFEST_DIR"));
    PtxModule::parse(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn find(module: &PtxModule, name: &str) -> PtxFunctionId {
    module.find_function(name).unwrap_or_else(|| panic!("no function {name}"))
}

/// What a kernel with three pointers does with each, by its body.
fn effects_of(body: &str) -> Vec<PointerAccess> {
    let text = format!(
        ".version 8.0\n.target sm_80\n.address_size 64
        .visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n) {{
            .reg .pred %p<4>; .reg .b32 %r<4>, %n; .reg .b64 %p64<4>;
            ld.param.u32 %n, [n]; setp.eq.u32 %p1, %n, 0; mov.u32 %r1, 1;
            {body}
            ret;
        }}"
    );
    let module = PtxModule::parse(&text).unwrap();
    let effects = module.effects(find(&module, "k")).unwrap();
    effects.pointers.iter().map(|pointer| pointer.effect.access()).collect()
}

#[test]
fn a_register_may_hold_one_pointer_after_the_other() {
    let body = "ld.param.u64 %p640, [a]; ld.global.u32 %r1, [%p640];
                ld.param.u64 %p640, [b]; st.global.u32 [%p640], %r1;";
    assert_eq!(effects_of(body), [R, W, NO]);
    let both_paths =
        "ld.param.u64 %p640, [a]; @%p1 bra L; ld.param.u64 %p640, [b]; L: st.global.u32 [%p640], %r1;
                      ld.param.u64 %p640, [c]; ld.global.u32 %r1, [%p640];";
    assert_eq!(effects_of(both_paths), [W, W, R]);
    let guarded = "ld.param.u64 %p640, [a]; @%p1 ld.param.u64 %p640, [b]; st.global.u32 [%p640], %r1;
                   ld.param.u64 %p640, [c]; ld.global.u32 %r1, [%p640];";
    assert_eq!(effects_of(guarded), [W, W, R], "a guarded assignment may not happen");
    let in_a_loop = "ld.param.u64 %p640, [a]; AGAIN: ld.global.u32 %r2, [%p640];
                     ld.param.u64 %p640, [b]; st.global.u32 [%p640], %r1; @%p1 bra AGAIN;
                     ld.param.u64 %p640, [c]; st.global.u32 [%p640], %r1;";
    assert_eq!(effects_of(in_a_loop), [RW, RW, W], "what meets at one use stays together");
    let table = "ld.param.u64 %p640, [a]; T: .branchtargets A, B; brx.idx %n, T;
                 A: ld.param.u64 %p640, [b]; B: st.global.u32 [%p640], %r1;
                 ld.param.u64 %p640, [c]; ld.global.u32 %r1, [%p640];";
    assert_eq!(effects_of(table), [W, W, R]);
}

#[test]
fn a_pointer_beside_a_structure_of_thousands_of_words_is_told_apart_from_it() {
    let text = "
        .version 9.0
        .target sm_90
        .address_size 64
        .visible .entry sum(.param .align 4 .b8 big[30000], .param .u64 out, .param .u64 unused) {
            .reg .b32 %r<3>;
            .reg .b64 %rd<3>;
            ld.param.u32 %r1, [big+4];
            ld.param.u32 %r2, [big+29996];
            add.u32 %r1, %r1, %r2;
            ld.param.u64 %rd1, [out];
            cvta.to.global.u64 %rd2, %rd1;
            st.global.u32 [%rd2], %r1;
            ret;
        }";
    let module = PtxModule::parse(text).unwrap();
    let effects = module.effects(find(&module, "sum")).unwrap();
    let pointers: Vec<_> = effects
        .pointers
        .iter()
        .filter(|word| word.is_pointer)
        .map(|word| (word.parameter, word.offset))
        .collect();
    assert_eq!(pointers, [(1, 0)]);
    let access = |parameter| effects.pointer(parameter, 0).unwrap().effect.access();
    assert_eq!((access(1), access(2)), (W, NO));
}
