//! `wgmma` in wrong programs: each has its finding, with the lines.

use kiln_ptx::PtxModule;
use kiln_ptx::exec::{Checks, ExecProgram, LaunchShape, Options, SimpleMemory};

/// A product of 64 by 16 and 16 by 8 halves. Parts of it are replaced to make it wrong.
const PROGRAM: &str = "
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p)
{
	.reg .b64 %p, %o, %x<4>;
	.reg .b32 %t, %y, %z, %a<4>;
	.reg .f32 %d<4>, %e<4>, %f;
	.reg .pred %q, %warp, %one;
	.shared .align 1024 .b8 a[2048];
	.shared .align 1024 .b8 b[256];
	ld.param.u64 %p, [p];
	mov.u32 %t, %tid.x;
	setp.ge.u32 %warp, %t, 96;
	setp.eq.u32 %one, %t, 5;
	shl.b32 %y, %t, 4;
	mov.u32 %z, a;
	add.u32 %y, %y, %z;
	st.shared.v4.b32 [%y], {%t, %t, %t, %t};
	shl.b32 %y, %t, 1;
	mov.u32 %z, b;
	add.u32 %y, %y, %z;
	st.shared.b16 [%y], 0x3c00;
	// before the barrier
	fence.proxy.async;
	bar.sync 0;
	mov.u32 %z, a;
	shr.u32 %z, %z, 4;
	cvt.u64.u32 %x0, %z;
	or.b64 %x0, %x0, 0x800400000;
	mov.u32 %z, b;
	shr.u32 %z, %z, 4;
	cvt.u64.u32 %x1, %z;
	or.b64 %x1, %x1, 0x800080000;
	mov.u32 %a0, 0;
	mov.u32 %a1, 0;
	mov.u32 %a2, 0;
	mov.u32 %a3, 0;
	mov.f32 %d0, 0f00000000;
	mov.f32 %d1, 0f00000000;
	mov.f32 %d2, 0f00000000;
	mov.f32 %d3, 0f00000000;
	// before the fence
	wgmma.fence.sync.aligned;
	// before the product
	wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0, %d1, %d2, %d3}, %x0, %x1, 1, 1, 1, 0, 0; // first
	// behind the product
	wgmma.commit_group.sync.aligned;
	// pending
	wgmma.wait_group.sync.aligned 0;
	mul.wide.u32 %o, %t, 16;
	add.u64 %p, %p, %o;
	st.global.v4.f32 [%p], {%d0, %d1, %d2, %d3};
	ret;
}
";

const A_IN_REGISTERS: &str = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0, %d1, %d2, %d3}, {%a0, %a1, %a2, %a3}, %x1, 1, 1, 1, 0; // first";

fn first() -> &'static str {
    PROGRAM.lines().find(|line| line.ends_with("// first")).unwrap().trim()
}

fn findings(text: &str, threads: u32, seed: u64) -> Vec<String> {
    let program = ExecProgram::new(PtxModule::parse(text).unwrap());
    let mut memory = SimpleMemory::new();
    let at = memory.allocate_with(&vec![0; 4096]);
    let options = Options { seed, checks: Checks::ALL, ..Options::default() };
    let shape = LaunchShape::linear(1, threads);
    let outcome =
        program.entry("k").unwrap().launch(&shape, &at.to_le_bytes(), &[], &memory, &options).unwrap();
    outcome.findings.iter().map(ToString::to_string).collect()
}

/// The program with lines replaced.
fn changed(changes: &[(&str, &str)]) -> String {
    changes.iter().fold(PROGRAM.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    })
}

/// The number of the line with a mark.
fn place(text: &str, mark: &str) -> String {
    format!("PTX line {}", 1 + text.lines().position(|line| line.contains(mark)).unwrap())
}

/// A finding has the words, the line with `// here`, and the line with `other`.
fn told_by(threads: u32, changes: &[(&str, &str)], words: &str, other: &str) {
    let text = changed(changes);
    let places = [place(&text, "// here"), place(&text, other)];
    for seed in 0..8 {
        let found = findings(&text, threads, seed);
        let is_told =
            |text: &String| text.contains(words) && places.iter().all(|place| text.contains(place.as_str()));
        assert!(
            found.iter().any(is_told),
            "seed {seed}: `{words}` at {places:?} is not in {found:#?}\n{text}"
        );
    }
}

fn told(changes: &[(&str, &str)], words: &str, other: &str) {
    told_by(128, changes, words, other);
}

