//! `freehold settings`: the store's one row of them (D-25), as far as people change it by hand.

use clap::Subcommand;
use freehold_kernel::{Permissions, Row, Settings, Span, TableId};
use freehold_store::{HostError, Read, Store, Who};
use serde_json::json;

use crate::failure::Failure;
use crate::ground::{content, host, next, wait};
use crate::place::{StoreArgs, StorePlace};
use crate::show::Show;

/// The arguments of `freehold settings`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    store: StoreArgs,
    /// Who asks; it stands in the journal, and beside the consent.
    #[arg(long, value_name = "NAME", global = true, default_value = "operator")]
    actor: String,
}

#[derive(Subcommand, Debug)]
enum What {
    /// What is set.
    Show,
    /// Change some of them; all instances of the store agree.
    Set {
        /// How long trash is kept for a restore in place: 90s, 15m, 12h, 7d; 0 purges at once.
        #[arg(long, value_name = "SPAN", value_parser = span)]
        trash_retention: Option<Span>,
        /// How long salvage is kept at least; 0 keeps it for ever. Needs --consent.
        #[arg(long, value_name = "SPAN", value_parser = span)]
        salvage_retention: Option<Span>,
        /// The words by which you consent that salvage is lost once its retention has lapsed.
        #[arg(long, value_name = "WORDS")]
        consent: Option<String>,
        /// The most bytes that the salvage of one worktree may take.
        #[arg(long, value_name = "BYTES")]
        salvage_limit: Option<i64>,
    },
}

/// A span out of a number and a unit.
fn span(text: &str) -> Result<Span, String> {
    let help = || format!("{text:?} is no span; write 90s, 15m, 12h, 7d, or 0");
    if text == "0" {
        return Ok(Span(0));
    }
    let mut chars = text.chars();
    let seconds: i64 = match chars.next_back() {
        Some('s') => 1,
        Some('m') => 60,
        Some('h') => 3600,
        Some('d') => 86_400,
        Some(_) | None => return Err(help()),
    };
    let number: i64 = chars.as_str().parse().map_err(|_no_number| help())?;
    let micros = number.checked_mul(seconds).and_then(|s| s.checked_mul(1_000_000));
    micros.filter(|m| *m >= 0).map(Span).ok_or_else(help)
}

pub(crate) fn run(args: &Args, out: &mut Show) -> Result<(), Failure> {
    let place = &args.store.place("settings")?;
    match &args.what {
        What::Show => show(place, out),
        What::Set { trash_retention, salvage_retention, consent, salvage_limit } => {
            let host = host(place)?;
            let who = Who::new(&args.actor, Permissions::ALL);
            let changed = host.change_settings(
                &who,
                |old| Settings {
                    trash_retention: trash_retention.unwrap_or(old.trash_retention),
                    salvage_retention: salvage_retention.unwrap_or(old.salvage_retention),
                    salvage_limit: salvage_limit.unwrap_or(old.salvage_limit),
                    ..old
                },
                consent.as_deref(),
            );
            match changed {
                Ok(()) => show(place, out),
                Err(error) => Err(Failure::Host(error).then(next(&["settings", "show"], place))),
            }
        }
    }
}

fn show(place: &StorePlace, out: &mut Show) -> Result<(), Failure> {
    let store = place.open()?;
    let rows = wait(store.read(&[Read::all(TableId::Settings)]))?;
    let row = rows.view.settings.id(1).copied().unwrap_or(Settings::DEFAULT);
    let by = row.salvage_consent_by.map(|a| rows.names.text(freehold_kernel::Kind::ActorId, a.0));
    let by = by.transpose().map_err(HostError::from)?;
    let words = content(&rows, &row.row_key(), "salvage_consent_words");
    let seconds = |span: Span| span.0 / 1_000_000;
    let consent = row
        .salvage_consent
        .is_some()
        .then(|| json!({"by": by, "at": row.salvage_consent_at.map(|t| t.0), "words": words}));
    let value = json!({
        "ok": true,
        "trash_retention_seconds": seconds(row.trash_retention),
        "salvage_retention_seconds": seconds(row.salvage_retention),
        "salvage_consent": consent,
        "salvage_limit_bytes": row.salvage_limit,
        "max_tries": row.max_tries,
        "root_patience_seconds": seconds(row.root_patience),
    });
    let salvage = match (&by, row.salvage_retention.0) {
        (Some(by), 1..) => {
            format!("{} s, consented by {by}: {words}", seconds(row.salvage_retention))
        }
        (_, _) => "for ever".to_owned(),
    };
    out.say(&format!("trash is kept {} s", seconds(row.trash_retention)));
    out.say(&format!("salvage is kept {salvage}"));
    out.result(&value, &format!("salvage of one worktree may take {} bytes", row.salvage_limit));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_a_number_and_a_unit_and_nothing_else() {
        assert_eq!(span("0"), Ok(Span(0)));
        assert_eq!(span("90s"), Ok(Span::seconds(90)));
        assert_eq!(span("7d"), Ok(Span::hours(7 * 24)));
        for wrong in ["", "d", "7", "-1d", "1.5h", "7w", "99999999999999999d", "7 d"] {
            assert!(span(wrong).is_err(), "{wrong}");
        }
    }
}
