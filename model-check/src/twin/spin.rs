//! The other side: SPIN on `promela/twin.pml`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

/// The Promela twin.
const PROMELA: &str = include_str!("../../promela/twin.pml");

/// A verifier that SPIN made of the twin, in a folder of its own that goes with it.
#[derive(Debug)]
pub struct Pan {
    folder: PathBuf,
}

/// What a verifier said.
#[derive(Clone, Debug)]
pub struct Said {
    /// Everything.
    pub text: String,
    /// Unique states.
    pub states: u64,
    /// Transitions, the step to the initial state included.
    pub transitions: u64,
    /// Errors.
    pub errors: u64,
}

impl Pan {
    /// Makes the verifier: SPIN with these definitions (`NS=3`), the C compiler with these flags.
    ///
    /// # Errors
    /// What is missing and how to install it, or what the tool said.
    pub fn make(definitions: &[&str], flags: &[&str]) -> Result<Pan, String> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("freehold-twin-{}-{number}", std::process::id());
        let pan = Pan { folder: std::env::temp_dir().join(name) };
        std::fs::create_dir_all(&pan.folder).map_err(|e| pan.failed("the folder", &e))?;
        std::fs::write(pan.folder.join("twin.pml"), PROMELA)
            .map_err(|e| pan.failed("the twin", &e))?;
        let mut spin = Command::new("spin");
        spin.arg("-a").args(definitions.iter().map(|d| format!("-D{d}"))).arg("twin.pml");
        run(spin.current_dir(&pan.folder), "spin", "spin")?;
        let mut cc = Command::new("cc");
        cc.args(flags).args(["-o", "pan", "pan.c"]);
        run(cc.current_dir(&pan.folder), "cc", "gcc")?;
        Ok(pan)
    }

    fn failed(&self, what: &str, error: &dyn std::fmt::Display) -> String {
        format!("{what} in {}: {error}", self.folder.display())
    }

    /// The verifier's file.
    pub fn program(&self) -> PathBuf {
        self.folder.join("pan")
    }

    /// Runs it.
    ///
    /// # Errors
    /// It did not come to an end of its own.
    pub fn run(&self, arguments: &[&str]) -> Result<Said, String> {
        let mut pan = Command::new(self.program());
        let output = run(pan.args(arguments).current_dir(&self.folder), "pan", "spin")?;
        said(&String::from_utf8_lossy(&output.stdout), &self.folder)
    }
}

impl Drop for Pan {
    fn drop(&mut self) {
        // What is left behind in the folder for temporary files does no harm.
        let _gone = std::fs::remove_dir_all(&self.folder);
    }
}

fn run(command: &mut Command, name: &str, package: &str) -> Result<Output, String> {
    let output = command.output().map_err(|e| {
        format!("`{name}` does not run ({e}): install it; on Debian and Ubuntu, apt-get install {package}")
    })?;
    if output.status.success() {
        return Ok(output);
    }
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Err(format!("`{name}` failed: {out}{err}"))
}

fn said(text: &str, folder: &Path) -> Result<Said, String> {
    let cut = ["max search depth too small", "Search not completed", "out of memory"];
    let number = |after: &str, before: &str| -> Option<u64> {
        let line = text.lines().find(|l| l.contains(after) && l.contains(before))?;
        let end = if before.is_empty() { line.len() } else { line.find(before)? };
        let start = if after.is_empty() { 0 } else { line.find(after)? + after.len() };
        let field = line.get(start..end)?.trim();
        field.split(|c: char| !c.is_ascii_digit()).next().and_then(|n| n.parse().ok())
    };
    let found =
        (number("", " states, stored"), number("", " transitions (="), number("errors: ", ""));
    let (Some(states), Some(transitions), Some(errors)) = found else {
        return Err(format!("no figures from {}: {text}", folder.display()));
    };
    if errors == 0 && cut.iter().any(|c| text.contains(c)) {
        return Err(format!("the verifier was cut short: {text}"));
    }
    Ok(Said { text: text.to_owned(), states, transitions, errors })
}
