//! The tables that `docs/tables/` holds, made from the same data that decisions run on. A test
//! compares; so a change of a rule is a visible difference.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::command::Command;
use crate::guard::{Guard, GuardKind};
use crate::machine::MACHINES;
use crate::rows::{Shape, TableId};

/// Every generated file: its name and its text.
pub fn all() -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> =
        MACHINES.iter().map(|m| (format!("machine-{}.md", m.name), m.table())).collect();
    files.push(("commands.md".into(), commands()));
    files.push(("refusals.md".into(), refusals()));
    files.push(("rows.md".into(), rows()));
    files
}

/// Commands with the permission that each needs (D-27).
fn commands() -> String {
    let mut out = String::from(
        "# Commands\n\nEvery command with the permission that it needs (D-27). \
         The steps of a running operation, and quick-chat expiry, may also be taken with the \
         system permission.\n\n| command | permission |\n| --- | --- |\n",
    );
    for (code, permission) in Command::TABLE {
        out.push_str(&format!("| `{code}` | {} |\n", permission.to_ascii_lowercase()));
    }
    out
}

/// Refusals in the promised precedence.
fn refusals() -> String {
    let mut out = String::from(
        "# Refusals\n\nEvery guard, in the order in which guards are tested: if several do not \
         hold, the first is the answer. *Later*: the same command may be accepted later without \
         anybody's act.\n\n| guard | kind | rules | says | what helps | later |\n\
         | --- | --- | --- | --- | --- | --- |\n",
    );
    for guard in Guard::ALL {
        let kind = match guard.kind() {
            GuardKind::Rule => "rule",
            GuardKind::Redundant => "redundant",
            GuardKind::Validation => "validation",
        };
        let later = if guard.may_pass_later() { "yes" } else { "" };
        out.push_str(&format!(
            "| `{}` | {kind} | {} | {} | {} | {later} |\n",
            guard.code(),
            guard.rule(),
            guard.says(),
            guard.help()
        ));
    }
    out
}

/// Tables and columns, in lock order (D, D-26).
fn rows() -> String {
    let mut out = String::from(
        "# Rows\n\nEvery table in lock order (D-26), with its fact columns (what decisions are \
         made on) and its content columns (texts that the kernel never reads). Times and spans \
         are microseconds. Every row also has a `version`.\n",
    );
    for table in TableId::ALL {
        out.push_str(&format!(
            "\n## {}\n\n| column | holds | may be empty |\n| --- | --- | --- |\n",
            table.name()
        ));
        for column in table.columns() {
            let holds = match column.shape {
                Shape::Id(kind) => format!("id of {} {}", article(kind.code()), kind.code()),
                Shape::Int => "number, flag or time".into(),
                Shape::Code(codes) => {
                    let quoted: Vec<String> =
                        codes.iter().filter(|c| !c.is_empty()).map(|c| format!("`{c}`")).collect();
                    quoted.join(", ")
                }
            };
            let empty = if column.nullable { "yes" } else { "" };
            out.push_str(&format!("| `{}` | {holds} | {empty} |\n", column.name));
        }
        for column in table.content() {
            out.push_str(&format!("| `{column}` | text | yes |\n"));
        }
    }
    out
}

fn article(noun: &str) -> &'static str {
    if noun.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" }
}
