//! The programs: Insense ones by the command, C ones and preloaded libraries by the C compiler.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hearth_toolchain::{Compiler, FLAGS};

use super::layouts::Hand;
use super::ways::{PRIVATE_HEAPS, SHARED_HEAP};
use super::workloads::{Load, Workload};
use crate::{StudyError, kept};

/// The shared text that C programs need.
const COMMON: &str = include_str!("c/common.h");

/// A folder where programs are built and kept, each once.
#[derive(Debug)]
pub struct Workshop {
    folder: PathBuf,
    hearth: PathBuf,
    compiler: Compiler,
    built: BTreeMap<String, PathBuf>,
}

impl Workshop {
    /// Creates a workshop in this folder, with this `hearth`.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn new(folder: &Path, hearth: &Path) -> Result<Workshop, StudyError> {
        let cannot = |error| kept::file("make the folder", folder, error);
        fs::create_dir_all(folder).map_err(cannot)?;
        let compiler = Compiler::find().map_err(|error| StudyError::Program {
            program: "cc".into(),
            error: std::io::Error::new(std::io::ErrorKind::NotFound, error),
        })?;
        Ok(Workshop {
            folder: folder.canonicalize().map_err(cannot)?,
            hearth: hearth.to_owned(),
            compiler,
            built: BTreeMap::new(),
        })
    }

    /// The command.
    #[must_use]
    pub fn hearth(&self) -> &Path {
        &self.hearth
    }

    /// The folder that holds everything.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A load in Insense: its text, and the executable made of it.
    ///
    /// # Errors
    /// A file cannot be written, or the command does not build it.
    pub fn insense(
        &mut self,
        load: &Load,
        hand: Option<Hand>,
        cores: &[usize],
    ) -> Result<(PathBuf, PathBuf), StudyError> {
        let layout = hand.map_or(String::new(), |hand| format!("-{hand:?}").to_lowercase());
        // Loads of one name may differ in passes: the memory's, those under Cachegrind.
        let name = format!("{}-{}{layout}", load.id(), load.passes);
        let text = self.folder.join(format!("{name}.isf"));
        if let Some(program) = self.built.get(&name) {
            return Ok((text, program.clone()));
        }
        self.write(&text, &load.insense(hand, cores))?;
        let program = self.folder.join(&name);
        let mut command = Command::new(&self.hearth);
        command.arg("build").arg(&text).arg("-o").arg(&program);
        self.make(name, program.clone(), command)?;
        Ok((text, program))
    }

    /// Builds a workload in C, for arrays of `rows` rows.
    ///
    /// # Errors
    /// A file cannot be written, or there is no C compiler.
    pub fn c(&mut self, workload: Workload, rows: u32) -> Result<PathBuf, StudyError> {
        let name = format!("c-{}-{rows}", workload.id());
        if let Some(program) = self.built.get(&name) {
            return Ok(program.clone());
        }
        self.write(&self.folder.join("common.h"), COMMON)?;
        let text = self.folder.join(format!("c-{}.c", workload.id()));
        self.write(&text, c_text(workload))?;
        let program = self.folder.join(&name);
        let mut command = self.compiler.command();
        command.args(FLAGS).arg(format!("-DROWS={rows}"));
        command.arg("-o").arg(&program).arg(&text).arg("-lpthread");
        self.make(name, program.clone(), command)?;
        Ok(program)
    }

    /// Builds a library to preload.
    ///
    /// # Errors
    /// As for [`Workshop::c`].
    pub fn preload(&mut self, of: &str, flags: &[&str]) -> Result<PathBuf, StudyError> {
        let name = format!("{of}{}", flags.concat().replace("-D", "-").to_lowercase());
        if let Some(object) = self.built.get(&name) {
            return Ok(object.clone());
        }
        let text = self.folder.join(format!("{of}.c"));
        self.write(&text, preload_text(of))?;
        let object = self.folder.join(format!("{name}.so"));
        let mut command = self.compiler.command();
        command
            .args([
                "-std=c11",
                "-O2",
                "-fno-builtin",
                "-Wall",
                "-shared",
                "-fPIC",
            ])
            .args(flags);
        command
            .arg("-o")
            .arg(&object)
            .arg(&text)
            .args(["-lpthread", "-ldl"]);
        self.make(name, object.clone(), command)?;
        Ok(object)
    }

    fn write(&self, path: &Path, text: &str) -> Result<(), StudyError> {
        fs::write(path, text).map_err(|error| kept::file("write", path, error))
    }

    fn make(
        &mut self,
        name: String,
        made: PathBuf,
        mut command: Command,
    ) -> Result<(), StudyError> {
        let program = PathBuf::from(command.get_program());
        let output = command
            .stdin(Stdio::null())
            .env_remove("LD_PRELOAD")
            .output()
            .map_err(|error| StudyError::Program {
                program: program.clone(),
                error,
            })?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let what = name;
            return Err(StudyError::NotBuilt {
                what,
                with: program,
                said,
            });
        }
        self.built.insert(name, made);
        Ok(())
    }
}

fn c_text(workload: Workload) -> &'static str {
    match workload {
        Workload::Alloc => include_str!("c/alloc.c"),
        Workload::Cache => include_str!("c/cache.c"),
        Workload::SenderReceiver => include_str!("c/sender-receiver.c"),
        Workload::ClientServer => include_str!("c/client-server.c"),
        Workload::DispatchWorker => include_str!("c/dispatch-worker.c"),
        Workload::NoCommunication => include_str!("c/no-communication.c"),
    }
}

fn preload_text(of: &str) -> &'static str {
    debug_assert!([SHARED_HEAP, PRIVATE_HEAPS].contains(&of));
    match of {
        PRIVATE_HEAPS => include_str!("c/source-private.c"),
        _ => include_str!("c/source-heap.c"),
    }
}