#[test]
fn a_right_program_has_no_finding() {
    for seed in 0..4 {
        assert_eq!(findings(PROGRAM, 128, seed), [""; 0], "seed {seed}");
    }
    let registers = changed(&[(first(), A_IN_REGISTERS)]);
    assert_eq!(findings(&registers, 128, 0), [""; 0]);
    // Products are done by four warps together: what one has waited for no other one still reads.
    let store = "wgmma.wait_group.sync.aligned 0;\n@%one st.shared.b32 [b+16], %t;";
    let at_once = changed(&[("wgmma.wait_group.sync.aligned 0;", store)]);
    for seed in 0..8 {
        assert_eq!(findings(&at_once, 128, seed), [""; 0], "seed {seed}");
    }
    let chain = changed(&[("// behind the product", first())]);
    assert_eq!(findings(&chain, 128, 1), [""; 0], "products of one shape add in order");
}

#[test]
fn registers_are_not_used_before_the_wait() {
    let pending = "// pending";
    told(&[(pending, "add.f32 %f, %d1, %d1; // here")], "is read that the product at", "// first");
    told(&[(pending, "mov.f32 %d2, 0f3f800000; // here")], "is written that the product at", "// first");
    let write = "mov.u32 %a1, 7; // here";
    told(&[(first(), A_IN_REGISTERS), (pending, write)], "is written that the product at", "// first");
    let read = changed(&[(first(), A_IN_REGISTERS), (pending, "add.u32 %y, %a1, 1;")]);
    assert_eq!(findings(&read, 128, 0), [""; 0], "registers of A may be read");
    told(
        &[
            ("wgmma.commit_group.sync.aligned;", ""),
            ("st.global.v4.f32 [%p], {%d0, %d1, %d2, %d3};", "st.global.f32 [%p], %d0; // here"),
        ],
        "is read that the product at",
        "// first",
    );
}

#[test]
fn a_wait_leaves_the_last_groups_pending() {
    let second =
        first().replace("%d", "%e").replace(", 1, 1, 1, 0, 0; // first", ", 0, 1, 1, 0, 0; // second");
    let two = |use_: &str| {
        let lines =
            format!("{second}\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;\n{use_}");
        changed(&[("// pending", &lines)])
    };
    assert_eq!(findings(&two("add.f32 %f, %d1, %d1;"), 128, 0), [""; 0]);
    let wrong = two("add.f32 %f, %e1, %e1; // here");
    let found = findings(&wrong, 128, 0).join("\n");
    assert!(found.contains("is read") && found.contains(&place(&wrong, "// second")), "{found}");
}

#[test]
fn a_fence_comes_between_registers_and_products() {
    let fence = "wgmma.fence.sync.aligned;";
    let marked = first().replace("// first", "// first // here");
    told(&[(fence, ""), (first(), &marked)], "no `wgmma.fence` comes before this product", "// first");
    let write = "mov.f32 %d3, 0f3f800000; // write";
    told(&[("// before the product", write), (first(), &marked)], "with no `wgmma.fence` since", "// write");
    let other =
        "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%d0, %d1, %d2, %d3}, %x0, %x1, 1, 1, 1; // here";
    told(&[("// behind the product", other)], "which has another shape", "// first");
}

#[test]
fn shared_memory_is_not_written_before_the_wait() {
    let store = "bar.sync 0;\n@%one st.shared.b32 [b+16], %t; // here";
    told(&[("// pending", store)], "still reads", "// first");
    let store = "@%one st.shared.b32 [a+1024], %t; // here";
    told(&[("// pending", store)], "", "// here");
    // Threads of another warpgroup, which take no part in the product.
    let by_others = |store: &str| {
        changed(&[
            ("\tshl.b32 %y, %t, 4;", "\tsetp.ge.u32 %q, %t, 128;\n\t@%q bra other;\n\tshl.b32 %y, %t, 4;"),
            ("bar.sync 0;", "bar.sync 1, 128;"),
            ("// pending", if store == "before" { "bar.arrive 2, 160;" } else { "" }),
            (
                "wgmma.wait_group.sync.aligned 0;",
                if store == "before" {
                    "wgmma.wait_group.sync.aligned 0;"
                } else {
                    "wgmma.wait_group.sync.aligned 0;\nbar.arrive 2, 160;"
                },
            ),
            (
                "\tret;\n}",
                "\tret;\nother:\n\tbar.sync 2, 160;\n\tsetp.eq.u32 %one, %t, 130;\n\t@%one st.shared.b32 [b+16], %t; // here\n\tret;\n}",
            ),
        ])
    };
    let (wrong, right) = (by_others("before"), by_others("after"));
    for seed in 0..12 {
        let found = findings(&wrong, 160, seed).join("\n");
        assert!(found.contains(&place(&wrong, "// here")), "seed {seed}: {found}\n{wrong}");
        assert!(found.contains(&place(&wrong, "// first")), "seed {seed}: {found}");
        assert_eq!(findings(&right, 160, seed), [""; 0], "seed {seed}");
    }
    let after = "wgmma.wait_group.sync.aligned 0;\nbar.sync 0;\n@%one st.shared.b32 [b+16], %t;";
    assert_eq!(findings(&changed(&[("wgmma.wait_group.sync.aligned 0;", after)]), 128, 2), [""; 0]);
    let marked = first().replace("// first", "// first // here");
    told(&[("bar.sync 0;", ""), (first(), &marked)], "race", "// here");
}

