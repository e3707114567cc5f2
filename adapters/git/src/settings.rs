//! What a repository's configuration says of how its files are looked at (W-32).

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use freehold_store::workspaces::WorkspaceError;

use crate::process::{Git, Run, said_no};

/// The settings that count.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    /// Filters are programs of the user that can make changed content look unchanged; with this
    /// in its environment git has none, and compares what is really there. Not on the command
    /// line: a filter's name may have an equals sign, and any bytes.
    filters_off: Vec<(String, OsString)>,
    /// Whether not all files are checked out.
    pub(crate) is_sparse: bool,
}

impl Settings {
    /// Reads them.
    ///
    /// # Errors
    /// If git cannot be asked, or cannot read them: then nothing may be taken for unchanged.
    pub(crate) fn of(git: &Git, git_dir: &Path) -> Result<Settings, WorkspaceError> {
        let pattern = r"^(filter\..*\.(clean|process|required)|core\.sparsecheckout)$";
        let args = ["config", "-z", "--get-regexp", pattern];
        let run = Run { git_dir: Some(git_dir), ..Run::default() };
        let output = git.run(git_dir, &args, run)?;
        // It ends with 1 where none is set.
        if !output.status.success() && output.status.code() != Some(1) {
            return Err(said_no(git_dir, &args, &output));
        }
        Ok(Settings::parse(&output.stdout))
    }

    fn parse(listed: &[u8]) -> Settings {
        let mut settings = Settings::default();
        let mut count = 0u32;
        for entry in listed.split(|b| *b == 0).filter(|e| !e.is_empty()) {
            // A name alone is a yes.
            let end = entry.iter().position(|b| *b == b'\n');
            let (name, value) =
                end.map_or((entry, &b"true"[..]), |n| (&entry[..n], &entry[n + 1..]));
            if name == b"core.sparsecheckout" {
                // The last one counts. Git knows more ways to say yes; what is not understood
                // hides nothing.
                settings.is_sparse = ["true", "yes", "on", "1"]
                    .iter()
                    .any(|yes| value.eq_ignore_ascii_case(yes.as_bytes()));
                continue;
            }
            let off = if name.ends_with(b".required") { "false" } else { "" };
            let key = OsString::from_vec(name.to_vec());
            settings.filters_off.push((format!("GIT_CONFIG_KEY_{count}"), key));
            settings.filters_off.push((format!("GIT_CONFIG_VALUE_{count}"), off.into()));
            count += 1;
        }
        settings.filters_off.push(("GIT_CONFIG_COUNT".to_owned(), count.to_string().into()));
        settings
    }

    /// The environment that switches filters off.
    pub(crate) fn filters_off(&self) -> Vec<(&str, &OsStr)> {
        self.filters_off.iter().map(|(name, value)| (name.as_str(), value.as_os_str())).collect()
    }
}
