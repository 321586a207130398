//! Kernels with tensor copies: one block, or a cluster, that loads a box to shared memory or stores one from there.

/// A kernel with a tensor map behind `%map`, `bytes` of shared memory behind `%data`, an object behind `%bar` that expects one arrival, and input and output behind `%in` and
/// `%out`.
pub(crate) fn kernel(bytes: usize, body: &str) -> String {
    format!(
        ".version 8.3\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .align 64 .b8 map[128], .param .u64 in, .param .u64 out)\n{{\n\
         .reg .b32 %r<32>;\n.reg .b32 %c<5>;\n.reg .b32 %t, %n, %bar, %data, %tries;\n.reg .b16 %h<4>;\n.reg .b64 %a<8>;\n.reg .b64 %map, %out, %in;\n.reg .pred %p<8>;\n.reg .pred %first;\n\
         .shared .align 8 .b8 object[16];\n.shared .align 1024 .b8 data[{bytes}];\nmov.b64 %a0, map;\ncvta.param.u64 %map, %a0;\nld.param.u64 %out, [out];\n\
         ld.param.u64 %in, [in];\nmov.u32 %t, %tid.x;\nmov.u32 %n, %ntid.x;\nmov.u32 %bar, object;\nmov.u32 %data, data;\nsetp.eq.u32 %first, %t, 0;\n\
         @%first mbarrier.init.shared::cta.b64 [%bar], 1;\n@%first fence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;\nbar.sync 0;\n{body}\nret;\n}}\n"
    )
}

/// All threads wait for the first phase of the object; a copy that does not come is a fault and not a hang.
pub(crate) const WAIT: &str = "mov.u32 %tries, 0;\nwait:\nmbarrier.try_wait.parity.shared::cta.b64 %p0, [%bar], 0, 1000;\n@%p0 bra came;\nadd.u32 %tries, %tries, 1;\n\
                               setp.lt.u32 %p1, %tries, 20000;\n@%p1 bra wait;\ntrap;\ncame:\n";

/// Code that puts coordinates into registers, and their list.
fn coordinates(values: &[i32]) -> (String, String) {
    let code = values.iter().enumerate().map(|(at, value)| format!("mov.b32 %c{at}, {value};\n")).collect();
    let list: Vec<String> = (0..values.len()).map(|at| format!("%c{at}")).collect();
    (code, format!("{{{}}}", list.join(", ")))
}

/// The first thread loads a box and announces its bytes; all wait for them. `mode` is `tile` or `im2col`, which has offsets.
pub(crate) fn load(mode: &str, at: &[i32], offsets: &[i32], bytes: usize) -> String {
    let rank = at.len();
    let (code, list) = coordinates(at);
    let shifts: String =
        offsets.iter().enumerate().map(|(at, offset)| format!("mov.u16 %h{at}, {offset};\n")).collect();
    let names: Vec<String> = (0..offsets.len()).map(|at| format!("%h{at}")).collect();
    let offsets = if names.is_empty() { String::new() } else { format!(", {{{}}}", names.join(", ")) };
    format!(
        "{code}{shifts}@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], {bytes};\n@%first \
         cp.async.bulk.tensor.{rank}d.shared::cluster.global.{mode}.mbarrier::complete_tx::bytes [%data], [%map, {list}], [%bar]{offsets};\n{WAIT}"
    )
}

/// All threads copy shared memory to `%out`.
pub(crate) fn copy_out(bytes: usize) -> String {
    format!(
        "mov.u32 %r0, %t;\nnext:\nsetp.ge.u32 %p1, %r0, {};\n@%p1 bra done;\nshl.b32 %r1, %r0, 2;\nadd.u32 %r2, %data, %r1;\nld.shared.u32 %r3, [%r2];\n\
         mul.wide.u32 %a1, %r0, 4;\nadd.u64 %a2, %out, %a1;\nst.global.u32 [%a2], %r3;\nadd.u32 %r0, %r0, %n;\nbra next;\ndone:\n",
        bytes / 4
    )
}

/// All threads copy `%in` to shared memory and meet.
pub(crate) fn copy_in(bytes: usize) -> String {
    format!(
        "mov.u32 %r0, %t;\nfill:\nsetp.ge.u32 %p1, %r0, {};\n@%p1 bra filled;\nshl.b32 %r1, %r0, 2;\nadd.u32 %r2, %data, %r1;\nmul.wide.u32 %a1, %r0, 4;\n\
         add.u64 %a2, %in, %a1;\nld.global.u32 %r3, [%a2];\nst.shared.u32 [%r2], %r3;\nadd.u32 %r0, %r0, %n;\nbra fill;\nfilled:\nfence.proxy.async.shared::cta;\nbar.sync 0;\n",
        bytes / 4
    )
}

/// The first thread stores the box and waits for that.
pub(crate) fn store(name: &str, at: &[i32]) -> String {
    let (code, list) = coordinates(at);
    format!(
        "{code}@%first {name} [%map, {list}], [%data];\n@%first cp.async.bulk.commit_group;\n@%first cp.async.bulk.wait_group 0;\n"
    )
}