#[test]
fn copies_that_are_not_done_are_not_multiplied() {
    let copy = "@%one cp.async.ca.shared.global [b+64], [%p], 16; // copy";
    let marked = first().replace("// first", "// first // here");
    told(
        &[("// before the barrier", copy), ("0x3c00;", "0x3c00;\nbar.sync 0;"), (first(), &marked)],
        "pending copy",
        "// copy",
    );
}

#[test]
fn matrices_lie_inside_of_shared_memory_and_descriptors_are_whole() {
    let marked = first().replace("// first", "// first // here");
    let change = |line: &str| format!("{line}\n// before the fence");
    let beyond = change("add.u64 %x1, %x1, 0x1000;");
    told(&[("// before the fence", &beyond), (first(), &marked)], "out of bounds", "// here");
    let reserved = change("or.b64 %x1, %x1, 0x4000;");
    told(&[("// before the fence", &reserved), (first(), &marked)], "B: the matrix descriptor", "// here");
    let base = change("or.b64 %x0, %x0, 0x2000000000000;");
    told(
        &[("// before the fence", &base), (first(), &marked)],
        "the base offset 1 and no swizzle",
        "// here",
    );
    let lane = change("@%one add.u64 %x1, %x1, 1;");
    told(
        &[("// before the fence", &lane), (first(), &marked)],
        "give different matrix descriptors",
        "// here",
    );
    let warp = change("@%warp add.u64 %x1, %x1, 0x100000000;");
    told(
        &[("// before the fence", &warp), (first(), &marked)],
        "warps of the warpgroup give different",
        "// here",
    );
}

#[test]
fn all_warps_of_a_warpgroup_take_part() {
    let marked = first().replace("// first", "// first // here");
    let skip = format!("@!%warp {marked}");
    let text = changed(&[(first(), &skip)]);
    let found = findings(&text, 128, 0).join("\n");
    assert!(found.contains("all 128 threads") && found.contains("PTX line"), "{found}");
    let lanes = format!("@!%one {marked}");
    let found = findings(&changed(&[(first(), &lanes)]), 128, 0).join("\n");
    assert!(found.contains("only the lanes 0xffffffdf of the warp"), "{found}");
    told_by(
        96,
        &[("wgmma.fence.sync.aligned;", "wgmma.fence.sync.aligned; // here")],
        "the block has 96 threads of this warpgroup",
        "// here",
    );
    let last = changed(&[("\tret;\n}", "\t@%warp ret;\n\twgmma.fence.sync.aligned; // here\n\tret;\n}")]);
    let found = findings(&last, 128, 0).join("\n");
    assert!(
        found.contains("the warp of thread (96,0,0) does not execute")
            && found.contains(&place(&last, "// here")),
        "{found}"
    );
}

#[test]
fn other_targets_and_forms_are_refused() {
    let old = changed(&[("sm_90a", "sm_90")]);
    let found = findings(&old, 128, 0).join("\n");
    assert!(found.contains("requires PTX 8.0 and sm_90a; the module is PTX 8.0 for sm_90"), "{found}");
    assert!(found.contains(&place(&old, "wgmma.fence")), "{found}");
    for (from, to) in [
        ("m64n8k16", "m64n12k16"),
        (", 1, 1, 1, 0, 0; // first", ", 1, 2, 1, 0, 0; // first"),
        ("%d2, %d3}, %x0", "%d2}, %x0"),
    ] {
        let text = changed(&[(from, to)]);
        let found = findings(&text, 128, 0).join("\n");
        assert!(found.contains("is not executed without a GPU"), "{found}");
        assert!(found.contains(&place(&text, "// first")), "{found}");
    }
}
