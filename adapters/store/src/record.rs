//! The first outcome of a request as text, so that a lost reply can be answered again (D-19).

use freehold_kernel::{
    Guard, InTheWay, JobId, JobState, Kind, Reason, Refusal, RemovalId, RemovalOutcome, Reply,
    ResourceResult,
};
use serde_json::{Value, json};

use crate::names::{id_of, uuid_text};

/// The text of an accepted reply.
pub fn accepted(reply: &Reply) -> String {
    let value = match *reply {
        Reply::Done => json!({"reply": "done"}),
        Reply::Unchanged => json!({"reply": "unchanged"}),
        Reply::Replayed => json!({"reply": "replayed"}),
        Reply::Queued => json!({"reply": "queued"}),
        Reply::OpenedWithoutEnvironment => json!({"reply": "opened_without_environment"}),
        Reply::Closed => json!({"reply": "closed"}),
        Reply::Adopted => json!({"reply": "adopted"}),
        Reply::Compensated => json!({"reply": "compensated"}),
        Reply::Job { job, state } => {
            json!({"reply": "job", "job": uuid_text(job.0), "state": state.code()})
        }
        Reply::Compensate { guard } => json!({"reply": "compensate", "guard": guard.code()}),
        Reply::Settled { result, reason } => {
            json!({"reply": "settled", "result": result.code(), "reason": reason.code()})
        }
        Reply::NotNow { reason } => json!({"reply": "not_now", "reason": reason.code()}),
        Reply::RemovalSettled { outcome } => {
            json!({"reply": "removal_settled", "outcome": outcome.code()})
        }
        Reply::Permitted { removal } => {
            json!({"reply": "permitted", "removal": uuid_text(removal.0)})
        }
    };
    value.to_string()
}

/// The text of a refusal that will not pass by itself.
pub fn refused(refusal: &Refusal) -> String {
    json!({"refused": refusal.guard.code()}).to_string()
}

/// Reads a recorded outcome back. None if the text is not one: unknown, not absent.
pub fn read(text: &str) -> Option<Result<Reply, Refusal>> {
    let value: Value = serde_json::from_str(text).ok()?;
    if let Some(code) = value.get("refused").and_then(Value::as_str) {
        let guard = Guard::from_code(code)?;
        return Some(Err(Refusal { guard, rows: InTheWay::NONE }));
    }
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    let reply = match text("reply")? {
        "done" => Reply::Done,
        "unchanged" => Reply::Unchanged,
        "queued" => Reply::Queued,
        "opened_without_environment" => Reply::OpenedWithoutEnvironment,
        "closed" => Reply::Closed,
        "adopted" => Reply::Adopted,
        "compensated" => Reply::Compensated,
        "job" => Reply::Job {
            job: JobId(id_of(Kind::JobId, text("job")?)),
            state: JobState::from_code(text("state")?)?,
        },
        "compensate" => Reply::Compensate { guard: Guard::from_code(text("guard")?)? },
        "settled" => Reply::Settled {
            result: ResourceResult::from_code(text("result")?)?,
            reason: Reason::from_code(text("reason")?)?,
        },
        "not_now" => Reply::NotNow { reason: Reason::from_code(text("reason")?)? },
        "removal_settled" => {
            Reply::RemovalSettled { outcome: RemovalOutcome::from_code(text("outcome")?)? }
        }
        "permitted" => {
            Reply::Permitted { removal: RemovalId(id_of(Kind::RemovalId, text("removal")?)) }
        }
        _unknown => return None,
    };
    Some(Ok(reply))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_outcome_comes_back() {
        let replies = [
            Reply::Done,
            Reply::Unchanged,
            Reply::Queued,
            Reply::OpenedWithoutEnvironment,
            Reply::Closed,
            Reply::Adopted,
            Reply::Compensated,
            Reply::Job { job: JobId(7), state: JobState::Pending },
            Reply::Compensate { guard: Guard::PersistUnbarred },
            Reply::Settled { result: ResourceResult::Kept, reason: Reason::Borrowed },
            Reply::NotNow { reason: Reason::InUse },
            Reply::RemovalSettled { outcome: RemovalOutcome::Absent },
            Reply::Permitted { removal: RemovalId(9) },
        ];
        for reply in replies {
            assert_eq!(read(&accepted(&reply)), Some(Ok(reply)));
        }
        let refusal = Refusal { guard: Guard::SessionNotDeleted, rows: InTheWay::NONE };
        assert_eq!(read(&refused(&refusal)), Some(Err(refusal)));
        assert_eq!(read("{}"), None);
        assert_eq!(read("not json"), None);
    }
}
