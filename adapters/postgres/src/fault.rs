//! What PostgreSQL's errors mean.

use std::error::Error as _;

use freehold_store::StoreError;
use tokio_postgres::Error;

/// The failure of one statement.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The server undid everything because of others; the same command may pass now.
    Again(StoreError),
    /// Something stands in the way by a constraint: somebody was faster.
    Taken(StoreError),
    /// The connection is gone, and with it the answer.
    Lost(String),
    /// The functions of the schema are not there (any more).
    OtherSchema(StoreError),
    /// Anything else; the server undid everything.
    Failed(StoreError),
}

impl Fault {
    /// The failure for the caller, where nothing was to be committed.
    pub(crate) fn error(self) -> StoreError {
        match self {
            Fault::Again(e) | Fault::Taken(e) | Fault::OtherSchema(e) | Fault::Failed(e) => e,
            Fault::Lost(detail) => StoreError::Unavailable { detail },
        }
    }
}

/// What a failed statement means; `place` is where the store is, without secrets.
pub(crate) fn of(place: &str, error: &Error) -> Fault {
    let detail = text(error);
    let Some(code) = error.code() else {
        // No answer of the server: the network, or the end of the connection. The rest are
        // values that do not fit their types: our defect.
        let lost = error.is_closed() || source_is_io(error);
        let unfit = detail.contains("error serializing") || detail.contains("error deserializing");
        return match lost || !unfit {
            true => Fault::Lost(detail),
            false => Fault::Failed(StoreError::Defect { detail }),
        };
    };
    match code.code() {
        "40001" | "40P01" => Fault::Again(StoreError::Busy { detail }),
        "23505" | "23503" | "23P01" => Fault::Taken(StoreError::Defect { detail }),
        // The server is going down or ends this connection; whether a commit counted is open.
        "57P01" | "57P02" | "57P05" | "25P03" => Fault::Lost(detail),
        // Said by who stands before the server and lost it: as if nothing had been said.
        "40003" => Fault::Lost(detail),
        code if code.starts_with("08") => Fault::Lost(detail),
        "42883" | "3F000" | "42P01" => {
            Fault::OtherSchema(StoreError::NotAStore { path: place.to_owned(), detail })
        }
        code => Fault::Failed(by_code(place, code, detail)),
    }
}

/// What a failure to connect means.
pub(crate) fn of_connect(place: &str, error: &Error) -> StoreError {
    let detail = text(error);
    match error.code() {
        Some(code) => by_code(place, code.code(), detail),
        // Neither passes by waiting: a password that is not given, TLS that is refused or whose
        // certificate is not trusted.
        None if detail.contains("invalid configuration")
            || (detail.contains("TLS") && !source_is_io_kind_lost(error)) =>
        {
            StoreError::Denied { detail }
        }
        None => StoreError::Unavailable { detail: format!("{place}: {detail}") },
    }
}

fn by_code(place: &str, code: &str, detail: String) -> StoreError {
    let path = place.to_owned();
    match code {
        "55P03" | "57014" | "53300" | "53200" | "53400" | "55006" => StoreError::Busy { detail },
        "53100" => StoreError::DiskFull { detail },
        "25006" => StoreError::ReadOnly { path },
        "42501" => StoreError::Denied { detail },
        code if code.starts_with("28") => StoreError::Denied { detail },
        "3D000" => StoreError::NotAStore { path, detail },
        "XX001" | "XX002" => StoreError::Corrupt { path, detail },
        // A prepared statement is not there: somebody hands out connections between.
        "26000" | "42P05" => {
            StoreError::Defect { detail: format!("{detail}; behind a pooler, set Options::pooler") }
        }
        // Values, constraints, statements, and limits that no later try is below.
        code if ["22", "23", "42", "54"].iter().any(|class| code.starts_with(class)) => {
            StoreError::Defect { detail }
        }
        _other => StoreError::Unavailable { detail },
    }
}

/// The error with its causes: the outer one alone says "db error".
pub(crate) fn text(error: &Error) -> String {
    let mut text = match error.as_db_error() {
        Some(db) => {
            let more = [db.detail(), db.hint()].into_iter().flatten().collect::<Vec<_>>();
            let more =
                if more.is_empty() { String::new() } else { format!(" ({})", more.join("; ")) };
            return format!("{}{more} [{}]", db.message(), db.code().code());
        }
        None => error.to_string(),
    };
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

fn source_is_io(error: &Error) -> bool {
    error.source().is_some_and(|cause| cause.is::<std::io::Error>())
}

/// Whether the network broke in the middle, as opposed to one side saying no.
fn source_is_io_kind_lost(error: &Error) -> bool {
    use std::io::ErrorKind as K;
    error.source().and_then(|cause| cause.downcast_ref::<std::io::Error>()).is_some_and(|io| {
        matches!(
            io.kind(),
            K::ConnectionReset
                | K::ConnectionAborted
                | K::BrokenPipe
                | K::UnexpectedEof
                | K::TimedOut
        )
    })
}
