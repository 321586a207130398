//! Effects of code written to mislead: a pointer must never get away unseen.
//!
//! Each body runs in a kernel with the pointers `a`, `b` and `c`, the number `m` of 64 bits and `n` of 32 bits, loaded
//! into registers of those names; `%ga`, `%gb` and `%gc` are the pointers converted to global addresses.

use kiln_ptx::{EffectAnswer, Effects, PointerAccess, PtxModule};

const HEAD: &str = "
    .version 9.0
    .target sm_90
    .address_size 64
    .extern .func outside(.param .b64 x);
    .extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 v);
    .global .align 8 .b8 cells[64];
    .global .align 1 .b8 text_format[3] = {37, 115, 0};
    .global .align 1 .b8 number_format[3] = {37, 100, 0};
    .shared .align 8 .b8 tile[64];
    .func (.param .b64 out) same(.param .b64 in) {
        .reg .b64 %x;
        ld.param.u64 %x, [in];
        st.param.b64 [out], %x;
        ret;
    }
    .func swap(.param .b64 first, .param .b64 second, .param .b32 depth) {
        .reg .pred %p;
        .reg .b32 %d;
        .reg .b64 %x, %y;
        ld.param.u64 %x, [first];
        ld.param.u64 %y, [second];
        ld.param.u32 %d, [depth];
        setp.eq.s32 %p, %d, 0;
        @%p bra DONE;
        sub.s32 %d, %d, 1;
        {
            .param .b64 p0;
            .param .b64 p1;
            .param .b32 p2;
            st.param.b64 [p0], %y;
            st.param.b64 [p1], %x;
            st.param.b32 [p2], %d;
            call swap, (p0, p1, p2);
        }
        ret;
    DONE:
        st.u32 [%x], %d;
        ret;
    }
    .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 m, .param .u32 n,
             .param .align 8 .b8 all[32]) {
        .local .align 8 .b8 frame[64];
        .reg .pred %p<4>;
        .reg .b16 %h<4>;
        .reg .b32 %n, %r<10>;
        .reg .b64 %a, %b, %c, %m, %ga, %gb, %gc, %rd<20>;
        ld.param.u64 %a, [a];
        ld.param.u64 %b, [b];
        ld.param.u64 %c, [c];
        ld.param.u64 %m, [m];
        ld.param.u32 %n, [n];
        cvta.to.global.u64 %ga, %a;
        cvta.to.global.u64 %gb, %b;
        cvta.to.global.u64 %gc, %c;
        setp.eq.u32 %p1, %n, 7;
";

fn effects(body: &str) -> Effects {
    effects_of(&format!("{HEAD}\n{body}\nret; }}"))
}

fn effects_of(text: &str) -> Effects {
    let module = PtxModule::parse(text).unwrap_or_else(|e| panic!("{e} in\n{text}"));
    module.effects(module.find_function("k").unwrap()).unwrap()
}

/// What the body does with `a`, `b` and `c`.
fn accesses(body: &str) -> [PointerAccess; 3] {
    let effects = effects(body);
    [0, 1, 2].map(|i| effects.pointer(i, 0).unwrap().effect.access())
}

/// Asserts that the analysis admits a write through `b`, which is what the body does.
fn must_admit_write_of_b(body: &str) {
    let effect = effects(body).pointer(1, 0).unwrap().effect;
    assert!(effect.writes.is_possible(), "said {effect:?} of b for\n{body}");
}

use PointerAccess::{Neither, Reads, Unknown, Writes};

#[test]
fn a_pointer_hidden_in_a_difference_is_found() {
    must_admit_write_of_b("sub.s64 %rd1, %b, %a; add.s64 %rd2, %ga, %rd1; st.global.u8 [%rd2], 1;");
    must_admit_write_of_b(
        "neg.s64 %rd1, %a; add.s64 %rd1, %rd1, %b; add.s64 %rd2, %ga, %rd1; st.global.u8 [%rd2], 1;",
    );
    must_admit_write_of_b(
        "not.b64 %rd1, %a; add.s64 %rd1, %rd1, %b; add.s64 %rd2, %ga, %rd1; st.global.u8 [%rd2+1], 1;",
    );
    must_admit_write_of_b("mad.lo.s64 %rd1, %a, -1, %b; add.s64 %rd2, %rd1, %ga; st.global.u8 [%rd2], 1;");
    must_admit_write_of_b("sub.s64 %rd1, %gb, %ga; add.s64 %rd2, %a, %rd1; st.global.u8 [%rd2], 1;");
    must_admit_write_of_b("sub.s64 %rd1, %b, %m; add.s64 %rd2, %rd1, %m; st.global.u8 [%rd2], 1;");
}

#[test]
fn a_pointer_that_is_shifted_up_and_down_is_found() {
    // Not far enough down: two halves of data are a pointer again.
    must_admit_write_of_b(
        "ld.global.u32 %r1, [%ga]; cvt.u64.u32 %rd1, %r1; shl.b64 %rd2, %rd1, 32; shr.u64 %rd3, %rd2, 16;
         add.s64 %rd4, %rd3, %m; st.global.u8 [%rd4], 1;",
    );
    // What is added has low bits too.
    must_admit_write_of_b(
        "shl.b64 %rd1, %m, 32; add.s64 %rd2, %rd1, %b; shr.u64 %rd3, %rd2, 32; shl.b64 %rd4, %rd3, 32;
         cvt.u32.u64 %r1, %b; cvt.u64.u32 %rd5, %r1; add.s64 %rd6, %rd4, %rd5; st.global.u8 [%rd6], 1;",
    );
    // The upper half, put back.
    must_admit_write_of_b(
        "shr.u64 %rd1, %b, 32; shl.b64 %rd2, %rd1, 32; shl.b64 %rd3, %b, 32; shr.u64 %rd4, %rd3, 32;
         or.b64 %rd5, %rd2, %rd4; st.global.u8 [%rd5], 1;",
    );
    // One of two that may be shifted, of which the other is no upper half.
    must_admit_write_of_b(
        "shl.b64 %rd1, %m, 32; @%p1 mov.u64 %rd1, %b; shr.u64 %rd2, %rd1, 32; shl.b64 %rd3, %rd2, 32;
         cvt.u32.u64 %r1, %b; cvt.u64.u32 %rd5, %r1; add.s64 %rd6, %rd3, %rd5; st.global.u8 [%rd6], 1;",
    );
}

#[test]
fn reserved_shared_memory_is_no_memory_of_a_parameter() {
    let body = "ld.global.u8 %h1, [%ga]; mov.u32 %r1, %reserved_smem_offset_1; cvt.u64.u32 %rd1, %r1;
        cvta.shared.u64 %rd2, %rd1; add.s64 %rd3, %rd2, 12; red.and.release.cta.b32 [%rd3], %n; st.global.u8 [%gb], 1;";
    assert_eq!(accesses(body), [Reads, Writes, Neither]);
}

#[test]
fn a_pointer_hidden_by_logic_is_found() {
    must_admit_write_of_b("xor.b64 %rd1, %a, %b; xor.b64 %rd2, %rd1, %a; st.global.u8 [%rd2], 1;");
    must_admit_write_of_b(
        "lop3.b32 %r1, %n, 1, 2, 0x96; not.b64 %rd1, %b; not.b64 %rd2, %rd1; st.global.u8 [%rd2], 1;",
    );
    must_admit_write_of_b("shr.u64 %rd1, %b, 4; shl.b64 %rd2, %rd1, 4; st.global.u8 [%rd2], 1;");
    must_admit_write_of_b("and.b64 %rd1, %b, -16; or.b64 %rd2, %rd1, 4; st.global.u8 [%rd2], 1;");
    must_admit_write_of_b("brev.b64 %rd1, %b; brev.b64 %rd2, %rd1; st.global.u8 [%rd2], 1;");
}

#[test]
fn a_pointer_taken_apart_and_put_together_is_found() {
    let pieces = "mov.b64 {%r1, %r2}, %b;";
    assert_eq!(
        accesses(&format!("{pieces} mov.b64 %rd1, {{%r1, %r2}}; st.global.u8 [%rd1], 1;")),
        [Neither, Writes, Neither]
    );
    must_admit_write_of_b(&format!(
        "{pieces} add.cc.u32 %r3, %r1, 4; addc.u32 %r4, %r2, 0; mov.b64 %rd1, {{%r3, %r4}}; st.global.u8 [%rd1], 1;"
    ));
    must_admit_write_of_b(&format!(
        "{pieces} shfl.sync.idx.b32 %r3|%p2, %r1, 0, 31, -1; shfl.sync.idx.b32 %r4|%p2, %r2, 0, 31, -1;
         mov.b64 %rd1, {{%r3, %r4}}; st.global.u8 [%rd1], 1;"
    ));
    must_admit_write_of_b(&format!(
        "{pieces} cvt.u64.u32 %rd1, %r1; cvt.u64.u32 %rd2, %r2; shl.b64 %rd2, %rd2, 32; or.b64 %rd3, %rd1, %rd2;
         st.global.u8 [%rd3], 1;"
    ));
    must_admit_write_of_b(&format!(
        "{pieces} cvt.u64.u32 %rd1, %r1; cvt.u64.u32 %rd2, %r2; bfi.b64 %rd3, %rd2, %rd1, 32, 32; st.global.u8 [%rd3], 1;"
    ));
    must_admit_write_of_b(
        "ld.param.u32 %r1, [b]; ld.param.u32 %r2, [b+4]; mov.b64 %rd1, {%r1, %r2}; st.global.u8 [%rd1], 1;",
    );
}

#[test]
fn pointers_out_of_memory_may_be_anything() {
    let all = [Unknown, Unknown, Unknown];
    let stores = [
        "ld.global.u64 %rd1, [%ga]; st.global.u8 [%rd1], 1;",
        "ld.global.u64 %rd1, [%ga]; add.s64 %rd2, %rd1, %m; st.u8 [%rd2], 1;",
        "ld.global.u64 %rd1, [%ga]; add.s64 %rd2, %m, %rd1; st.u8 [%rd2], 1;",
        "ld.global.u64 %rd1, [%ga]; cvta.to.global.u64 %rd1, %rd1; st.global.u8 [%rd1], 1;",
        "ld.global.v2.u32 {%r1, %r2}, [%ga]; mov.b64 %rd1, {%r1, %r2}; add.s64 %rd2, %rd1, %m; st.u8 [%rd2], 1;",
        "ld.global.u64 %rd1, [cells]; st.global.u8 [%rd1], 1;",
        "ld.const.u64 %rd1, [%ga]; st.global.u8 [%rd1], 1;",
        "atom.global.exch.b64 %rd1, [%ga], 0; st.global.u8 [%rd1], 1;",
        "ld.global.u32 %r1, [%ga]; ld.global.u32 %r2, [%ga+4]; cvt.u64.u32 %rd1, %r1; cvt.u64.u32 %rd2, %r2;
         shl.b64 %rd2, %rd2, 32; add.s64 %rd3, %rd1, %rd2; add.s64 %rd3, %rd3, %m; st.u8 [%rd3], 1;",
        "ld.global.u8 %h1, [%ga]; cvt.u64.u16 %rd1, %h1; shl.b64 %rd2, %rd1, 8; or.b64 %rd3, %rd2, %rd1;
         shl.b64 %rd3, %rd3, 8; or.b64 %rd3, %rd3, %rd1; st.u8 [%rd3], 1;",
        // A difference with a loaded pointer, added to another loaded pointer.
        "ld.global.u64 %rd1, [%ga]; ld.global.u64 %rd2, [%ga+8]; sub.s64 %rd3, %ga, %rd1; add.s64 %rd4, %rd2, %rd3;
         st.global.u8 [%rd4], 1;",
        "ld.global.u64 %rd1, [%ga]; neg.s64 %rd1, %rd1; add.s64 %rd3, %ga, %rd1; ld.global.u64 %rd2, [%ga+8];
         cvta.to.global.u64 %rd2, %rd2; add.s64 %rd4, %rd3, %rd2; st.global.u8 [%rd4], 1;",
    ];
    for body in stores {
        let found = effects(body);
        for i in 1..3 {
            let writes = found.pointer(i, 0).unwrap().effect.writes;
            assert_eq!(writes, EffectAnswer::Unknown, "parameter {i} for\n{body}");
        }
        assert!(!found.doubts.is_empty());
    }
    assert_eq!(
        accesses("st.global.u8 [%rd9], 1; st.global.u8 [%ga], 1; ld.global.u32 %r1, [%rd9];")[1..],
        all[1..]
    );
    assert_eq!(accesses("st.global.u8 [4096], 1;")[0], Unknown);
    assert_eq!(accesses("mad.lo.s64 %rd9, %rd9, 1, 4; st.global.u8 [%rd9], 1;")[1], Unknown);
}

#[test]
fn reading_through_unknown_pointers_does_not_doubt_writes() {
    let found = effects("ld.global.u64 %rd1, [%ga]; ld.global.u32 %r1, [%rd1]; st.global.u32 [%gb], %r1;");
    let effect = |i| found.pointer(i, 0).unwrap().effect;
    assert_eq!((effect(0).reads, effect(0).writes), (EffectAnswer::Yes, EffectAnswer::No));
    assert_eq!((effect(1).reads, effect(1).writes), (EffectAnswer::Unknown, EffectAnswer::Yes));
    assert_eq!((effect(2).reads, effect(2).writes), (EffectAnswer::Unknown, EffectAnswer::No));
}

#[test]
fn indices_are_not_taken_for_pointers() {
    let precise = [
        // Loaded indices of 32 and 64 bits, scaled.
        "ld.global.u32 %r1, [%ga]; mad.wide.u32 %rd1, %r1, 4, %gb; st.global.u32 [%rd1], 1;",
        "ld.global.u32 %r1, [%ga]; mul.wide.s32 %rd2, %r1, 4; add.s64 %rd1, %b, %rd2; st.u32 [%rd1], 1;",
        "ld.global.u64 %rd1, [%ga]; shl.b64 %rd2, %rd1, 3; add.s64 %rd3, %gb, %rd2; st.global.u32 [%rd3], 1;",
        // A loaded index added to a pointer that is one for certain.
        "ld.global.u64 %rd1, [%ga]; add.s64 %rd3, %gb, %rd1; st.global.u8 [%rd3], 1;",
        "ld.global.u64 %rd1, [%ga]; mad.wide.u32 %rd2, %n, 4, %gb; add.s64 %rd3, %rd2, %rd1; st.global.u8 [%rd3], 1;",
        // A hash of loaded keys.
        "ld.global.u64 %rd1, [%ga]; xor.b64 %rd2, %rd1, 1234567; mul.lo.s64 %rd3, %rd2, 31; rem.u64 %rd4, %rd3, 1024;
         shl.b64 %rd5, %rd4, 3; add.s64 %rd6, %gb, %rd5; st.global.u8 [%rd6], 1;",
        // An index of 32 bits that the compiler extends by shifts, with one added in between.
        "ld.global.u32 %r1, [%ga]; cvt.u64.u32 %rd1, %r1; shl.b64 %rd2, %rd1, 32; add.s64 %rd3, %rd2, 4294967296;
         shr.s64 %rd4, %rd3, 30; add.s64 %rd5, %gb, %rd4; st.global.u32 [%rd5], 1;",
        // A number of 64 bits among the parameters.
        "ld.global.u8 %h1, [%a]; mul.lo.s64 %rd1, %m, 8; add.s64 %rd2, %b, %rd1; st.u8 [%rd2], 1;",
        "ld.global.u8 %h1, [%a]; add.s64 %rd2, %gb, %m; st.global.u8 [%rd2], 1;",
        // Through shared and local memory, and back.
        "ld.global.u8 %h1, [%a]; st.shared.u64 [tile+8], %b; ld.shared.u64 %rd1, [tile+8]; st.u8 [%rd1], 1;",
        "ld.global.u8 %h1, [%a]; st.local.u64 [frame+8], %b; st.local.u32 [frame+16], %n; ld.local.u64 %rd1, [frame+8];
         st.u8 [%rd1], 1;",
        // A loop.
        "mov.u64 %rd1, %gb; LOOP: ld.global.u8 %h1, [%ga]; st.global.u8 [%rd1], %h1; add.s64 %rd1, %rd1, 1;
         add.s64 %ga, %ga, 1; @%p1 bra LOOP;",
    ];
    for body in precise {
        assert_eq!(accesses(body), [Reads, Writes, Neither], "for\n{body}");
    }
}

#[test]
fn choices_count_for_every_choice() {
    let both = [Writes, Writes, Neither];
    assert_eq!(accesses("selp.b64 %rd1, %a, %b, %p1; st.u8 [%rd1], 1;"), both);
    assert_eq!(accesses("min.u64 %rd1, %a, %b; st.u8 [%rd1], 1;"), both);
    assert_eq!(accesses("mov.u64 %rd1, %a; @%p1 mov.u64 %rd1, %b; st.u8 [%rd1], 1;"), both);
    assert_eq!(
        accesses("mov.u64 %rd1, a; @%p1 mov.u64 %rd1, b; ld.param.u64 %rd2, [%rd1]; st.u8 [%rd2], 1;"),
        both
    );
    let array =
        "mul.wide.u32 %rd1, %n, 8; mov.u64 %rd2, all; add.s64 %rd2, %rd2, %rd1; ld.param.u64 %rd3, [%rd2];
                 st.u8 [%rd3], 1;";
    let found = effects(array);
    for offset in [0, 8, 16, 24] {
        let pointer = found.pointer(5, offset).unwrap();
        assert!(pointer.is_pointer && pointer.effect.access() == Writes, "{pointer:?}");
    }
    assert_eq!(found.pointer(0, 0).unwrap().effect.access(), Neither);
}

#[test]
fn a_choice_between_a_pointer_and_a_number_that_came_of_one_counts_for_both() {
    // Shifted back, the number is the pointer again.
    let number = "shr.u64 %rd0, %b, 3; shl.b64 %rd1, %rd0, 3;";
    for choice in [
        "max.u64 %rd2, %rd1, %c;",
        "min.u64 %rd2, %c, %rd1;",
        "selp.b64 %rd2, %rd1, %c, %p0;",
        "mov.u64 %rd2, %c; @%p0 mov.u64 %rd2, %rd1;",
        "@%p0 mov.u64 %rd2, %rd1; @!%p0 mov.u64 %rd2, %c;",
    ] {
        must_admit_write_of_b(&format!("{number} setp.ne.u32 %p0, %n, 0; {choice} st.u32 [%rd2], %n;"));
    }
    // Put together from halves that were loaded, it may be any pointer.
    let halves = "ld.global.u32 %r0, [%ga]; ld.global.u32 %r1, [%ga+4]; mul.wide.u32 %rd0, %r1, 65536;
        shl.b64 %rd0, %rd0, 16; cvt.u64.u32 %rd1, %r0; add.s64 %rd1, %rd0, %rd1;";
    must_admit_write_of_b(&format!("{halves} max.u64 %rd2, %rd1, %c; st.u32 [%rd2], %n;"));
}

#[test]
fn an_escaped_local_variable_can_be_written_from_anywhere() {
    must_admit_write_of_b(
        "mov.u64 %rd1, frame; cvta.local.u64 %rd2, %rd1; st.global.u64 [%ga], %rd2; ld.global.u64 %rd3, [%ga];
         st.u64 [%rd3], %b; ld.local.u64 %rd4, [frame]; st.u8 [%rd4], 1;",
    );
    must_admit_write_of_b(
        "mov.u64 %rd1, tile; cvta.shared.u64 %rd2, %rd1; st.global.u64 [%ga], %rd2; ld.global.u64 %rd3, [%ga];
         st.u64 [%rd3], %b; ld.shared.u64 %rd4, [tile]; st.u8 [%rd4], 1;",
    );
    must_admit_write_of_b("st.local.u64 [frame+4], %b; ld.local.u64 %rd4, [frame+4]; st.u8 [%rd4], 1;");
    must_admit_write_of_b(
        "st.local.u64 [frame+8], %b; ld.local.u32 %r1, [frame+8]; ld.local.u32 %r2, [frame+12];
         mov.b64 %rd1, {%r1, %r2}; st.u8 [%rd1], 1;",
    );
}

#[test]
fn calls_are_followed_into_code_and_feared_beyond_it() {
    let call_same = |register: &str, result: &str| {
        format!(
            "{{ .param .b64 p0; .param .b64 r0; st.param.b64 [p0], {register}; call (r0), same, (p0);
             ld.param.u64 {result}, [r0]; }}"
        )
    };
    let body = format!(
        "{} {} ld.u32 %r1, [%rd1]; st.u32 [%rd2], %r1;",
        call_same("%a", "%rd1"),
        call_same("%b", "%rd2")
    );
    assert_eq!(accesses(&body), [Reads, Writes, Neither]);

    let swap =
        "{ .param .b64 p0; .param .b64 p1; .param .b32 p2; st.param.b64 [p0], %a; st.param.b64 [p1], %b;
                st.param.b32 [p2], %n; call swap, (p0, p1, p2); }";
    assert_eq!(accesses(swap), [Writes, Writes, Neither]);

    let outside = "{ .param .b64 p0; st.param.b64 [p0], %m; call outside, (p0); }";
    assert_eq!(accesses(outside), [Unknown, Unknown, Unknown]);

    let indirect = "mov.u64 %rd1, same; { .param .b64 p0; .param .b64 r0; st.param.b64 [p0], %m;
                    f: .callprototype (.param .b64 _) _ (.param .b64 _); call (r0), %rd1, (p0), f; }";
    assert_eq!(accesses(indirect), [Unknown, Unknown, Unknown]);
}

