//! Tensor maps that a kernel changes: `tensormap.replace` in shared memory, a copy of the map to global memory, and loads through it.

use kiln::tensor::{TensorElement, TensorFill, TensorMap, TensorSwizzle};
use kiln_kernels::Random;

use super::tensor_box::TensorBox;
use super::tensor_kernel::{copy_out, kernel, load};
use super::trial::{Oracle, Tensor, Trial};

/// Where the new map lies behind the output, which is what the box is copied to.
const MAP_AT: usize = 1024;

/// The map of the launch goes to shared memory, where the first thread changes it, and from there to `%a6`, behind the output.
fn replace(map: &TensorBox, swizzle: usize) -> String {
    let field = |name: &str, value: &str| {
        let ty = if matches!(name, "global_address" | "global_stride") { "b64" } else { "b32" };
        format!("@%first tensormap.replace.tile.{name}.shared::cta.b1024.{ty} [%r3], {value};\n")
    };
    let mut code = format!(
        "setp.lt.u32 %p2, %t, 16;\nmul.wide.u32 %a1, %t, 8;\nadd.u64 %a2, %map, %a1;\nshl.b32 %r1, %t, 3;\nadd.u32 %r2, %data, %r1;\nadd.u32 %r2, %r2, 1024;\n\
         @%p2 ld.u64 %a3, [%a2];\n@%p2 st.shared.u64 [%r2], %a3;\nbar.sync 0;\nadd.u32 %r3, %data, 1024;\nadd.u64 %a6, %out, {MAP_AT};\n"
    );
    code += &field("global_address", "%in");
    code += &field("rank", &format!("{}", map.dims.len() - 1));
    for (at, size) in map.dims.iter().enumerate() {
        code += &field("global_dim", &format!("{at}, {size}"));
        code += &field("box_dim", &format!("{at}, {}", map.boxes[at]));
        code += &field("element_stride", &format!("{at}, {}", map.steps[at]));
    }
    for (at, stride) in map.strides.iter().enumerate() {
        code += &format!("mov.b64 %a4, {stride};\n");
        code += &field("global_stride", &format!("{at}, %a4"));
    }
    let element = TensorElement::ALL.iter().position(|element| *element == map.element).unwrap();
    for (name, value) in [
        ("elemtype", element),
        ("interleave_layout", 0),
        ("swizzle_mode", swizzle),
        ("fill_mode", usize::from(map.fill == TensorFill::Nan)),
    ] {
        code += &field(name, &value.to_string());
    }
    code + "bar.sync 0;\nsetp.lt.u32 %p3, %t, 32;\n@!%p3 bra copied;\n\
            tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%a6], [%r3], 128;\ncopied:\nbar.sync 0;\n\
            @%first fence.proxy.tensormap::generic.acquire.gpu [%a6], 128;\n"
}

/// The new map is overwritten in the end: its bytes are a secret of each device.
const FORGET: &str = "bar.sync 0;\nmul.wide.u32 %a1, %t, 8;\nadd.u64 %a2, %a6, %a1;\nmov.b64 %a3, 0;\n@%p2 st.global.b64 [%a2], %a3;\n";

pub(crate) fn replaced() -> Vec<Trial> {
    let elements = [
        (TensorElement::U32, [16, 6], [16, 4], TensorSwizzle::None, 0),
        (TensorElement::U8, [50, 9], [32, 8], TensorSwizzle::B32, 1),
        (TensorElement::F16, [32, 20], [32, 12], TensorSwizzle::B64, 2),
        (TensorElement::F32, [40, 7], [32, 8], TensorSwizzle::B128, 3),
        (TensorElement::S64, [9, 7], [8, 5], TensorSwizzle::B64, 2),
    ];
    let trial = |(element, dims, boxes, swizzle, code): (TensorElement, [u64; 2], [u32; 2], _, usize)| {
        let random = &mut Random::new(47);
        let size = element.bytes() as usize;
        let map = TensorBox {
            element,
            dims: dims.to_vec(),
            strides: vec![(dims[0] * size as u64).next_multiple_of(16) + 16],
            boxes: boxes.to_vec(),
            steps: vec![1, 1],
            swizzle,
            fill: TensorFill::Zero,
            at: vec![16 / size as i32, 2],
        };
        let input: Vec<u8> =
            (0..map.tensor_bytes().next_multiple_of(16)).map(|_| random.next() as u8).collect();
        let mut output = vec![0; MAP_AT + 128];
        map.each(|shared, inside| {
            if let Some(from) = inside {
                output[shared..shared + size].copy_from_slice(&input[from..from + size]);
            }
        });
        let bytes = map.box_bytes();
        let load = load("tile", &map.at, &[], map.box_bytes()).replace("[%map,", "[%a6,");
        let body = [&replace(&map, code), &load, &copy_out(bytes), FORGET].concat();
        let before = vec![0; 64];
        Trial {
            name: format!("tensormap.replace {}", map.name()),
            text: kernel(2048, &body),
            blocks: 1,
            threads: 64,
            cluster: 1,
            oracle: Oracle::Bytes([&before[..], &output].concat()),
            tensor: Some(Tensor {
                map: TensorMap::tiled(0, TensorElement::U8, &[64], &[64]),
                content: before,
                is_written: false,
            }),
            input,
            output: vec![0; MAP_AT + 128],
            unit: size,
        }
    };
    elements.into_iter().map(trial).collect()
}
