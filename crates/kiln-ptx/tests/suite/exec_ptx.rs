//! What compilers rarely emit: hand-written PTX.

use kiln_ptx::PtxModule;
use kiln_ptx::exec::{
    ExecFault, ExecFindingKind, ExecOutcome, ExecProgram, LaunchError, LaunchShape, Options, SimpleMemory,
    WINDOWS_START,
};

const HEADER: &str = ".version 8.0\n.target sm_90\n.address_size 64\n";

/// Runs entry `k(.param .u64 out)` on one block; the words it left in `out`.
pub(crate) fn run(text: &str, threads: u32) -> (Vec<u32>, ExecOutcome) {
    let program = ExecProgram::new(PtxModule::parse(&format!("{HEADER}{text}")).unwrap());
    let mut memory = SimpleMemory::new();
    let globals: Vec<u64> = program.variables().iter().map(|v| memory.allocate(v.bytes)).collect();
    for (at, address) in globals.iter().enumerate() {
        assert!(memory.write(*address, &program.contents(at, &globals)));
    }
    let out = memory.allocate(1024);
    let entry = program.entry("k").unwrap();
    let shape = LaunchShape::linear(1, threads);
    let outcome = entry.launch(&shape, &out.to_le_bytes(), &globals, &memory, &Options::default()).unwrap();
    let bytes = memory.read(out, 1024).unwrap();
    (bytes.chunks(4).map(|c| u32::from_le_bytes(c.try_into().unwrap())).collect(), outcome)
}

/// The same for code that must run clean; `%r0` goes to `out[tid]` at the end.
fn results(before: &str, body: &str, threads: u32) -> Vec<u32> {
    let text = format!(
        "{before}
        .visible .entry k(.param .u64 out) {{
            .reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<16>; .reg .b64 %d<16>; .reg .f32 %f<8>; .reg .b32 %t;
            .reg .b64 %o, %i;
            ld.param.u64 %o, [out];
            mov.u32 %t, %tid.x;
            mul.wide.u32 %i, %t, 4;
            add.s64 %o, %o, %i;
            {body}
            st.global.u32 [%o], %r0;
            ret;
        }}"
    );
    let (words, outcome) = run(&text, threads);
    assert!(outcome.is_clean(), "{:#?}", outcome.findings);
    words[..threads as usize].to_vec()
}

#[test]
fn functions_may_take_and_return_registers() {
    let function = "
        .func (.reg .b32 %q) twist(.reg .b32 %a, .reg .b32 %b) {
            mul.lo.u32 %q, %a, 10;
            add.u32 %q, %q, %b;
            ret;
        }";
    let words = results(function, "call (%r0), twist, (%t, 7);", 5);
    assert_eq!(words, [7, 17, 27, 37, 47]);
}

#[test]
fn a_guarded_call_is_made_by_some_lanes_only() {
    let function = "
        .func (.param .b32 q) odd(.param .b32 a) {
            .reg .b32 %r<2>; .reg .pred %p;
            ld.param.u32 %r0, [a];
            setp.gt.u32 %p, %r0, 5;
            @%p bra big;
            add.u32 %r1, %r0, 100;
            bra done;
        big:
            add.u32 %r1, %r0, 200;
        done:
            st.param.b32 [q], %r1;
            ret;
        }";
    let body = "
        mov.u32 %r0, 1;
        and.b32 %r1, %t, 1;
        setp.eq.u32 %p0, %r1, 1;
        { .param .b32 a; .param .b32 q;
          st.param.b32 [a], %t;
          @%p0 call (q), odd, (a);
          @%p0 ld.param.b32 %r0, [q]; }";
    assert_eq!(results(function, body, 8), [1, 101, 1, 103, 1, 105, 1, 207]);
}

#[test]
fn branch_tables_send_lanes_apart_and_together() {
    let body = "
        mov.u32 %r0, 0;
        brx.idx %t, table;
    table: .branchtargets zero, one, two, one;
    zero:
        add.u32 %r0, %r0, 1000;
        bra done;
    one:
        add.u32 %r0, %r0, 100;
    two:
        add.u32 %r0, %r0, 10;
    done:
        activemask.b32 %r1;
        popc.b32 %r1, %r1;
        add.u32 %r0, %r0, %r1;";
    assert_eq!(results("", body, 4), [1004, 114, 14, 114]);
}

