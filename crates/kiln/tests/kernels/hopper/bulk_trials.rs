//! Bulk copies between global and shared memory, reductions in global memory, and registers that warps give away.

use kiln_kernels::{MatrixSpread, Random, matrix_number};

use super::reduction::reduced;
use super::tensor_trials::is_odd;
use super::trial::{Oracle, Trial};

/// Bytes that are copied.
const BYTES: usize = 512;

/// One block of 64 threads with an object behind `%bar`, shared memory behind `%data`, input and output behind `%in` and `%out`, and 8 bytes of each thread behind `%own`,
/// `%given` and `%mine`.
fn kernel(body: &str) -> String {
    format!(
        ".version 8.3\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{{\n.reg .b32 %r<16>;\n.reg .b32 %t, %bar, %data, %own, %tries;\n\
         .reg .b64 %in, %out, %given, %mine, %o;\n.reg .b64 %s<4>;\n.reg .pred %p<4>;\n.reg .pred %first;\n.shared .align 8 .b8 object[8];\n.shared .align 16 .b8 data[{BYTES}];\nld.param.u64 %in, [in];\n\
         ld.param.u64 %out, [out];\nmov.u32 %t, %tid.x;\nmov.u32 %bar, object;\nmov.u32 %data, data;\nmad.lo.u32 %own, %t, 8, %data;\nmul.wide.u32 %o, %t, 8;\nadd.u64 %mine, %out, %o;\n\
         add.u64 %given, %in, %o;\nsetp.eq.u32 %first, %t, 0;\n@%first mbarrier.init.shared::cta.b64 [%bar], 1;\n@%first fence.mbarrier_init.release.cluster;\n\
         fence.proxy.async.shared::cta;\nbar.sync 0;\n{body}\nret;\n}}\n"
    )
}

const WAIT: &str = "mov.u32 %tries, 0;\nwait:\nmbarrier.try_wait.parity.shared::cta.b64 %p0, [%bar], 0, 1000;\n@%p0 bra came;\nadd.u32 %tries, %tries, 1;\n\
                    setp.lt.u32 %p1, %tries, 20000;\n@%p1 bra wait;\ntrap;\ncame:\n";
const READ: &str = "ld.shared.b64 %s0, [%own];\nst.global.b64 [%mine], %s0;\n";
const WRITE: &str =
    "ld.global.b64 %s0, [%given];\nst.shared.b64 [%own], %s0;\nfence.proxy.async.shared::cta;\nbar.sync 0;\n";
const END: &str = "@%first cp.async.bulk.commit_group;\n@%first cp.async.bulk.wait_group 0;\n";

fn trial(
    name: &str,
    body: &str,
    input: Vec<u8>,
    output: Vec<u8>,
    expected: Option<Vec<u8>>,
    unit: usize,
) -> Trial {
    Trial {
        name: name.to_owned(),
        text: kernel(body),
        blocks: 1,
        threads: 64,
        cluster: 1,
        tensor: None,
        input,
        output,
        unit,
        oracle: expected.map_or(Oracle::Any, Oracle::Bytes),
    }
}

fn bytes(count: usize, random: &mut Random) -> Vec<u8> {
    (0..count).map(|_| random.next() as u8).collect()
}

/// Copies in both directions, of several sizes.
fn copies() -> Vec<Trial> {
    let random = &mut Random::new(3);
    let mut trials = Vec::new();
    for (first, size) in [(0, 512), (0, 16), (48, 256), (496, 16), (16, 496)] {
        let (input, output) = (bytes(BYTES, random), bytes(BYTES, random));
        let mut expected = input.clone();
        // The rest of shared memory was copied by threads, backwards.
        let reversed: Vec<u8> = input.chunks(8).rev().flatten().copied().collect();
        expected[..first].copy_from_slice(&reversed[..first]);
        expected[first + size..].copy_from_slice(&reversed[first + size..]);
        let name = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes";
        let fill = "sub.u64 %s1, %in, %o;\nld.global.b64 %s0, [%s1+504];\nst.shared.b64 [%own], %s0;\nfence.proxy.async.shared::cta;\nbar.sync 0;\n";
        let body = format!(
            "{fill}@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], {size};\n@%first {name} [%data+{first}], [%in+{first}], {size}, [%bar];\n{WAIT}{READ}"
        );
        let label = format!("{name} of {size} bytes at {first}");
        trials.push(trial(&label, &body, input.clone(), output.clone(), Some(expected), 8));
        let mut expected = output.clone();
        expected[first..first + size].copy_from_slice(&input[first..first + size]);
        let name = "cp.async.bulk.global.shared::cta.bulk_group";
        let body = format!("{WRITE}@%first {name} [%out+{first}], [%data+{first}], {size};\n{END}");
        trials.push(trial(
            &format!("{name} of {size} bytes at {first}"),
            &body,
            input,
            output,
            Some(expected),
            8,
        ));
    }
    trials
}

