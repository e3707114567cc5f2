//! What is recorded of a process before it may begin, as the text of `process_started_at`: when it
//! started, by the clock of which boot, under which numbers, and the token that all it starts
//! inherits (D-11, S-14).

use std::ffi::OsString;
use std::fmt;

use crate::place::Place;

/// The beginning of the name of the environment variable that carries a token. The token is part
/// of the name, so that a runtime inside a runtime carries both.
pub(crate) const VARIABLE: &str = "FREEHOLD_RUNTIME_";

/// A process as it was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Birth {
    /// Its number.
    pub(crate) pid: u32,
    /// When it started, in clock ticks since its boot.
    pub(crate) ticks: u64,
    /// What the number and the ticks are counted in.
    pub(crate) place: Place,
    /// What its environment carries: 32 hexadecimal digits.
    pub(crate) token: String,
}

impl Birth {
    /// The texts of its row.
    pub(crate) fn texts(&self) -> Vec<(&'static str, String)> {
        vec![("pid", self.pid.to_string()), ("process_started_at", self.to_string())]
    }

    /// Reads the two texts back; none if they are not exactly what [`Birth::texts`] writes. A
    /// text of another program means nothing here.
    pub(crate) fn read(pid: &str, started: &str) -> Option<Birth> {
        let mut words = started.split(' ');
        let mut next = |name: &str| -> Option<String> {
            words.next()?.strip_prefix(name)?.strip_prefix('=').map(str::to_owned)
        };
        let birth = Birth {
            pid: pid.parse().ok().filter(|pid| *pid > 1)?,
            ticks: next("ticks")?.parse().ok()?,
            place: Place {
                boot: next("boot").filter(|boot| !boot.is_empty())?,
                host: next("host")?,
                pids: next("pids")?.parse().ok()?,
                times: next("times")?.parse().ok()?,
            },
            token: next("token").filter(|token| is_token(token))?,
        };
        (words.next().is_none() && birth.to_string() == started).then_some(birth)
    }

    /// The entry of the environment that carries the token.
    pub(crate) fn variable(&self) -> Vec<u8> {
        format!("{VARIABLE}{}=1", self.token).into_bytes()
    }
}

impl fmt::Display for Birth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Birth { ticks, place: Place { host, boot, pids, times }, token, .. } = self;
        write!(f, "ticks={ticks} boot={boot} host={host} pids={pids} times={times} token={token}")
    }
}

fn is_token(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

/// A fresh token.
pub(crate) fn fresh_token() -> String {
    uuid::Uuid::now_v7().simple().to_string()
}

/// The tokens that this process itself carries: those of runtimes that it stands in.
pub(crate) fn own_variables() -> Vec<OsString> {
    let own = std::env::vars_os().map(|(name, _)| name);
    own.filter(|n| n.to_str().is_some_and(|n| n.starts_with(VARIABLE))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn birth() -> Birth {
        Birth {
            pid: 4711,
            ticks: 99,
            place: Place { host: String::new(), boot: "b-1".into(), pids: 3, times: 0 },
            token: fresh_token(),
        }
    }

    #[test]
    fn what_was_written_is_read_back() {
        let birth = birth();
        let texts = birth.texts();
        assert_eq!(Birth::read(&texts[0].1, &texts[1].1), Some(birth));
    }

    #[test]
    fn what_another_program_wrote_means_nothing() {
        let good = birth().to_string();
        assert!(Birth::read("4711", &good).is_some());
        for pid in ["", "0", "1", "-5", "4711x", "99999999999"] {
            assert_eq!(Birth::read(pid, &good), None, "{pid}");
        }
        let short = &good[..good.len() - 1];
        let wrong = [
            "",
            "2024-05-01T00:00:00Z",
            short,
            &format!("{good} more=1"),
            &good.replace("boot=b-1", "boot="),
            &good.replace("ticks=99", "ticks=+99"),
            &good.replace("pids=3", "pids="),
            &good.replace("host=", "hosts="),
            &good.to_uppercase(),
        ];
        for text in wrong {
            assert_eq!(Birth::read("4711", text), None, "{text}");
        }
    }
}