#[test]
fn an_early_exit_does_not_keep_lanes_apart() {
    // Some lanes leave from inside a branch that the others come back from.
    let body = "
        setp.lt.u32 %p0, %t, 16;
        @!%p0 bra meet;
        setp.lt.u32 %p1, %t, 4;
        @%p1 bra leave;
    meet:
        activemask.b32 %r0;
        popc.b32 %r0, %r0;
        bra store;
    leave:
        ret;
    store:";
    let words = results("", body, 32);
    assert_eq!((&words[..4], &words[4..8], words[31]), (&[0; 4][..], &[28; 4][..], 28));
}

#[test]
fn wide_and_vector_registers_hold_their_parts() {
    let body = "
        .reg .b128 %q; .reg .v4 .b32 %v;
        .local .align 16 .b8 room[32];
        mov.b64 %d0, {%t, 7};
        mov.b64 %d1, 0x1122334455667788;
        mov.b128 %q, {%d0, %d1};
        st.local.b128 [room], %q;
        ld.local.v4.b32 %v, [room];
        mov.b128 {%d2, %d3}, %q;
        mov.b64 {%r1, %r2}, %d3;
        add.u32 %r0, %v.x, %v.y;
        add.u32 %r0, %r0, %v.z;
        xor.b32 %r0, %r0, %r2;
        mov.b32 {%h0, %h1}, %v.w;
        cvt.u32.u16 %r3, %h1;
        add.u32 %r0, %r0, %r3;";
    let expected = |t: u32| ((t + 7).wrapping_add(0x5566_7788) ^ 0x1122_3344).wrapping_add(0x1122);
    assert_eq!(results("", body, 3), [expected(0), expected(1), expected(2)]);
}

#[test]
fn the_stack_grows_with_alloca() {
    let body = "
        stacksave.u64 %d5;
        add.u32 %r1, %t, 1;
        mul.wide.u32 %d0, %r1, 8;
        alloca.u64 %d1, %d0, 8;
        cvta.local.u64 %d2, %d1;
        st.u32 [%d2], %t;
        alloca.u64 %d3, 64, 16;
        st.local.u32 [%d3+60], 5;
        ld.local.u32 %r2, [%d1];
        ld.local.u32 %r3, [%d3+60];
        add.u32 %r0, %r2, %r3;
        isspacep.local %p0, %d2;
        isspacep.shared %p1, %d2;
        selp.b32 %r4, 100, 0, %p0;
        add.u32 %r0, %r0, %r4;
        selp.b32 %r4, 1000, 0, %p1;
        add.u32 %r0, %r0, %r4;
        stackrestore.u64 %d5;";
    assert_eq!(results("", body, 3), [105, 106, 107]);
}

#[test]
fn variables_hold_addresses_of_each_other() {
    let before = "
        .global .align 4 .u32 list[3] = {11, 22, 33};
        .global .align 8 .u64 second = list+4;
        .const .align 8 .u64 generic_third = generic(list)+8;
        .global .align 4 .f32 half = 0.5;";
    let body = "
        ld.global.u64 %d0, [second];
        ld.global.u32 %r1, [%d0];
        ld.const.u64 %d1, [generic_third];
        ld.u32 %r2, [%d1];
        ld.global.f32 %f0, [half];
        cvt.rpi.u32.f32 %r3, %f0;
        add.u32 %r0, %r1, %r2;
        add.u32 %r0, %r0, %r3;";
    assert_eq!(results(before, body, 1), [56]);
}

#[test]
fn constants_may_not_be_written() {
    let text = "
        .const .align 4 .u32 fixed = 3;
        .visible .entry k(.param .u64 out) {
            .reg .b64 %d;
            mov.u64 %d, fixed;
            st.global.u32 [%d], 4;
            ret;
        }";
    let (_, outcome) = run(text, 1);
    assert!(matches!(outcome.findings[0].kind, ExecFindingKind::ReadOnly(_)), "{:?}", outcome.findings);
}

#[test]
fn predicates_are_combined_and_chosen_from() {
    let body = "
        setp.lt.u32 %p0|%p1, %t, 3;
        setp.gt.and.u32 %p2, %t, 0, %p0;
        setp.eq.xor.u32 %p3, %t, 1, !%p1;
        xor.pred %p4, %p2, %p3;
        not.pred %p5, %p4;
        mov.pred %p6, %p5;
        selp.u32 %r0, 1, 0, %p2;
        @%p3 add.u32 %r0, %r0, 10;
        @%p6 add.u32 %r0, %r0, 100;
        slct.u32.s32 %r1, 1000, 2000, %r0;
        add.u32 %r0, %r0, %r1;";
    // t < 3, 0 < t < 3, (t == 1) xor (t < 3).
    let expected = |t: u32| {
        let (p2, p3) = (t > 0 && t < 3, (t == 1) != (t < 3));
        1000 + u32::from(p2) + 10 * u32::from(p3) + 100 * u32::from(p2 == p3)
    };
    assert_eq!(results("", body, 5), [0, 1, 2, 3, 4].map(expected));
}

