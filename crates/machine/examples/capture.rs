//! Writes a capture of the machine it runs on to the given path:
//! `cargo run -p hearth-machine --example capture -- machines/NAME/capture.json`. The crate itself
//! reads no files, so this is also the shortest [`Source`] there is.

use std::fs;

use hearth_machine::capture::{Capture, Source};

struct Files;

impl Source for Files {
    fn read(&mut self, path: &str) -> Option<String> {
        let bytes = fs::read(path).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn list(&mut self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect()
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args()
        .nth(1)
        .ok_or("say where to write the capture")?;
    let mut capture = Capture::gather(&mut Files).without_identity();
    capture.tool = concat!("hearth-machine ", env!("CARGO_PKG_VERSION"), " example").into();
    fs::write(path, capture.to_json())?;
    Ok(())
}
