//! The cache-impact study without the command: `cache_impact FOLDER [quick]`. Results go into the
//! folder, the page beside them; a folder that has some is gone on with.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use hearth_machine::profile::Profile;
use hearth_studies::StudyError;
use hearth_studies::cache_impact::results::PAGE;
use hearth_studies::cache_impact::{Folder, Options, page, run};
use hearth_sys::Linux;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(folder) = arguments.next().map(PathBuf::from) else {
        return ExitCode::from(2);
    };
    let options = Options {
        quick: arguments.next().as_deref() == Some("quick"),
        ..Options::default()
    };
    // A profile, if one is named: its predictions stand beside the measurements.
    let profile = arguments
        .next()
        .and_then(|path| std::fs::read_to_string(path).ok());
    let profile = profile.and_then(|text| Profile::from_json(&text).ok());
    match study(&options, &folder, profile.as_ref()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ =
                std::io::Write::write_all(&mut std::io::stderr(), format!("{error}\n").as_bytes());
            ExitCode::from(3)
        }
    }
}

fn study(
    options: &Options,
    folder: &std::path::Path,
    profile: Option<&Profile>,
) -> Result<(), StudyError> {
    let cancel = AtomicBool::new(false);
    let (results, _) = run(&Linux, options, folder, true, &cancel, &mut |_| {})?;
    let html = page::page(&results, profile);
    Folder::at(folder).replace(PAGE, html.as_bytes())?;
    Ok(())
}