#[test]
fn a_comparison_of_two_halves_has_sixteen_bits_for_each() {
    // Bit 0 of the thread's number makes the lower half 9 instead of 1, bit 1 the upper one; both are compared with 5.
    for (halves, nine, one, five) in [("f16x2", 0x4880, 0x3c00, 0x4500), ("bf16x2", 0x4110, 0x3f80, 0x40a0)] {
        for result in ["u32", "s32"] {
            let body = format!(
                "and.b32 %r1, %t, 1; setp.ne.u32 %p0, %r1, 0; selp.b32 %r2, {nine}, {one}, %p0;
                and.b32 %r1, %t, 2; setp.ne.u32 %p0, %r1, 0; selp.b32 %r3, {nine}, {one}, %p0;
                shl.b32 %r3, %r3, 16; or.b32 %r4, %r2, %r3;
                mov.b32 %r5, {}; set.gt.{result}.{halves} %r0, %r4, %r5;",
                five * 0x10001
            );
            assert_eq!(results("", &body, 4), [0, 0xffff, 0xffff_0000, 0xffff_ffff], "{result}.{halves}");
        }
    }
}

#[test]
fn special_registers_say_where_a_thread_is() {
    let body = "
        mov.u32 %r1, %ntid.x; mov.u32 %r2, %nctaid.x; mov.u32 %r3, %ctaid.y; mov.u32 %r4, %nwarpid;
        mov.u32 %r5, %laneid; mov.u32 %r6, %warpid; mov.u64 %d0, %clock64; mov.u32 %r7, %total_smem_size;
        mov.u32 %r8, %tid.w; mov.u32 %r9, %cluster_nctarank; mov.u32 %r10, %envreg3;
        mad.lo.u32 %r0, %r1, 1000, %r2;
        mad.lo.u32 %r0, %r4, 10, %r0;
        mad.lo.u32 %r0, %r6, 100, %r0;
        add.u32 %r0, %r0, %r5; add.u32 %r0, %r0, %r3; add.u32 %r0, %r0, %r7; add.u32 %r0, %r0, %r8;
        add.u32 %r0, %r0, %r9; add.u32 %r0, %r0, %r10;";
    let words = results("", body, 40);
    assert_eq!((words[0], words[39]), (40_000 + 1 + 20 + 1, 40_000 + 1 + 20 + 1 + 100 + 7));
}

#[test]
fn fences_of_what_is_not_executed_are_not_executed() {
    let listed = |fence: &str| {
        let header = HEADER.replace("8.0", "8.3");
        let text = format!("{header}.visible .entry k() {{\n{fence};\nret; }}");
        let program = ExecProgram::new(PtxModule::parse(&text).unwrap());
        let listed = program.entry("k").unwrap().unsupported();
        listed.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    // The assembler has no such fence.
    let text = format!("{HEADER}.visible .entry k() {{ fence.proxy.texture; ret; }}");
    assert!(PtxModule::parse(&text).is_err());
    for fence in [
        "fence.proxy.tensormap::generic.release.gpu",
        "fence.acq_rel.gpu",
        "fence.sc.cta",
        "membar.gl",
        "fence.mbarrier_init.release.cluster",
        "fence.proxy.async",
        "fence.proxy.alias",
    ] {
        assert!(listed(fence).is_empty(), "{fence}");
    }
}

#[test]
fn what_is_not_executed_names_instruction_and_line() {
    let text = "
        .visible .entry k(.param .u64 out) {
            .reg .b32 %r<8>; .reg .f32 %f<16>; .reg .pred %p; .reg .b64 %d;
            mov.u32 %r0, %tid.x;
            setp.eq.u32 %p, %r0, 3;
            @!%p bra done;
            tcgen05.wait::ld.sync.aligned;
        done:
            ret;
        }";
    let program = ExecProgram::new(PtxModule::parse(&format!("{HEADER}{text}")).unwrap());
    let listed = program.entry("k").unwrap().unsupported();
    let name = "tcgen05.wait::ld.sync.aligned";
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].to_string(), format!("the instruction `{name}` in k at PTX line 10"));

    let (_, reached) = run(text, 32);
    let finding = &reached.findings[0];
    assert!(finding.is_unsupported());
    assert_eq!(
        (finding.site.instruction.as_str(), finding.site.ptx_line, finding.site.thread),
        (name, 10, [3, 0, 0])
    );
    assert!(
        finding.to_string().starts_with(&format!("the instruction `{name}` is not executed without a GPU"))
    );
    assert_eq!(reached.fault, Some(ExecFault::LaunchFailed));
    let (_, not_reached) = run(text, 3);
    assert!(not_reached.is_clean(), "a kernel that does not get there runs");
}

