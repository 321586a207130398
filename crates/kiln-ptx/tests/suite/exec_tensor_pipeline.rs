//! A transposition that tensor copies feed: two stages, parities, and stores in groups, as compilers emit it.

use crate::tensor_kernel::{Numbers, options};
use kiln_ptx::exec::{
    ExecOutcome, ExecProgram, LaunchShape, SimpleMemory, TensorElement, TensorMap, TensorSwizzle,
};
use kiln_ptx::{PointerAccess, PtxModule};

const COLUMNS: u64 = 100;
const ROWS: u64 = 70;
/// Elements of a tile in each dimension: a row of it is as long as the swizzle.
const TILE: u32 = 32;

/// Blocks take tiles in turn. While a tile is transposed the next one is loaded; the tile that was stored before is read until `wait_group.read`.
const TRANSPOSE: &str = "
.version 8.6
.target sm_90a
.address_size 64

.visible .entry transpose(.param .align 64 .b8 transpose_param_0[128], .param .align 64 .b8 transpose_param_1[128], .param .u32 transpose_param_2, .param .u32 transpose_param_3)
.maxntid 128, 1, 1
{
	.reg .pred %p<12>;
	.reg .b32 %r<64>;
	.reg .f32 %f<4>;
	.reg .b64 %rd<16>;
	.shared .align 1024 .b8 stages[8192];
	.shared .align 1024 .b8 staging[4096];
	.shared .align 8 .b8 full[16];

	mov.b64 %rd1, transpose_param_0;
	cvta.param.u64 %rd2, %rd1;
	mov.b64 %rd3, transpose_param_1;
	cvta.param.u64 %rd4, %rd3;
	ld.param.u32 %r1, [transpose_param_2];
	ld.param.u32 %r2, [transpose_param_3];
	mov.u32 %r3, %tid.x;
	mov.u32 %r4, %ctaid.x;
	mov.u32 %r5, %nctaid.x;
	mov.u32 %r6, stages;
	mov.u32 %r7, staging;
	mov.u32 %r8, full;
	setp.ne.s32 %p1, %r3, 0;
	@%p1 bra $started;
	prefetch.tensormap [%rd2];
	prefetch.tensormap [%rd4];
	mbarrier.init.shared::cta.b64 [%r8], 1;
	mbarrier.init.shared::cta.b64 [%r8+8], 1;
	fence.mbarrier_init.release.cluster;
	fence.proxy.async.shared::cta;
	setp.ge.u32 %p2, %r4, %r2;
	@%p2 bra $started;
	rem.u32 %r9, %r4, %r1;
	div.u32 %r10, %r4, %r1;
	shl.b32 %r9, %r9, 5;
	shl.b32 %r10, %r10, 5;
	mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r8], 4096;
	cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r6], [%rd2, {%r9, %r10}], [%r8];
$started:
	bar.sync 0;
	mov.u32 %r11, %r4;
	mov.u32 %r12, 0;
$tile:
	setp.ge.u32 %p3, %r11, %r2;
	@%p3 bra $end;
	and.b32 %r13, %r12, 1;
	shr.u32 %r14, %r12, 1;
	and.b32 %r14, %r14, 1;
	add.u32 %r15, %r11, %r5;
	// The next tile goes to the other stage, which all threads have left.
	setp.ge.u32 %p4, %r15, %r2;
	or.pred %p4, %p4, %p1;
	@%p4 bra $issued;
	xor.b32 %r16, %r13, 1;
	shl.b32 %r17, %r16, 12;
	add.u32 %r17, %r6, %r17;
	shl.b32 %r18, %r16, 3;
	add.u32 %r18, %r8, %r18;
	rem.u32 %r19, %r15, %r1;
	div.u32 %r20, %r15, %r1;
	shl.b32 %r19, %r19, 5;
	shl.b32 %r20, %r20, 5;
	mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r18], 4096;
	cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%r17], [%rd2, {%r19, %r20}], [%r18], %rd9;
$issued:
	shl.b32 %r21, %r13, 3;
	add.u32 %r21, %r8, %r21;
$wait:
	mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r21], %r14;
	@!%p5 bra $wait;
	// The staging buffer is free when the last store has read it.
	@!%p1 cp.async.bulk.wait_group.read 0;
	bar.sync 0;
	shl.b32 %r22, %r13, 12;
	add.u32 %r22, %r6, %r22;
	mov.u32 %r23, %r3;
$element:
	shr.u32 %r24, %r23, 5;
	and.b32 %r25, %r23, 31;
	shr.u32 %r26, %r25, 2;
	and.b32 %r27, %r24, 7;
	xor.b32 %r26, %r26, %r27;
	shl.b32 %r26, %r26, 4;
	and.b32 %r28, %r25, 3;
	shl.b32 %r28, %r28, 2;
	shl.b32 %r29, %r24, 7;
	add.u32 %r29, %r29, %r26;
	add.u32 %r29, %r29, %r28;
	add.u32 %r29, %r22, %r29;
	ld.shared.f32 %f1, [%r29]; // read
	shr.u32 %r30, %r24, 2;
	and.b32 %r31, %r25, 7;
	xor.b32 %r30, %r30, %r31;
	shl.b32 %r30, %r30, 4;
	and.b32 %r32, %r24, 3;
	shl.b32 %r32, %r32, 2;
	shl.b32 %r33, %r25, 7;
	add.u32 %r33, %r33, %r30;
	add.u32 %r33, %r33, %r32;
	add.u32 %r33, %r7, %r33;
	st.shared.f32 [%r33], %f1; // write
	add.u32 %r23, %r23, 128;
	setp.lt.u32 %p6, %r23, 1024;
	@%p6 bra $element;
	fence.proxy.async.shared::cta;
	bar.sync 0;
	@%p1 bra $stored;
	rem.u32 %r34, %r11, %r1;
	div.u32 %r35, %r11, %r1;
	shl.b32 %r34, %r34, 5;
	shl.b32 %r35, %r35, 5;
	cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd4, {%r35, %r34}], [%r7]; // store
	cp.async.bulk.commit_group;
