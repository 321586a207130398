//! Files that are no arrays a kernel can use.

use crate::folder::{Folder, npy, versioned};
use crate::kernels::faulty;
use crate::outcome::{Outcome, run, without_driver};

/// A run whose array is this file.
fn given(folder: &Folder, file: &[u8]) -> Outcome {
    let spec = format!("inout:{}:{}", folder.write("a.npy", file), folder.path("b.npy"));
    let kernels = faulty();
    let words = ["run", &kernels, "--kernel", "store_at", "--grid", "1", "--block", "1", "--device", "sim"];
    run(without_driver(&[&words[..], &["--arg", &spec, "--arg", "i32:0"]].concat()))
}

#[test]
fn all_versions_are_read() {
    let folder = Folder::new();
    let header = "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }\n";
    for version in [1, 2, 3] {
        let outcome = given(&folder, &versioned(version, header, &[0; 8]));
        assert_eq!(outcome.code, Some(0), "version {version}: {}", outcome.stderr);
        assert_eq!(folder.read("b.npy").1, [7, 0, 0, 0, 0, 0, 0, 0]);
    }
    for header in [
        "{\"shape\":(2,),\"descr\":\"<i4\",\"fortran_order\":False}",
        "{'descr': '=i4', 'fortran_order': False, 'shape': (1L, 2L)}",
        "{'descr': '<i4', 'fortran_order': True, 'shape': (1, 2)}",
        "{'descr': '<V2', 'fortran_order': False, 'shape': (4,)}",
    ] {
        let outcome = given(&folder, &versioned(1, header, &[0; 8]));
        assert_eq!(outcome.code, Some(0), "{header}: {}", outcome.stderr);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn names_of_files_may_be_no_text() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let folder = Folder::new();
    let whole = npy("<i4", "False", "(2,)", &[0; 8]);
    let path = |name: &[u8]| std::path::Path::new(&folder.path("")).join(OsStr::from_bytes(name));
    let spec = |from: &[u8], to: &[u8]| {
        let (from, to) = (path(from), path(to));
        OsStr::from_bytes(&[b"inout:", from.as_os_str().as_bytes(), b":", to.as_os_str().as_bytes()].concat())
            .to_owned()
    };
    std::fs::write(path(b"a\xff\xc3\xa4.npy"), &whole).unwrap();
    let kernels = faulty();
    for command in ["run", "check"] {
        let launch = |spec: &OsStr| {
            let words = [command, &kernels, "--kernel", "store_at", "--grid", "1", "--block", "1"];
            let mut command = without_driver(&words);
            if words[0] == "run" {
                command.args(["--device", "sim"]);
            }
            command.arg("--arg").arg(spec).args(["--arg", "i32:0"]);
            run(command)
        };
        let outcome = launch(&spec(b"a\xff\xc3\xa4.npy", b"b\xfe.npy"));
        assert_eq!(outcome.code, Some(0), "{command}: {}", outcome.stderr);
        let outcome = launch(&spec(b"none\xff.npy", b"b\xfe.npy"));
        assert_eq!(outcome.code, Some(2), "{command}");
        assert!(outcome.stderr.contains("No such file"), "{command}: {}", outcome.stderr);
        let outcome = launch(OsStr::from_bytes(b"i32:\xff"));
        assert_eq!(outcome.code, Some(2), "{command}");
        assert!(outcome.stderr.contains("is not a value of type i32"), "{command}: {}", outcome.stderr);
    }
    let written = std::fs::read(path(b"b\xfe.npy")).unwrap();
    assert_eq!(written[written.len() - 8..], [7, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn what_cannot_be_used_ends_with_2_and_says_why() {
    let folder = Folder::new();
    let whole = npy("<i4", "False", "(2,)", &[0; 8]);
    for (file, word) in [
        (b"".to_vec(), "not a .npy file"),
        (b"PK\x03\x04, as an .npz begins".to_vec(), "not a .npy file"),
        (whole[..7].to_vec(), "header is incomplete"),
        (whole[..9].to_vec(), "header is incomplete"),
        (whole[..40].to_vec(), "header is incomplete"),
        (whole[..whole.len() - 1].to_vec(), "says 8 bytes of data, and it has 7"),
        ([&whole[..], &[0]].concat(), "says 8 bytes of data, and it has 9"),
        (versioned(4, "", &[]), "version 4.0"),
        (versioned(2, "", &[])[..9].to_vec(), "header is incomplete"),
        (npy("<i4", "True", "(2, 2)", &[0; 16]), "Fortran order; save numpy.ascontiguousarray(a)"),
        (npy(">i4", "False", "(2,)", &[0; 8]), "big-endian"),
        (npy("<U1", "False", "(2,)", &[0; 8]), "type `<U1`"),
        (npy("|O", "False", "(2,)", &[0; 8]), "type `|O`"),
        (npy("<M8[s]", "False", "(1,)", &[0; 8]), "type `<M8[s]`"),
        (npy("<f3", "False", "(1,)", &[0; 3]), "type `<f3`"),
        (npy("<i4", "False", "(4294967296, 4294967296)", &[]), "too many elements"),
        (npy("<i4", "False", "(99999999999999999999,)", &[]), "not a number"),
        (npy("<i4", "False", "(-2,)", &[]), "not a number"),
        (npy("<i4", "Maybe", "(2,)", &[0; 8]), "True or False"),
        (versioned(1, "[]", &[]), "`{` is missing"),
        (versioned(1, "{'descr': '<i4'}", &[]), "lacks"),
        (versioned(1, "{'descr': '<i4', 'color': 'red'}", &[]), "'color'"),
        (versioned(1, "{'descr': [('a', '<f4'), 'fortran_order': False", &[]), "does not end"),
        (versioned(1, "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), } junk", &[0; 8]), "behind"),
        (
            versioned(1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", &[0; 8]),
            "[('a', '<f4')]",
        ),
        (versioned(1, "{'d\u{e9}", &[]), "does not end"),
    ] {
        let outcome = given(&folder, &file);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{word}");
        assert!(
            outcome.stderr.contains(word) && outcome.stderr.contains("a.npy"),
            "{word}: {}",
            outcome.stderr
        );
    }
    assert_eq!(folder.names(), ["a.npy"]);
}

#[cfg(target_os = "linux")]
#[test]
fn an_array_is_not_written_in_the_place_of_the_standard_output() {
    let folder = Folder::new();
    let (array, log) = (folder.write("a.npy", npy("<i4", "False", "(2,)", &[0; 8])), folder.path("log.txt"));
    let script = "(echo before; \"$0\" run \"$1\" --kernel store_at --grid 1 --block 1 --device sim --arg \"inout:$2:/dev/stdout\" --arg i32:0; \
                  echo \"ended $?\") > \"$3\"";
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", script, env!("CARGO_BIN_EXE_kiln"), &faulty(), &array, &log]);
    let outcome = run(shell);
    assert!(outcome.stderr.contains("it is the standard output"), "{}", outcome.stderr);
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "before\nended 2\n");
}