#[test]
fn printing_a_text_reads_it() {
    let print = |format: &str, value: &str| {
        format!(
            "st.local.u64 [frame], {value}; mov.u64 %rd1, {format}; cvta.global.u64 %rd1, %rd1; mov.u64 %rd2, frame;
             cvta.local.u64 %rd2, %rd2; {{ .param .b64 p0; .param .b64 p1; .param .b32 r0; st.param.b64 [p0], %rd1;
             st.param.b64 [p1], %rd2; call (r0), vprintf, (p0, p1); }}"
        )
    };
    assert_eq!(accesses(&print("text_format", "%b")), [Neither, Reads, Neither]);
    assert_eq!(accesses(&print("number_format", "%b")), [Neither, Neither, Neither]);
}

#[test]
fn every_kind_of_access_counts() {
    assert_eq!(accesses("red.global.add.u32 [%gb], 1;")[1], PointerAccess::Both);
    assert_eq!(accesses("atom.global.add.u32 %r1, [%gb], 1;")[1], PointerAccess::Both);
    assert_eq!(accesses("ld.global.nc.v4.u32 {_, %r1, _, %r2}, [%gb];")[1], Reads);
    assert_eq!(accesses("prefetch.global.L2 [%gb];"), [Neither, Neither, Neither]);
    assert_eq!(accesses("discard.global.L2 [%gb], 128;")[1], Writes);
    assert_eq!(accesses("cp.async.ca.shared.global [tile], [%gb], 4;")[1], Reads);
    assert_eq!(accesses("cp.async.bulk.global.shared::cta.bulk_group [%gb], [tile], 16;")[1], Writes);
    assert_eq!(
        accesses("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%gb], [tile], 16;")[1],
        PointerAccess::Both
    );
    assert_eq!(accesses("tensormap.replace.tile.rank.global.b1024.b32 [%gb], 3;")[1], PointerAccess::Both);
    assert_eq!(
        accesses("cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%gb, {%r1}], [tile];")[0],
        Unknown
    );
}

#[test]
fn an_instruction_of_a_newer_version_may_do_anything() {
    let text = format!("{HEAD}\nfrobnicate.u32 %r1, [%gb];\nret; }}").replace(".version 9.0", ".version 9.9");
    let effects = effects_of(&text);
    for parameter in 0..3 {
        assert_eq!(effects.pointer(parameter, 0).unwrap().effect.access(), Unknown);
    }
}

#[test]
fn addresses_of_32_bits_are_not_judged() {
    let text = ".version 9.0 .target sm_50 .address_size 32 .entry k(.param .u64 p) { ret; }";
    let module = PtxModule::parse(text).unwrap();
    let effects = module.effects(module.find_function("k").unwrap()).unwrap();
    assert_eq!(effects.pointers[0].effect.access(), Unknown);
    assert_eq!(effects.doubts[0].reason, "addresses of 32 bits");
}
