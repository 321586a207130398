//! Textures: fetches give what the formulas of the CUDA programming guide give.

use kiln_ptx::PtxModule;
use kiln_ptx::exec::{
    AddressMode, Checks, ExecOutcome, ExecProgram, LaunchShape, Options, SimpleMemory, TexelFormat,
    TexelKind, TextureObject,
};

/// Runs `body` with a texture in `%tex`, whose texels are `texels`, for every set of four words of input (`%x`, `%y`, `%z`, `%w`). Gives the four words `%a` to `%d` of each.
pub(crate) fn run(
    texels: &[u8],
    describe: impl Fn(u64) -> TextureObject,
    body: &str,
    inputs: &[[u32; 4]],
) -> (Vec<[u32; 4]>, Vec<u8>, ExecOutcome) {
    let text = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.global .texref image;\n.global .samplerref point;\n.global .surfref plane;\n\
         .visible .entry k(.param .u64 tex, .param .u64 from, .param .u64 to)\n{{\n.reg .b32 %x, %y, %z, %w, %a, %b, %c, %d, %t, %r<4>;\n.reg .b16 %h<4>;\n.reg .b64 %tex, %in, %out, %at;\n\
         ld.param.u64 %tex, [tex];\nld.param.u64 %in, [from];\nld.param.u64 %out, [to];\nmov.u32 %t, %tid.x;\nmul.wide.u32 %at, %t, 16;\nadd.u64 %in, %in, %at;\nadd.u64 %out, %out, %at;\n\
         ld.global.v4.b32 {{%x, %y, %z, %w}}, [%in];\nmov.u32 %a, 0;\nmov.u32 %b, 0;\nmov.u32 %c, 0;\nmov.u32 %d, 0;\n{body}\nst.global.v4.b32 [%out], {{%a, %b, %c, %d}};\nret;\n}}\n"
    );
    let module = PtxModule::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let program = ExecProgram::new(module);
    let mut memory = SimpleMemory::new();
    let image = memory.allocate_with(texels);
    let object = memory.allocate_with(&describe(image).record());
    let words: Vec<u8> = inputs.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
    let (from, to) = (memory.allocate_with(&words), memory.allocate(words.len() as u64));
    // A `.texref` variable holds the handle of its texture.
    let globals: Vec<u64> =
        program.variables().iter().map(|_| memory.allocate_with(&object.to_le_bytes())).collect();
    let arguments = [object.to_le_bytes(), from.to_le_bytes(), to.to_le_bytes()].concat();
    let options = Options { checks: Checks::ALL, ..Options::default() };
    let shape = LaunchShape::linear(1, inputs.len() as u32);
    let entry = program.entry("k").unwrap();
    let outcome = entry.launch(&shape, &arguments, &globals, &memory, &options).unwrap();
    let words = memory.read(to, words.len() as u64).unwrap();
    let words: Vec<u32> = words.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
    let results = words.chunks(4).map(|words| words.try_into().unwrap()).collect();
    (results, memory.read(image, texels.len() as u64).unwrap(), outcome)
}

fn fetched(
    texels: &[u8],
    describe: impl Fn(u64) -> TextureObject,
    body: &str,
    inputs: &[[u32; 4]],
) -> Vec<[u32; 4]> {
    let (results, _, outcome) = run(texels, describe, body, inputs);
    assert!(outcome.is_clean(), "{body}: {:?}", outcome.findings);
    results
}