$stored:
	mov.u32 %r11, %r15;
	add.u32 %r12, %r12, 1;
	bra.uni $tile;
$end:
	@!%p1 cp.async.bulk.wait_group 0;
	ret;
}
";

/// Transposes a matrix with a kernel: the result, and what was found.
fn transpose(text: &str, blocks: u32, seed: u64) -> (Vec<u8>, Vec<u8>, ExecOutcome) {
    let program = ExecProgram::new(PtxModule::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}")));
    let (row, column) = ((COLUMNS * 4).next_multiple_of(16), (ROWS * 4).next_multiple_of(16));
    let content = Numbers(3).bytes((row * ROWS) as usize);
    let mut memory = SimpleMemory::new();
    let (from, to) = (memory.allocate_with(&content), memory.allocate(column * COLUMNS));
    let map = |address: u64, dims: [u64; 2], stride: u64| {
        let map = TensorMap::tiled(address, TensorElement::F32, &dims, &[TILE, TILE]).with_strides(&[stride]);
        map.with_swizzle(TensorSwizzle::B128).encode().unwrap()
    };
    let mut arguments = map(from, [COLUMNS, ROWS], row).to_vec();
    arguments.extend(map(to, [ROWS, COLUMNS], column));
    let (across, down) = (COLUMNS.div_ceil(TILE.into()), ROWS.div_ceil(TILE.into()));
    arguments.extend((across as u32).to_le_bytes());
    arguments.extend(((across * down) as u32).to_le_bytes());
    let entry = program.entry("transpose").unwrap();
    let outcome =
        entry.launch(&LaunchShape::linear(blocks, 128), &arguments, &[], &memory, &options(seed)).unwrap();
    let mut expected = vec![0; (column * COLUMNS) as usize];
    for y in 0..ROWS {
        for x in 0..COLUMNS {
            let (source, target) = ((y * row + x * 4) as usize, (x * column + y * 4) as usize);
            expected[target..target + 4].copy_from_slice(&content[source..source + 4]);
        }
    }
    (memory.read(to, column * COLUMNS).unwrap(), expected, outcome)
}

#[test]
fn a_pipeline_of_two_stages_transposes() {
    for (blocks, seed) in [(1, 0), (2, 1), (3, 2), (20, 3)] {
        let (found, expected, outcome) = transpose(TRANSPOSE, blocks, seed);
        assert!(outcome.is_clean(), "{blocks} blocks, seed {seed}: {:#?}", outcome.findings);
        assert_eq!(found, expected, "{blocks} blocks, seed {seed}");
    }
}

/// A mistake in the pipeline is told at a line, for some seed.
fn told(old: &str, new: &str, words: &str, mark: &str) {
    assert!(TRANSPOSE.contains(old), "{old}");
    let text = TRANSPOSE.replacen(old, new, 1);
    let line = 1 + text.lines().position(|line| line.contains(mark)).unwrap();
    let place = format!("PTX line {line}");
    let mut all = Vec::new();
    for seed in 0..4 {
        let (_, _, outcome) = transpose(&text, 1, seed);
        all.extend(outcome.findings.iter().map(ToString::to_string));
    }
    let is_told = all.iter().any(|text| text.contains(words) && text.contains(&place));
    assert!(is_told, "`{words}` at line {line} is not in {all:#?}");
}

#[test]
fn mistakes_in_the_pipeline_are_told() {
    told("\t@!%p1 cp.async.bulk.wait_group.read 0;\n", "", "pending copy", "// write");
    let wait = "\tmbarrier.try_wait.parity.shared::cta.b64 %p5, [%r21], %r14;\n\t@!%p5 bra $wait;\n";
    told(wait, "", "pending copy", "// read");
    told("[%r21], %r14;", "[%r21], 0;", "no thread is left", "[%r21], 0;");
    told(
        "\tfence.proxy.async.shared::cta;\n\tbar.sync 0;\n\t@%p1 bra $stored;",
        "\t@%p1 bra $stored;",
        "race",
        "// store",
    );
}

#[test]
fn the_pipeline_is_read_printed_and_analysed() {
    let module = PtxModule::parse(TRANSPOSE).unwrap();
    assert_eq!(PtxModule::parse(&module.to_string()).unwrap(), module);
    // The word of a map that points at its tensor is followed.
    let effects = module.effects(module.find_function("transpose").unwrap()).unwrap();
    let access = |parameter: usize| effects.pointer(parameter, 0).map(|pointer| pointer.effect.access());
    assert_eq!((access(0), access(1)), (Some(PointerAccess::Reads), Some(PointerAccess::Writes)));
    assert!(effects.doubts.is_empty(), "{:?}", effects.doubts);
    // A parameter that is named is followed as well; a map behind a pointer shows any memory.
    let named = TRANSPOSE.replace("[%rd4, {%r35", "[transpose_param_1, {%r35");
    let module = PtxModule::parse(&named).unwrap();
    let effects = module.effects(module.find_function("transpose").unwrap()).unwrap();
    assert_eq!(effects.pointer(1, 0).unwrap().effect.access(), PointerAccess::Writes);
    assert!(ExecProgram::new(module).entry("transpose").unwrap().unsupported().is_empty());
}
