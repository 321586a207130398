//! `kiln cache`.

use std::process::{Command, Stdio};
use std::time::Duration;

use kiln::code_cache::{CacheConfig, CacheEntry, CachePlace, DiskCache, EntryKind, KeyBuilder, Surroundings};

use crate::folder::Folder;
use crate::outcome::{Outcome, command, run};
use crate::skip;

/// A cache with so many entries of a thousand bytes, each of which took a quarter of a second to make.
fn filled(folder: &Folder, entries: u32) -> DiskCache {
    let place = CachePlace::At(folder.path("kiln").into());
    let cache = DiskCache::new(&CacheConfig { place, ..CacheConfig::default() }, &Surroundings::default());
    for entry in 0..entries {
        let key = KeyBuilder::new().part("entry", &entry.to_le_bytes()).finish();
        let (kind, compile_time) = (EntryKind::Ptx, Duration::from_millis(250));
        let kernels = vec![format!("axpy_{entry}"), "scale<float>".to_owned()];
        cache.put(&key, &CacheEntry { kind, compile_time, kernels, payload: vec![entry as u8; 1000] });
    }
    cache
}

fn cache(folder: &Folder, words: &[&str]) -> Outcome {
    let mut command: Command = command(&[&["cache"], words].concat());
    command.env("XDG_CACHE_HOME", folder.path(""));
    run(command)
}

#[test]
fn the_choice_of_an_algorithm_is_listed_with_its_product_and_cleared() {
    let folder = Folder::new();
    let (key, kernels) = (
        KeyBuilder::new().part("algorithm of", b"a product").finish(),
        vec!["blas.matmul m=64 n=64".to_owned()],
    );
    let (kind, compile_time) = (EntryKind::Algorithm, Duration::from_millis(5));
    filled(&folder, 0).put(&key, &CacheEntry { kind, compile_time, kernels, payload: vec![0; 24] });
    let listed = cache(&folder, &["list"]);
    assert!(listed.stdout.contains("blas.matmul m=64 n=64"), "{}", listed.stdout);
    assert_eq!(cache(&folder, &["clear"]).code, Some(0));
    assert!(cache(&folder, &["list"]).stdout.contains("0 entries"));
}

#[test]
fn entries_are_listed_in_the_folder_of_the_user_or_another() {
    let folder = Folder::new();
    assert!(cache(&folder, &["list"]).stdout.contains("0 entries"), "a folder that is not there is empty");
    let keys: Vec<String> =
        filled(&folder, 3).list().unwrap().iter().map(|entry| entry.key.to_string()).collect();
    let listed = cache(&folder, &["list"]);
    assert_eq!(listed.code, Some(0));
    assert!(keys.iter().all(|key| listed.stdout.contains(&key[..16])), "{}", listed.stdout);
    assert!(
        listed.stdout.contains("3 entries") && listed.stdout.contains("750 ms of compile time"),
        "{}",
        listed.stdout
    );
    assert_eq!(listed.stdout.matches("250 ms").count(), 3, "{}", listed.stdout);
    let json = cache(&folder, &["list", "--json"]).json();
    assert_eq!(json["entries"].as_array().unwrap().len(), 3);
    assert_eq!(
        json["bytes"].as_u64().unwrap(),
        json["entries"].as_array().unwrap().iter().map(|entry| entry["bytes"].as_u64().unwrap()).sum::<u64>()
    );
    assert_eq!(json["compile_nanoseconds"], 750_000_000);
    assert_eq!(json["entries"][0]["compile_nanoseconds"], 250_000_000);
    assert!(listed.stdout.contains("axpy_2, scale<float>"), "{}", listed.stdout);
    let names = json["entries"].as_array().unwrap().iter().map(|entry| entry["kernels"][0].as_str().unwrap());
    assert_eq!(names.collect::<std::collections::BTreeSet<_>>(), ["axpy_0", "axpy_1", "axpy_2"].into());
    let elsewhere = cache(&folder, &["list", "--at", &folder.path("other"), "--json"]).json();
    assert_eq!(elsewhere["entries"].as_array().unwrap().len(), 0);
    let nothing = cache(&folder, &["verify", "--at", &folder.path("other")]);
    assert_eq!((nothing.code, nothing.stdout.as_str()), (Some(2), ""), "{}", nothing.stderr);
    assert!(nothing.stderr.contains("the folder does not exist"), "{}", nothing.stderr);
    for action in ["list", "prune", "clear"] {
        let nowhere = cache(&folder, &[action, "--at", &folder.path("other")]);
        assert_eq!(nowhere.code, Some(0), "{action}: {}", nowhere.stderr);
        assert!(
            nowhere.stdout.contains("other (the folder does not exist): "),
            "{action}: {}",
            nowhere.stdout
        );
    }
    assert!(!listed.stdout.contains("does not exist"), "{}", listed.stdout);
}

#[test]
fn kernels_are_listed_by_the_names_of_the_source() {
    let folder = Folder::new();
    let store = filled(&folder, 0);
    let key = KeyBuilder::new().part("entry", b"mangled").finish();
    let kernels = vec!["_Z5saxpyfPKfPfj".to_owned(), "_Z4fillIfEvPT_".to_owned(), "plain".to_owned()];
    let (kind, compile_time) = (EntryKind::Ptx, Duration::from_millis(250));
    store.put(&key, &CacheEntry { kind, compile_time, kernels: kernels.clone(), payload: vec![1] });
    let listed = cache(&folder, &["list"]).stdout;
    assert!(listed.contains("saxpy, fill<float>, plain") && !listed.contains("_Z"), "{listed}");
    let json = cache(&folder, &["list", "--json"]).json();
    assert_eq!(json["entries"][0]["kernels"], serde_json::json!(kernels), "JSON has them as in the PTX");
}

