//! A temporary folder for one test, with arrays in it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder that goes away with the test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("kiln-cli-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    /// A path in it, as text.
    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    /// Writes a file.
    pub(crate) fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::write(&path, contents).unwrap();
        path
    }

    /// Writes an array with one dimension.
    pub(crate) fn array(&self, name: &str, descr: &str, len: usize, data: &[u8]) -> String {
        self.write(name, npy(descr, "False", &format!("({len},)"), data))
    }

    /// Writes numbers.
    pub(crate) fn floats(&self, name: &str, list: &[f32]) -> String {
        let bytes: Vec<u8> = list.iter().flat_map(|number| number.to_le_bytes()).collect();
        self.array(name, "<f4", list.len(), &bytes)
    }

    /// Writes rows of numbers.
    pub(crate) fn floats_2d(&self, name: &str, list: &[f32], [rows, columns]: [usize; 2]) -> String {
        let bytes: Vec<u8> = list.iter().flat_map(|number| number.to_le_bytes()).collect();
        self.write(name, npy("<f4", "False", &format!("({rows}, {columns})"), &bytes))
    }

    /// Writes numbers.
    pub(crate) fn integers(&self, name: &str, list: &[i32]) -> String {
        let bytes: Vec<u8> = list.iter().flat_map(|number| number.to_le_bytes()).collect();
        self.array(name, "<i4", list.len(), &bytes)
    }

    /// The header and the data of an array.
    pub(crate) fn read(&self, name: &str) -> (String, Vec<u8>) {
        let file = std::fs::read(self.path(name)).unwrap();
        assert_eq!(&file[..8], b"\x93NUMPY\x01\x00");
        let length = usize::from(u16::from_le_bytes([file[8], file[9]]));
        assert!((10 + length).is_multiple_of(64), "data begins where numpy can map it");
        let header = String::from_utf8(file[10..10 + length].to_vec()).unwrap();
        assert!(header.ends_with('\n'));
        (header.trim_end().to_owned(), file[10 + length..].to_vec())
    }

    /// Names of all files in it, hidden ones too.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A file of version 1, as numpy spells it.
pub(crate) fn npy(descr: &str, fortran: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
    versioned(1, &header, data)
}

/// A file of any version with any header.
pub(crate) fn versioned(version: u8, header: &str, data: &[u8]) -> Vec<u8> {
    let mut file = b"\x93NUMPY".to_vec();
    file.extend([version, 0]);
    match version {
        1 => file.extend((header.len() as u16).to_le_bytes()),
        _ => file.extend((header.len() as u32).to_le_bytes()),
    }
    file.extend(header.as_bytes());
    file.extend(data);
    file
}
