//! Fourier transforms: which plan cuFFT makes, and with what it is executed.

use kiln_driver::{Command, Driver, DriverExt, Function, Image, Refusal};

use crate::machine::{Machine, calls};
use crate::opened::{Bench, device, launch};

fn with_cufft() -> Machine {
    Machine::fake().with_library("KILN_CUFFT", include_str!("libcufft/cufft.c"))
}

fn transform(kind: &str, element: &str, shape: &str, batch: u64, in_place: bool) -> String {
    format!("fft kind={kind} element={element} shape={shape} batch={batch} in_place={in_place}")
}

fn load(bench: &Bench, text: &str) -> Function {
    let module = bench.device.load(&Image::Library(text)).unwrap();
    bench.device.function(module, "fft").unwrap()
}

/// The last call of a name.
fn last(name: &str) -> String {
    calls(name).pop().unwrap_or_else(|| panic!("no call of {name}"))
}

/// Runs a transform. Returns the addresses of its data and of the workspace, if it takes some.
fn run(bench: &Bench, text: &str) -> Vec<u64> {
    let function = load(bench, text);
    let operands = if text.contains("in_place=true") { 1 } else { 2 };
    let workspace = usize::from(function.attributes.workspace_bytes > 0);
    let words: Vec<u64> = (0..operands + workspace).map(|_| bench.memory(1 << 16).address.0).collect();
    let packed: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bench.device.submit(bench.stream, &Command::Launch(launch(&function, &packed))).unwrap();
    bench.device.synchronize(bench.stream).unwrap();
    words
}

on_machine! {
    fn a_missing_cufft_is_named_with_the_way_to_get_it() on Machine::fake().with("KILN_CUFFT", "/no/such/file") => {
        let error = device().load(&Image::Library(&transform("forward", "f32", "8", 1, false))).unwrap_err();
        let Some(Refusal::Library { library: "cuFFT", why }) = error.refusal() else { panic!("{error}") };
        assert!(why.contains("/no/such/file") && why.contains("KILN_CUFFT"), "{why}");
    }

    fn a_plan_allocates_nothing_and_gets_its_workspace_with_each_call() on with_cufft() => {
        let bench = Bench::new();
        let text = transform("forward", "f32", "6x8", 3, false);
        assert_eq!(load(&bench, &text).attributes.workspace_bytes, 640);
        assert_eq!(calls("cufftSetAutoAllocation"), ["0"]);
        assert_eq!(calls("cufftMakePlanMany64"), ["6x8 input=6x8:1:48 output=6x8:1:48 C2C batch=3"]);
        let at = run(&bench, &text);
        assert_eq!(last("cufftSetWorkArea"), format!("{:#x}", at[2]));
        assert_eq!(last("cufftSetStream"), "1");
        assert_eq!(calls("transform"), [format!("C2C {:#x} {:#x} FORWARD", at[0], at[1])]);
        // A transform that needs none is given none.
        run(&bench, &transform("forward", "f32", "8", 1, false));
        assert_eq!(calls("cufftSetWorkArea").len(), 1);
    }

    fn each_kind_has_its_type_and_its_function() on with_cufft() => {
        let bench = Bench::new();
        for (kind, element, plan, ran, direction) in [
            ("forward", "f32", "C2C", "C2C", " FORWARD"),
            ("inverse", "f32", "C2C", "C2C", " INVERSE"),
            ("real_forward", "f32", "R2C", "R2C", ""),
            ("real_inverse", "f32", "C2R", "C2R", ""),
            ("forward", "f64", "Z2Z", "Z2Z", " FORWARD"),
            ("inverse", "f64", "Z2Z", "Z2Z", " INVERSE"),
            ("real_forward", "f64", "D2Z", "D2Z", ""),
            ("real_inverse", "f64", "Z2D", "Z2D", ""),
        ] {
            let at = run(&bench, &transform(kind, element, "10", 1, false));
            assert!(last("cufftMakePlanMany64").contains(&format!(" {plan} ")), "{kind} {element}");
            assert_eq!(last("transform"), format!("{ran} {:#x} {:#x}{direction}", at[0], at[1]));
        }
    }

    fn rows_of_real_data_are_as_long_as_they_are_stored() on with_cufft() => {
        let bench = Bench::new();
        // A spectrum has half of a row and one element; in place, a row of real numbers has room for it.
        for (kind, in_place, wanted) in [
            ("real_forward", false, "4x6x10 input=4x6x10:1:240 output=4x6x6:1:144 R2C batch=5"),
            ("real_forward", true, "4x6x10 input=4x6x12:1:288 output=4x6x6:1:144 R2C batch=5"),
            ("real_inverse", false, "4x6x10 input=4x6x6:1:144 output=4x6x10:1:240 C2R batch=5"),
            ("real_inverse", true, "4x6x10 input=4x6x6:1:144 output=4x6x12:1:288 C2R batch=5"),
        ] {
            let at = run(&bench, &transform(kind, "f32", "4x6x10", 5, in_place));
            assert_eq!(last("cufftMakePlanMany64"), wanted, "{kind} {in_place}");
            let output = if in_place { at[0] } else { at[1] };
            assert!(last("transform").ends_with(&format!(" {:#x} {output:#x}", at[0])), "{kind} {in_place}");
        }
        run(&bench, &transform("real_forward", "f64", "9", 2, false));
        assert_eq!(last("cufftMakePlanMany64"), "9 input=9:1:9 output=5:1:5 D2Z batch=2", "an odd length");
    }

    fn a_plan_is_destroyed_with_its_module() on with_cufft() => {
        let bench = Bench::new();
        let module = bench.device.load(&Image::Library(&transform("forward", "f32", "8", 1, true))).unwrap();
        bench.device.destroy(module.into()).unwrap();
        drop(bench);
        assert_eq!(calls("cufftDestroy"), calls("cufftCreate"));
    }

    fn a_transform_that_cufft_refuses_is_told_with_its_status() on with_cufft().with("FAKE_CUFFT_STATUS", "6") => {
        let bench = Bench::new();
        let function = load(&bench, &transform("forward", "f32", "8", 1, true));
        let packed = bench.memory(64).address.0.to_le_bytes();
        let error = bench.device.submit(bench.stream, &Command::Launch(launch(&function, &packed))).unwrap_err();
        assert!(error.to_string().contains("cufftExecC2C answered CUFFT_EXEC_FAILED (6)"), "{error}");
    }
}
