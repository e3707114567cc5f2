//! What SQLite's errors mean.

use freehold_store::StoreError;
use rusqlite::{Connection, Error, ErrorCode};

/// The failure of a statement on this connection, other than a COMMIT.
pub(crate) fn of(connection: &Connection, error: &Error) -> StoreError {
    at(connection.path().unwrap_or("the database"), error)
}

/// The failure of something done with the file at this path, other than a COMMIT.
pub(crate) fn at(path: &str, error: &Error) -> StoreError {
    let detail = error.to_string();
    let path = path.to_owned();
    match error.sqlite_error_code() {
        Some(
            ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::FileLockingProtocolFailed,
        ) => StoreError::Busy { detail },
        Some(ErrorCode::ReadOnly) => StoreError::ReadOnly { path },
        Some(ErrorCode::DiskFull) => StoreError::DiskFull { detail },
        Some(ErrorCode::NotADatabase) => StoreError::NotAStore { path, detail },
        Some(ErrorCode::DatabaseCorrupt) => StoreError::Corrupt { path, detail },
        // Guards keep the constraints, so one that is broken is a defect, and so is a statement
        // or a value that SQLite does not take.
        Some(
            ErrorCode::ConstraintViolation
            | ErrorCode::TypeMismatch
            | ErrorCode::ParameterOutOfRange
            | ErrorCode::ApiMisuse
            | ErrorCode::TooBig
            | ErrorCode::Unknown,
        ) => StoreError::Defect { detail },
        Some(_) => StoreError::Unavailable { detail },
        None => StoreError::Defect { detail },
    }
}

/// The failure of a COMMIT: whether it is known that nothing happened.
pub(crate) fn of_commit(connection: &Connection, error: &Error) -> StoreError {
    let found = of(connection, error);
    match found {
        // SQLite says these before it writes the frame that makes a commit.
        StoreError::Busy { .. }
        | StoreError::DiskFull { .. }
        | StoreError::ReadOnly { .. }
        | StoreError::Defect { .. } => found,
        // An input or output error may come after that frame was written: a crash now could
        // still make it count. The request id tells later (D-19).
        _other => StoreError::Unknown { detail: error.to_string() },
    }
}

/// Where a connection's file is.
pub(crate) fn path_of(connection: &Connection) -> String {
    connection.path().unwrap_or("the database").to_owned()
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    #[test]
    fn a_failed_commit_is_unknown_unless_sqlite_rules_it_out() {
        let connection = Connection::open_in_memory().unwrap();
        let failure = |code| Error::SqliteFailure(ffi::Error::new(code), None);
        let of = |code| of_commit(&connection, &failure(code));
        assert!(matches!(of(ffi::SQLITE_BUSY), StoreError::Busy { .. }));
        assert!(matches!(of(ffi::SQLITE_FULL), StoreError::DiskFull { .. }));
        assert!(matches!(of(ffi::SQLITE_CONSTRAINT_FOREIGNKEY), StoreError::Defect { .. }));
        for code in [ffi::SQLITE_IOERR_WRITE, ffi::SQLITE_IOERR_FSYNC, ffi::SQLITE_NOMEM] {
            assert!(matches!(of(code), StoreError::Unknown { .. }), "{code}");
        }
    }
}