#[test]
fn a_call_of_what_is_only_declared_is_named() {
    let text = "
        .extern .func cudaLaunchDeviceV2(.param .b64 a);
        .visible .entry k(.param .u64 out) {
            { .param .b64 a; st.param.b64 [a], 0; call cudaLaunchDeviceV2, (a); }
            ret;
        }";
    let (_, outcome) = run(text, 1);
    let text = outcome.findings[0].to_string();
    assert!(
        text.contains("a call of `cudaLaunchDeviceV2`, which the module only declares, is not executed"),
        "{text}"
    );
}

#[test]
fn collectives_wait_for_lanes_on_other_paths() {
    let body = "
        setp.lt.u32 %p0, %t, 16;
        @%p0 bra low;
        mul.lo.u32 %r1, %t, 2;
        shfl.sync.idx.b32 %r0, %r1, 0, 31, 0xffffffff;
        bra done;
    low:
        add.u32 %r1, %t, 1000;
        add.u32 %r1, %r1, 0;
        shfl.sync.idx.b32 %r0, %r1, 31, 31, 0xffffffff;
    done:";
    let words = results("", body, 32);
    assert!(words[..16].iter().all(|w| *w == 62) && words[16..].iter().all(|w| *w == 1000), "{words:?}");
}

#[test]
fn one_lane_is_elected() {
    let body = "
        elect.sync %r1|%p0, 0xfffffff0;
        selp.u32 %r0, 1, 0, %p0;
        mad.lo.u32 %r0, %r1, 10, %r0;";
    let text = format!("setp.lt.u32 %p1, %t, 4; mov.u32 %r0, 0; @%p1 bra skip; {body} skip:");
    let words = results("", &text, 32);
    assert_eq!((words[0], words[4], words[5]), (0, 41, 40));
}

#[test]
fn launches_that_do_not_fit_are_refused() {
    let text = format!(
        "{HEADER}
        .visible .entry sized(.param .u64 a, .param .align 8 .b8 b[12]) .reqntid 64, 1, 1 {{ ret; }}
        .visible .entry hungry(.param .u64 a) {{
            .shared .b8 s[40000]; .reg .b64 %d;
            mov.u64 %d, s; st.shared.u8 [%d], 1; ret;
        }}
        .global .u32 here;"
    );
    let program = ExecProgram::new(PtxModule::parse(&text).unwrap());
    let memory = SimpleMemory::new();
    let launch = |name: &str, shape: LaunchShape, bytes: usize, globals: &[u64]| {
        program.entry(name).unwrap().launch(&shape, &vec![0; bytes], globals, &memory, &Options::default())
    };
    let fits = LaunchShape::linear(1, 64);
    assert!(launch("sized", fits, 20, &[0]).unwrap().is_clean());
    assert!(matches!(launch("sized", LaunchShape::linear(1, 32), 20, &[0]), Err(LaunchError::Bounds { .. })));
    assert!(matches!(launch("sized", LaunchShape::linear(0, 64), 20, &[0]), Err(LaunchError::Shape { .. })));
    assert!(matches!(
        launch("sized", LaunchShape::linear(1, 2048), 20, &[0]),
        Err(LaunchError::Shape { .. })
    ));
    let short = launch("sized", fits, 19, &[0]).unwrap_err();
    assert_eq!(short.to_string(), "kernel sized takes 20 bytes of arguments, but 19 were given");
    assert!(matches!(launch("sized", fits, 20, &[]), Err(LaunchError::Variables { .. })));
    let large = LaunchShape { dynamic_shared_bytes: 200_000, ..fits };
    assert!(matches!(launch("hungry", large, 8, &[0]), Err(LaunchError::Shared { .. })));
    assert_eq!(program.entry("hungry").unwrap().shared_bytes(), 40_000);
}

#[test]
fn windows_lie_above_all_global_memory() {
    let body = "
        .shared .align 4 .b8 s[64];
        mov.u64 %d0, s;
        cvta.shared.u64 %d1, %d0;
        shr.u64 %d2, %d1, 32;
        cvt.u32.u64 %r0, %d2;";
    let words = results("", body, 1);
    assert!(u64::from(words[0]) << 32 >= WINDOWS_START);
}
