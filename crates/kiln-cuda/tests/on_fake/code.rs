//! Modules, kernels and variables.

use std::sync::OnceLock;

use kiln_driver::{Code, Driver, Image, ParameterSpan, Refusal};

use crate::machine::{Machine, calls};
use crate::opened::{Bench, CODE, device};

on_machine! {
    fn a_refused_image_comes_with_the_log() on Machine::fake() => {
        let error = device().load(&Image::Ptx("// syntax error")).unwrap_err();
        let Some(Refusal::Image { code, log }) = error.refusal() else { panic!("{error}") };
        assert_eq!(*code, Some(Code::INVALID_PTX));
        assert_eq!(log, "ptxas line 3; fatal : Parsing error\ncompiling for sm_90");
    }

    fn broken_images_do_not_reach_the_driver() on Machine::fake() => {
        let device = device();
        for image in [Image::Cubin(b""), Image::Cubin(b"\x7fELF"), Image::Cubin(&[7; 100]), Image::Ptx("a\0b")] {
            assert!(matches!(device.load(&image).unwrap_err().refusal(), Some(Refusal::Image { code: None, .. })));
        }
        assert!(device.load(&Image::HostKernels("x")).unwrap_err().is_unsupported());
        assert_eq!(calls("cuModuleLoadDataEx").len(), 0);
    }

    fn kept_machine_code_loads_without_the_linker() on Machine::fake() => {
        let (device, kept) = (device(), OnceLock::new());
        let module = device.load(&Image::PtxToKeep { text: CODE, machine_code: &kept }).unwrap();
        assert!(device.function(module, "set").is_ok());
        let code = kept.get().unwrap();
        assert!(code.starts_with(b"\x7fELF"));
        let again = device.load(&Image::Cubin(code)).unwrap();
        assert_eq!(device.function(again, "set").unwrap().attributes, device.function(module, "set").unwrap().attributes);
        assert_eq!(calls("cuLinkAddData_v2"), [format!("1 {} kiln.ptx", CODE.len() + 1)]);
        assert_eq!((calls("cuLinkCreate_v2").len(), calls("cuLinkDestroy").len()), (1, 1));
        assert_eq!(calls("cuModuleLoadDataEx"), ["4 cubin", "4 cubin"], "the text itself is not compiled again");
    }

    fn what_the_linker_refuses_is_loaded_as_text() on Machine::fake().plan("cuLinkComplete=801") => {
        let (device, kept) = (device(), OnceLock::new());
        assert!(device.load(&Image::PtxToKeep { text: CODE, machine_code: &kept }).is_ok());
        assert_eq!((kept.get(), calls("cuModuleLoadDataEx")), (None, vec!["4".to_owned()]));
        assert_eq!(calls("cuLinkDestroy").len(), 1);
        let broken = Image::PtxToKeep { text: "// syntax error", machine_code: &kept };
        let error = device.load(&broken).unwrap_err();
        assert_eq!(error.code(), Some(Code::INVALID_PTX), "the loader says why");
        assert!(device.load(&Image::PtxToKeep { text: "", machine_code: &kept }).unwrap_err().is_refused());
    }

    fn a_kernel_is_found_with_its_attributes() on Machine::fake() => {
        let bench = Bench::new();
        let set = bench.function("set");
        assert_eq!((set.attributes.max_threads_per_block, set.attributes.registers), (512, 24));
        let span = |offset, bytes| ParameterSpan { offset, bytes };
        assert_eq!(set.attributes.parameters, Some(vec![span(0, 8), span(8, 4), span(12, 4)]));
        assert_eq!(bench.function("nothing").attributes.parameters, Some(vec![]));
        assert_eq!(bench.function("set"), set, "the same handle each time");
        assert_eq!(calls("cuModuleGetFunction"), ["set", "nothing"]);
        assert_eq!(calls("cuFuncLoad"), ["set", "nothing"], "not left to the first launch");
    }

    fn a_name_that_is_not_there_is_answered_with_those_that_are() on Machine::fake() => {
        let bench = Bench::new();
        let error = bench.device.function(bench.module, "sett").unwrap_err();
        let Some(Refusal::NotFound { what, name, known, .. }) = error.refusal() else { panic!("{error}") };
        assert_eq!((*what, name.as_str()), ("kernel", "sett"));
        assert_eq!(known, &["crash", "first_of", "nothing", "resume", "set", "stall"]);
        let error = bench.device.global(bench.module, "count").unwrap_err();
        assert!(matches!(error.refusal(), Some(Refusal::NotFound { what: "variable", .. })));
        assert!(bench.device.function(bench.module, "a\0b").unwrap_err().is_refused());
    }

    fn a_variable_lives_and_dies_with_its_module() on Machine::fake() => {
        let bench = Bench::new();
        let counter = bench.device.global(bench.module, "counter").unwrap();
        assert_eq!(counter.bytes, 4);
        assert_eq!(bench.device.global(bench.module, "counter").unwrap(), counter);
        assert_eq!(bench.read(counter.id, 4), [0; 4]);
        assert!(bench.device.free(counter.id, None).unwrap_err().is_refused());
        let function = bench.function("nothing");
        bench.device.destroy(bench.module.into()).unwrap();
        assert_eq!(calls("cuModuleUnload").len(), 1);
        assert!(bench.device.free(counter.id, None).unwrap_err().is_refused());
        let error = bench.device.occupancy(function.id, 32, 0).unwrap_err();
        assert!(matches!(error.refusal(), Some(Refusal::Stale { .. })), "{error}");
        assert!(bench.device.function(bench.module, "set").unwrap_err().is_refused());
        assert!(bench.device.destroy(bench.module.into()).unwrap_err().is_refused());
    }

    fn occupancy_is_asked_and_impossible_blocks_are_refused() on Machine::fake() => {
        let bench = Bench::new();
        let set = bench.function("set");
        let occupancy = bench.device.occupancy(set.id, 256, 0).unwrap();
        assert_eq!(occupancy.blocks_per_multiprocessor, 8);
        assert_eq!((occupancy.suggested_block_threads, occupancy.suggested_grid_blocks), (512, 16));
        for (threads, shared) in [(0, 0), (513, 0), (32, 99_001)] {
            assert!(bench.device.occupancy(set.id, threads, shared).unwrap_err().is_refused());
        }
        assert!(bench.device.occupancy(set.id, 32, 60_000).is_ok(), "opted in on the way");
    }
}
