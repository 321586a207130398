//! Textures and surfaces as arguments of `kiln run` and `kiln check`.

use serde_json::json;

use crate::folder::Folder;
use crate::outcome::{Outcome, run, without_driver};

/// Doubles the texel of a texture that belongs to each thread into a surface, and writes what lies half a texel further to an array.
const BLUR: &str = "
.version 8.0
.target sm_80
.address_size 64
.visible .entry blur(.param .u64 image, .param .u64 plane, .param .u64 .ptr .global .align 4 out)
{
.reg .b32 %r<4>;
.reg .f32 %f<12>;
.reg .b64 %rd<6>;
ld.param.u64 %rd1, [image];
ld.param.u64 %rd2, [plane];
ld.param.u64 %rd3, [out];
mov.u32 %r1, %tid.x;
cvt.rn.f32.u32 %f1, %r1;
add.f32 %f2, %f1, 0f3F000000;
mov.f32 %f3, 0f3F000000;
tex.2d.v4.f32.f32 {%f4, %f5, %f6, %f7}, [%rd1, {%f2, %f3}];
add.f32 %f4, %f4, %f4;
shl.b32 %r2, %r1, 2;
mov.b32 %r3, %f4;
sust.b.1d.b32.trap [%rd2, {%r2}], {%r3};
add.f32 %f2, %f1, 0f3F800000;
tex.2d.v4.f32.f32 {%f8, %f9, %f10, %f11}, [%rd1, {%f2, %f3}];
mul.wide.u32 %rd4, %r1, 4;
add.u64 %rd5, %rd3, %rd4;
st.global.f32 [%rd5], %f8;
ret;
}
";

fn launch(verb: &str, file: &str, arguments: &[&str], more: &[&str]) -> Outcome {
    let mut words = vec![verb, file, "--grid", "1", "--block", "4"];
    words.extend(arguments.iter().flat_map(|argument| ["--arg", *argument]));
    words.extend(more);
    run(without_driver(&words))
}

#[test]
fn textures_are_sampled_and_surfaces_are_written() {
    let folder = Folder::new();
    let kernel = folder.write("blur.ptx", BLUR);
    let image = folder.floats_2d("image.npy", &[1.0, 3.0, 7.0, 15.0], [1, 4]);
    let plane = folder.floats("plane.npy", &[0.0; 4]);
    let (to, sums) = (folder.path("to.npy"), folder.path("sums.npy"));
    let texture = format!("tex:2d+linear:{image}");
    let arguments = [&*texture, &format!("surf:1d:{plane}:{to}"), &format!("out:f32:4:{sums}")];
    for verb in ["run", "check"] {
        let outcome = launch(verb, &kernel, &arguments, &["--json"]);
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{}", outcome.stdout);
    }
    let outcome = launch("run", &kernel, &arguments, &["--json", "--device", "sim"]);
    let floats = |name: &str| -> Vec<f32> {
        folder.read(name).1.chunks(4).map(|word| f32::from_le_bytes(word.try_into().unwrap())).collect()
    };
    assert_eq!(floats("to.npy"), [2.0, 6.0, 14.0, 30.0]);
    // Halfway between two texels, and past the last one its own value.
    assert_eq!(floats("sums.npy"), [2.0, 5.0, 11.0, 15.0]);
    let report = outcome.json();
    assert_eq!(report["arguments"][0]["given"], json!(texture));
    assert_eq!(report["arguments"][1]["effect"], json!("accesses"));
}

#[test]
fn wrong_textures_are_told() {
    let folder = Folder::new();
    let kernel = folder.write("blur.ptx", BLUR);
    let image = folder.floats("image.npy", &[1.0, 3.0, 7.0, 15.0]);
    let small = folder.floats("small.npy", &[0.0; 2]);
    let texture = |geometry: &str| format!("tex:{geometry}:{image}");
    let with = |texture: &str, surface: &str| {
        launch("run", &kernel, &[texture, surface, "out:f32:4"], &["--device", "sim"])
    };
    let plane = format!("surf:1d:{image}");
    let shape = with(&texture("2d"), &plane);
    assert!(shape.stderr.contains("needs 2 dimensions, or 3 with the channels"), "{}", shape.stderr);
    let words = with(&texture("2d+sharp"), &plane);
    assert!(words.stderr.contains("`sharp` says nothing about a texture"), "{}", words.stderr);
    let outside = with(
        &format!("tex:2d:{}", folder.floats_2d("two.npy", &[1.0; 4], [1, 4])),
        &format!("surf:1d:{small}"),
    );
    assert_eq!(outside.code, Some(5));
    assert!(outside.stdout.contains("outside of a surface with rows of 8 bytes"), "{}", outside.stdout);
    let number = with("u64:4096", &plane);
    assert!(number.stdout.contains("0x1000 is no texture or surface object"), "{}", number.stdout);
}