#[test]
fn damage_is_found_and_ends_with_5() {
    let folder = Folder::new();
    let store = filled(&folder, 2);
    assert_eq!(cache(&folder, &["verify"]).code, Some(0));
    let key = store.list().unwrap()[0].key;
    let path = store.folder().unwrap().join(format!("{key}.kiln"));
    let mut bytes = std::fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let json = cache(&folder, &["verify", "--json"]);
    assert_eq!(json.code, Some(5));
    let json = json.json();
    assert_eq!((json["good"].as_u64(), json["exit"].as_u64()), (Some(1), Some(5)));
    let text = cache(&folder, &["verify"]);
    assert_eq!(text.code, Some(5));
    assert!(text.stdout.contains("damaged") && text.stdout.contains("checksum"), "{}", text.stdout);
}

#[test]
fn an_entry_of_another_version_is_listed_and_is_no_damage() {
    let folder = Folder::new();
    let store = filled(&folder, 1);
    let path = store.folder().unwrap().join(format!("{}.kiln", store.list().unwrap()[0].key));
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[8] ^= 0xff;
    std::fs::write(&path, bytes).unwrap();
    let verified = cache(&folder, &["verify", "--json"]);
    assert_eq!(verified.code, Some(0), "{}", verified.stdout);
    assert_eq!(verified.json()["files"][0]["verdict"], "other version");
    let listed = cache(&folder, &["list"]);
    assert!(listed.stdout.contains("unknown"), "{}", listed.stdout);
    assert_eq!(
        cache(&folder, &["list", "--json"]).json()["entries"][0]["compile_nanoseconds"],
        serde_json::json!(null)
    );
    assert!(cache(&folder, &["prune", "--limit", "0"]).stdout.contains("0 bytes left"));
}

#[test]
fn pruning_keeps_what_was_used_last_and_clearing_keeps_nothing() {
    let folder = Folder::new();
    let store = filled(&folder, 4);
    let size = store.list().unwrap()[0].bytes;
    let limit = (2 * size).to_string();
    let pruned = cache(&folder, &["prune", "--limit", &limit, "--json"]).json();
    assert_eq!(
        (pruned["freed_bytes"].as_u64(), pruned["left_bytes"].as_u64()),
        (Some(2 * size), Some(2 * size))
    );
    let left = cache(&folder, &["prune", "--json"]).json();
    assert_eq!(left["freed_bytes"].as_u64(), Some(0), "the usual limit is far away");
    assert!(cache(&folder, &["clear"]).stdout.contains("0 bytes left"));
    assert_eq!(store.list().unwrap().len(), 0);
}

#[test]
fn wrong_words_and_a_folder_that_is_none_end_with_2() {
    let folder = Folder::new();
    for words in [&[][..], &["burn"], &["prune", "--limit", "8 gigs"]] {
        assert_eq!(cache(&folder, words).code, Some(2), "{words:?}");
    }
    let file = folder.write("file", "no folder");
    let outcome = cache(&folder, &["list", "--at", &file]);
    assert_eq!(outcome.code, Some(2), "{}", outcome.stdout);
    assert!(outcome.stderr.contains(&file), "{}", outcome.stderr);
}

#[test]
fn processes_that_compile_the_same_at_once_leave_one_good_entry() {
    if skip::without_nvrtc("processes_that_compile_the_same_at_once_leave_one_good_entry") {
        return;
    }
    let folder = Folder::new();
    let file = folder.write("k.cu", "extern \"C\" __global__ void k(int* out) { out[0] = 1; }");
    let started: Vec<_> = (0..4)
        .map(|_| {
            let mut inspect = command(&["inspect", &file, "--json"]);
            inspect.env("XDG_CACHE_HOME", folder.path("")).stdout(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let ended: Vec<_> = started.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
    assert!(ended.iter().all(|output| output.status.success() && output.stdout == ended[0].stdout));
    let verified = cache(&folder, &["verify", "--json"]).json();
    assert_eq!((verified["good"].as_u64(), verified["files"].as_array().unwrap().len()), (Some(1), 1));
}

#[test]
fn another_compiler_makes_another_entry() {
    if skip::without_nvrtc("another_compiler_makes_another_entry") {
        return;
    }
    let folder = Folder::new();
    let file = folder.write("k.cu", "extern \"C\" __global__ void k(int* out) { out[0] = 1; }");
    let compiled_with = |compiler: &std::path::Path| {
        let mut inspect = command(&["inspect", &file]);
        inspect.env("XDG_CACHE_HOME", folder.path("")).env("KILN_NVRTC", compiler);
        let outcome = run(inspect);
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        cache(&folder, &["list", "--json"]).json()["entries"].as_array().unwrap().len()
    };
    let compiler = kiln::libraries::find(kiln::libraries::Library::Nvrtc).unwrap().path;
    assert_eq!(compiled_with(&compiler), 1);
    assert_eq!(compiled_with(&compiler), 1, "the second time it is there");

    // The same library as a separate file, with what it loads beside it.
    let (own, real) = (folder.path("own"), compiler.canonicalize().unwrap());
    std::fs::create_dir(&own).unwrap();
    for entry in std::fs::read_dir(real.parent().unwrap()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if name.starts_with("libnvrtc-builtins") {
            std::os::unix::fs::symlink(&path, format!("{own}/{name}")).unwrap();
        }
    }
    let copy = std::path::PathBuf::from(format!("{own}/{}", real.file_name().unwrap().to_str().unwrap()));
    std::fs::copy(&real, &copy).unwrap();
    assert_eq!(compiled_with(&copy), 2, "another build under the same name is another compiler");
}