pub(crate) fn singles(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

pub(crate) const F32: TexelFormat = TexelFormat { kind: TexelKind::F32, channels: 1 };

/// A row of four numbers, and a square of them.
const ROW: [f32; 4] = [10.0, 20.0, 40.0, 80.0];

fn first(results: &[[u32; 4]]) -> Vec<f32> {
    results.iter().map(|result| f32::from_bits(result[0])).collect()
}

fn at(coordinates: &[f32]) -> [u32; 4] {
    let mut words = [0; 4];
    words.iter_mut().zip(coordinates).for_each(|(word, coordinate)| *word = coordinate.to_bits());
    words
}

const FETCH_1D: &str = "tex.1d.v4.f32.f32 {%a, %b, %c, %d}, [%tex, {%x}];";
const FETCH_2D: &str = "tex.2d.v4.f32.f32 {%a, %b, %c, %d}, [%tex, {%x, %y}];";

#[test]
fn the_nearest_texel_and_what_lies_outside() {
    let places: Vec<[u32; 4]> = [0.0, 0.9, 1.0, 3.99, -0.5, 4.0, 9.0].iter().map(|x| at(&[*x])).collect();
    let image = |address| TextureObject::image(address, F32, [4, 1, 1]);
    let results = fetched(&singles(&ROW), image, FETCH_1D, &places);
    assert_eq!(first(&results), [10.0, 10.0, 20.0, 80.0, 10.0, 80.0, 80.0]);
    // Channels that the texture does not have.
    assert_eq!(results[0][1..], [0, 0, 1.0_f32.to_bits()]);
    let bordered = |address| {
        let mut object = image(address);
        object.sampler.address = [AddressMode::Border; 3];
        object.sampler.border = [7.0, 0.0, 0.0, 0.0];
        object
    };
    assert_eq!(first(&fetched(&singles(&ROW), bordered, FETCH_1D, &places))[4..], [7.0, 7.0, 7.0]);
    // Integers have the border as a number of theirs.
    for (kind, border, expected) in [
        (TexelKind::U32, 7.0, 7),
        (TexelKind::S32, -3.0, -3_i32 as u32),
        (TexelKind::F32, 7.0, 7.0_f32.to_bits()),
    ] {
        let object = |address| {
            let mut object = TextureObject::image(address, TexelFormat { kind, channels: 1 }, [4, 1, 1]);
            object.sampler.address = [AddressMode::Border; 3];
            object.sampler.border = [border, 0.0, 0.0, 0.0];
            object
        };
        let fetch = FETCH_1D.replace("f32.f32", if kind == TexelKind::F32 { "f32.f32" } else { "s32.f32" });
        assert_eq!(fetched(&singles(&ROW), object, &fetch, &[at(&[9.0])])[0][0], expected, "{kind:?}");
    }
    // Coordinates in texels do not wrap, and are not mirrored.
    for mode in [AddressMode::Wrap, AddressMode::Mirror] {
        let object = |address| {
            let mut object = image(address);
            object.sampler.address = [mode; 3];
            object
        };
        assert_eq!(first(&fetched(&singles(&ROW), object, FETCH_1D, &places))[4..], [10.0, 80.0, 80.0]);
    }
    // Normalized coordinates wrap and are mirrored.
    let places: Vec<[u32; 4]> = [0.3, -0.1, 1.3, 1.9, 2.3].iter().map(|x| at(&[*x])).collect();
    for (mode, expected) in [
        (AddressMode::Clamp, [20.0, 10.0, 80.0, 80.0, 80.0]),
        (AddressMode::Wrap, [20.0, 80.0, 20.0, 80.0, 20.0]),
        (AddressMode::Mirror, [20.0, 10.0, 40.0, 10.0, 20.0]),
    ] {
        let object = |address| {
            let mut object = image(address);
            (object.sampler.address, object.sampler.normalized) = ([mode; 3], true);
            object
        };
        assert_eq!(first(&fetched(&singles(&ROW), object, FETCH_1D, &places)), expected, "{mode:?}");
    }
}

#[test]
fn indices_into_a_row_read_zero_outside() {
    let image = |address| TextureObject::image(address, F32, [4, 1, 1]);
    let fetch = "tex.1d.v4.f32.s32 {%a, %b, %c, %d}, [%tex, {%x}];";
    let places = [[0, 0, 0, 0], [3, 0, 0, 0], [4, 0, 0, 0], [u32::MAX, 0, 0, 0]];
    assert_eq!(first(&fetched(&singles(&ROW), image, fetch, &places)), [10.0, 80.0, 0.0, 0.0]);
    let square: Vec<f32> = (0..12).map(|number| number as f32).collect();
    let image = |address| TextureObject::image(address, F32, [4, 3, 1]);
    let fetch = "tex.2d.v4.f32.s32 {%a, %b, %c, %d}, [%tex, {%x, %y}];";
    let places = [[1, 2, 0, 0], [9, 9, 0, 0]];
    assert_eq!(first(&fetched(&singles(&square), image, fetch, &places)), [9.0, 11.0]);
}

/// The blend of the programming guide: weights with 8 bits of fraction.
fn blend(texel: impl Fn(i64, i64) -> f64, x: f32, y: f32) -> f32 {
    let split = |x: f32| {
        let (whole, part) = ((f64::from(x) - 0.5).floor(), (f64::from(x) - 0.5).rem_euclid(1.0));
        let weight = (part * 256.0).round_ties_even() / 256.0;
        if weight == 1.0 { (whole as i64 + 1, 0.0) } else { (whole as i64, weight) }
    };
    let ((i, a), (j, b)) = (split(x), split(y));
    ((1.0 - a) * (1.0 - b) * texel(i, j)
        + a * (1.0 - b) * texel(i + 1, j)
        + (1.0 - a) * b * texel(i, j + 1)
        + a * b * texel(i + 1, j + 1)) as f32
}

#[test]
fn linear_filtering_blends_four_texels() {
    let image: Vec<f32> = (0..35).map(|number| ((number * 37) % 101) as f32 - 50.0).collect();
    let texel = |i: i64, j: i64| f64::from(image[(j.clamp(0, 4) * 7 + i.clamp(0, 6)) as usize]);
    let object = |address| {
        let mut object = TextureObject::image(address, F32, [7, 5, 1]);
        object.sampler.linear = true;
        object
    };
    let places: Vec<(f32, f32)> = (0..200u32)
        .map(|at| ((at * 13 % 97) as f32 * 0.083 - 0.4, (at * 29 % 89) as f32 * 0.067 - 0.3))
        .collect();
    let inputs: Vec<[u32; 4]> = places.iter().map(|(x, y)| at(&[*x, *y])).collect();
    let results = first(&fetched(&singles(&image), object, FETCH_2D, &inputs));
    for ((x, y), result) in places.iter().zip(results) {
        let expected = blend(texel, *x, *y);
        assert!(
            (result - expected).abs() <= 1e-5 * expected.abs().max(1.0),
            "({x}, {y}): {result}, not {expected}"
        );
    }
    // Halfway between two texels, and 1/256 rounded.
    let object = |address| {
        let mut object = TextureObject::image(address, F32, [4, 1, 1]);
        object.sampler.linear = true;
        object
    };
    let places: Vec<[u32; 4]> = [1.0, 1.5, 1.75, 1.501].iter().map(|x| at(&[*x])).collect();
    assert_eq!(first(&fetched(&singles(&ROW), object, FETCH_1D, &places)), [15.0, 20.0, 25.0, 20.0]);
}

#[test]
fn integers_are_read_as_they_are_or_as_fractions() {
    let bytes = TexelFormat { kind: TexelKind::U8, channels: 4 };
    let texels = [0, 51, 102, 255, 255, 0, 1, 2];
    let image = |address| TextureObject::image(address, bytes, [2, 1, 1]);
    let places = [at(&[0.5, 0.5]), at(&[1.5, 0.5])];
    let fetch = "tex.2d.v4.u32.f32 {%a, %b, %c, %d}, [%tex, {%x, %y}];";
    assert_eq!(fetched(&texels, image, fetch, &places), [[0, 51, 102, 255], [255, 0, 1, 2]]);
    let fractions = |address| {
        let mut object = image(address);
        (object.sampler.as_fraction, object.sampler.linear) = (true, true);
        object
    };
    let results = fetched(&texels, fractions, FETCH_2D, &[at(&[0.5, 0.5]), at(&[1.0, 0.5])]);
    assert_eq!(results[0].map(f32::from_bits), [0.0, 0.2, 0.4, 1.0]);
    assert_eq!(f32::from_bits(results[1][0]), 0.5);
    let halves = TexelFormat { kind: TexelKind::F16, channels: 2 };
    let image = |address| TextureObject::image(address, halves, [1, 1, 1]);
    let results = fetched(&[0x00, 0x38, 0x00, 0xc0], image, FETCH_2D, &[at(&[0.5, 0.5])]);
    assert_eq!(results[0].map(f32::from_bits)[..2], [0.5, -2.0]);
    let blended = |address| {
        let mut object = TextureObject::image(address, bytes, [2, 1, 1]);
        object.sampler.linear = true;
        object
    };
    let (_, _, outcome) = run(&texels, blended, fetch, &places);
    assert!(
        outcome.findings[0].to_string().contains("linear filtering of a texture that is read as integers")
    );
}

#[test]
fn volumes_layers_and_cubes() {
    let numbers: Vec<f32> = (0..24).map(|number| number as f32).collect();
    let volume = |address| TextureObject::image(address, F32, [2, 3, 4]);
    let fetch = "tex.3d.v4.f32.f32 {%a, %b, %c, %d}, [%tex, {%x, %y, %z, %z}];";
    let places = [at(&[1.5, 2.5, 3.5]), at(&[0.0, 1.0, 2.0]), at(&[-1.0, 9.0, 1.0])];
    assert_eq!(first(&fetched(&singles(&numbers), volume, fetch, &places)), [23.0, 14.0, 10.0]);
    let blended = |address| {
        let mut object = volume(address);
        object.sampler.linear = true;
        object
    };
    // The middle of the volume is the mean of eight texels.
    assert_eq!(first(&fetched(&singles(&numbers), blended, fetch, &[at(&[1.0, 1.5, 2.0])])), [11.5]);
    let layers = |address| TextureObject { extent: [2, 3, 1], layers: 4, ..volume(address) };
    let fetch = "tex.a2d.v4.f32.f32 {%a, %b, %c, %d}, [%tex, {%w, %x, %y, %y}];";
    let places = [(1, 0.5, 1.5), (3, 1.5, 2.5), (9, 0.0, 0.0)].map(|(layer, x, y)| {
        let [x, y, ..] = at(&[x, y]);
        [x, y, 0, layer]
    });
    assert_eq!(first(&fetched(&singles(&numbers), layers, fetch, &places)), [8.0, 23.0, 18.0]);
    // A cube of faces with two by two texels: the direction picks the face.
    let cube = |address| TextureObject {
        extent: [2, 2, 1],
        layers: 6,
        ..TextureObject::image(address, F32, [2, 2, 1])
    };
    let fetch = "tex.cube.v4.f32.f32 {%a, %b, %c, %d}, [%tex, {%x, %y, %z, %z}];";
    let places = [
        at(&[1.0, 0.5, -0.5]),
        at(&[-1.0, 0.5, -0.5]),
        at(&[0.5, 1.0, -0.5]),
        at(&[0.5, -1.0, -0.5]),
        at(&[0.5, 0.5, 1.0]),
        at(&[0.5, 0.5, -1.0]),
    ];
    let expected = [1.0, 4.0, 9.0, 15.0, 17.0, 20.0];
    assert_eq!(first(&fetched(&singles(&numbers), cube, fetch, &places)), expected);
    // Of several cubes the layer names one, and the last one stands for those behind it.
    let more: Vec<f32> = (0..48).map(|number| number as f32).collect();
    let cubes = |address| TextureObject { layers: 12, ..cube(address) };
    let fetch = "tex.acube.v4.f32.f32 {%a, %b, %c, %d}, [%tex, {%w, %x, %y, %z}];";
    let place = |layer: u32| {
        let [x, y, z, _] = at(&[1.0, 0.5, -0.5]);
        [x, y, z, layer]
    };
    let found = fetched(&singles(&more), cubes, fetch, &[place(0), place(1), place(5)]);
    assert_eq!(first(&found), [1.0, 25.0, 25.0]);
}

#[test]
fn gathers_levels_offsets_and_questions() {
    let numbers: Vec<f32> = (0..12).map(|number| number as f32).collect();
    let image = |address| TextureObject::image(address, F32, [4, 3, 1]);
    let gather = "tld4.r.2d.v4.f32.f32 {%a, %b, %c, %d}, [%tex, {%x, %y}];";
    // Around (2, 1): texels (1, 0), (2, 0), (1, 1), (2, 1).
    let results = fetched(&singles(&numbers), image, gather, &[at(&[2.0, 1.0])]);
    assert_eq!(results[0].map(f32::from_bits), [5.0, 6.0, 2.0, 1.0]);
    let level = "tex.level.2d.v4.f32.f32 {%a, %b, %c, %d}, [%tex, {%x, %y}], %z;";
    assert_eq!(first(&fetched(&singles(&numbers), image, level, &[at(&[2.5, 1.5, 3.0])])), [6.0]);
    let offset = "tex.2d.v4.f32.f32 {%a, %b, %c, %d}, [%tex, {%x, %y}], {1, -1};";
    assert_eq!(first(&fetched(&singles(&numbers), image, offset, &[at(&[1.5, 1.5])])), [2.0]);
    let ask = "txq.width.b32 %a, [%tex];\ntxq.height.b32 %b, [image];\ntxq.channel_data_type.b32 %c, [%tex];\nsuq.channel_order.b32 %d, [plane];";
    assert_eq!(fetched(&singles(&numbers), image, ask, &[[0; 4]]), [[4, 3, 0x10de, 0x10b0]]);
}

#[test]
fn variables_hold_textures_and_samplers() {
    let image = |address| TextureObject::image(address, F32, [4, 1, 1]);
    for fetch in [
        FETCH_1D.replace("%tex", "image"),
        FETCH_1D.replace("%tex,", "image, point,"),
        format!("mov.u64 %tex, image;\n{FETCH_1D}"),
    ] {
        assert_eq!(first(&fetched(&singles(&ROW), image, &fetch, &[at(&[2.5])])), [40.0], "{fetch}");
    }
}

#[test]
fn handles_bounds_contents_and_writers_are_checked() {
    let told = |describe: &dyn Fn(u64) -> TextureObject, body: &str, words: &str| {
        let (_, _, outcome) = run(&singles(&ROW), describe, body, &[at(&[3.5])]);
        let found: Vec<String> = outcome.findings.iter().map(ToString::to_string).collect();
        assert!(found.iter().any(|text| text.contains(words)), "{body}: `{words}` is not in {found:?}");
    };
    let image = |address| TextureObject::image(address, F32, [4, 1, 1]);
    told(&image, &format!("mov.u64 %tex, 4096;\n{FETCH_1D}"), "0x1000 is no texture or surface object");
    told(&image, &format!("mov.u64 %tex, %in;\n{FETCH_1D}"), "is no texture or surface object");
    // The object says that there are more texels than the memory has.
    let larger = |address| TextureObject::image(address, F32, [8, 1, 1]);
    told(
        &larger,
        &FETCH_1D.replace("{%x}", "{%z}").replace("tex.", "mov.b32 %z, 0f40d00000;\ntex."),
        "out of bounds",
    );
    for wrong in [
        FETCH_2D.replace("2d", "2dms"),
        FETCH_2D.replace("v4.f32.f32", "v4.f32.f64"),
        "tex.2d.v4.f32.f32 {%a, %b}, [%tex, {%x, %y}];".to_owned(),
        "tex.3d.v4.f32.f32 {%a, %b, %c, %d}, [%tex, {%x, %y}];".to_owned(),
    ] {
        told(&image, &wrong, "with these operands");
    }
}