/// Two phases of one object, and bytes that two copies complete.
fn phases() -> Trial {
    let random = &mut Random::new(9);
    let (input, output) = (bytes(BYTES, random), bytes(BYTES, random));
    let copy = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes";
    let body = format!(
        "@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 512;\n@%first {copy} [%data], [%in+256], 256, [%bar];\n@%first {copy} [%data+256], [%in], 256, [%bar];\n{WAIT}\
         ld.shared.b64 %s0, [%own];\nbar.sync 0;\n@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 512;\n@%first {copy} [%data], [%in], 512, [%bar];\n{}\
         ld.shared.b64 %s1, [%own];\nxor.b64 %s0, %s0, %s1;\nst.global.b64 [%mine], %s0;\n",
        WAIT.replace("[%bar], 0", "[%bar], 1")
            .replace("wait", "again")
            .replace("try_again", "try_wait")
            .replace("came", "there")
    );
    let expected = (0..BYTES).map(|at| input[at] ^ input[(at + 256) % BYTES]).collect();
    trial("two phases of two copies", &body, input, output, Some(expected), 8)
}

fn size(ty: &str) -> usize {
    match ty {
        "f16" | "bf16" => 2,
        "u64" | "s64" | "b64" | "f64" => 8,
        _ => 4,
    }
}

/// Reductions of global memory.
fn reductions() -> Vec<Trial> {
    let list: [(&str, &[&str]); 10] = [
        ("u32", &["add", "min", "max", "inc", "dec"]),
        ("s32", &["add", "min", "max"]),
        ("u64", &["add", "min", "max"]),
        ("s64", &["min", "max"]),
        ("b32", &["and", "or", "xor"]),
        ("b64", &["and", "or", "xor"]),
        ("f16", &["add", "min", "max"]),
        ("bf16", &["add", "min", "max"]),
        ("f32", &["add"]),
        ("f64", &["add"]),
    ];
    let random = &mut Random::new(29);
    let mut trials = Vec::new();
    for (ty, operation) in
        list.into_iter().flat_map(|(ty, all)| all.iter().map(move |operation| (ty, *operation)))
    {
        let is_float = matches!(ty, "f16" | "bf16" | "f32" | "f64");
        for spread in MatrixSpread::ALL {
            let unit = size(ty);
            let mut numbers = || -> Vec<u8> {
                let one = |random: &mut Random| match is_float {
                    true => matrix_number(ty, spread, random),
                    false => random.next(),
                };
                (0..BYTES / unit).flat_map(|_| one(random).to_le_bytes()[..unit].to_vec()).collect()
            };
            let (input, output) = (numbers(), numbers());
            let pairs = output.chunks(unit).zip(input.chunks(unit));
            let expected = pairs.flat_map(|(old, new)| reduced(operation, ty, old, new).unwrap()).collect();
            let noftz = if operation == "add" && unit == 2 { ".noftz" } else { "" };
            let name = format!("cp.reduce.async.bulk.global.shared::cta.bulk_group.{operation}{noftz}.{ty}");
            let body = format!("{WRITE}@%first {name} [%out], [%data], {BYTES};\n{END}");
            let is_odd = is_float && is_odd(spread);
            let label = if is_float { format!("{name} {spread:?}") } else { name };
            trials.push(trial(&label, &body, input, output, (!is_odd).then_some(expected), unit));
            if !is_float {
                break;
            }
        }
    }
    trials
}

/// A warpgroup gives registers away and takes them back.
fn registers() -> Trial {
    let random = &mut Random::new(41);
    let input = bytes(1024, random);
    let body = "setmaxnreg.dec.sync.aligned.u32 40;\nld.global.b64 %s0, [%given];\nadd.u64 %s0, %s0, 1;\nsetmaxnreg.inc.sync.aligned.u32 64;\nst.global.b64 [%mine], %s0;\n";
    let words = input.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()).wrapping_add(1));
    let expected = words.flat_map(u64::to_le_bytes).collect();
    let mut trial = trial("setmaxnreg", body, input, vec![0; 1024], Some(expected), 8);
    trial.text =
        trial.text.replace(".param .u64 out)\n{", ".param .u64 out)\n.maxntid 128, 1, 1\n.maxnreg 64\n{");
    trial.threads = 128;
    trial
}

pub(crate) fn trials() -> Vec<Trial> {
    let mut all = copies();
    all.push(phases());
    all.extend(reductions());
    all.push(registers());
    all
}
