//! The commit statement (A-11): one function in the store's schema. It locks what a decision was
//! made on in the fixed order (D-26), looks whether it still stands, and writes. It knows no rule.
//!
//! The text is made from the kernel's declaration of its tables, so that all statements in it are
//! fixed: the server plans each once per connection.

use std::fmt::Write as _;

use freehold_kernel::TableId;

use crate::sql::{all, keys, listed, quoted, table};

/// The function's name, with the schema's version in it: a program of another version finds no
/// function and learns why.
pub(crate) const NAME: &str = "commit_1";

/// The statement that calls it with one text.
pub(crate) fn call(schema: &str) -> String {
    format!("SELECT {}.{NAME}($1::text::jsonb)", quoted(schema))
}

/// The function's definition. Its argument has these members, each of which may be missing:
///
/// | member | what it is |
/// | --- | --- |
/// | `wait` | milliseconds that one lock is waited for; without it, as the session says |
/// | `guards` | `[number, exclusive]`, ascending: values that no row, or only known rows, have |
/// | `rows` | by table: `x` the strength, `k` ids, (`p` kinds,) `v` versions, `a` absent ids |
/// | `only` | true: take the locks, look at nothing, write nothing |
/// | `sets` | `q` a query that counts, `v` its values, `n` how many there must be |
/// | `delete`, `update`, `insert` | by table: keys, or rows by column |
/// | `journal` | lines, oldest first |
/// | `notify` | the channel that is told |
pub(crate) fn definition(schema: &str) -> String {
    let s = quoted(schema);
    let mut sql = format!(
        r"CREATE FUNCTION {s}.{NAME}(p jsonb) RETURNS boolean LANGUAGE plpgsql AS $freehold$
DECLARE
    e jsonb; w jsonb; n bigint; k text[]; q text[]; v bigint[]; x text;
    -- Each is taken out of the whole once, not once for every table.
    to_lock jsonb := p->'rows'; to_delete jsonb := p->'delete';
    to_update jsonb := p->'update'; to_insert jsonb := p->'insert';
    only_lock boolean := coalesce((p->>'only')::boolean, false);
BEGIN
    IF p ? 'wait' THEN PERFORM set_config('lock_timeout', p->>'wait', true); END IF;
    -- Values before rows, each in order: nobody waits in a circle.
    FOR e IN SELECT jsonb_array_elements(p->'guards') LOOP
        IF (e->>1)::boolean THEN
            PERFORM pg_advisory_xact_lock((e->>0)::bigint);
        ELSE
            PERFORM pg_advisory_xact_lock_shared((e->>0)::bigint);
        END IF;
    END LOOP;
"
    );
    for id in TableId::ALL {
        lock(&mut sql, schema, *id);
    }
    sql.push_str(
        r"
    IF only_lock THEN RETURN true; END IF;
    -- Sets without an anchor: their values are guarded, so what is counted now stays.
    FOR e IN SELECT jsonb_array_elements(p->'sets') LOOP
        EXECUTE e->>'q' INTO n USING ARRAY(SELECT jsonb_array_elements_text(e->'v'));
        IF n <> (e->>'n')::bigint THEN RETURN false; END IF;
    END LOOP;

    -- What goes first, what comes last: a slot may pass from one row to another.
",
    );
    sql.push_str("\n    IF to_delete IS NOT NULL THEN\n");
    for id in TableId::ALL {
        delete(&mut sql, schema, *id);
    }
    sql.push_str("    END IF;\n");
    sql.push_str("\n    IF to_update IS NOT NULL THEN\n");
    for id in TableId::ALL {
        update(&mut sql, schema, *id);
    }
    sql.push_str("    END IF;\n");
    sql.push_str("\n    IF to_insert IS NOT NULL THEN\n");
    for id in TableId::ALL {
        insert(&mut sql, schema, *id);
    }
    sql.push_str("    END IF;\n");
    let _ = write!(
        sql,
        r"
    w := p->'journal';
    IF w IS NOT NULL THEN
        -- The transaction has its id before its lines have their numbers: a reader that finds a
        -- number missing then knows for whom to wait (A-13).
        PERFORM pg_current_xact_id();
        INSERT INTO {s}.journal
            (seq, at, actor, command, cause, subject_table, subject, event, detail)
        SELECT nextval('{sequence}'), (l.v->>'at')::bigint, l.v->>'actor', l.v->>'command',
            l.v->>'cause', l.v->>'subject_table', l.v->>'subject', l.v->>'event', l.v->>'detail'
        FROM jsonb_array_elements(w) WITH ORDINALITY AS l(v, o) ORDER BY l.o;
        IF p ? 'notify' THEN PERFORM pg_notify(p->>'notify', ''); END IF;
    END IF;
    RETURN true;
END
$freehold$;
",
        sequence = format!("{s}.journal_seq").replace('\'', "''"),
    );
    sql
}

/// Locks the rows of one table by key and compares their versions; then looks that what was
/// absent still is.
fn lock(sql: &mut String, schema: &str, id: TableId) {
    let name = table(schema, id);
    let two = keys(id).len() == 2;
    let (columns, same, kinds, absent) = if two {
        (
            "t.id, t.kind, t.version",
            "AND r.kind = d.kind ",
            "q := ARRAY(SELECT jsonb_array_elements_text(e->'p'));\n        ",
            "(t.id, t.kind) IN (SELECT a->>0, a->>1 FROM jsonb_array_elements(e->'a') a)",
        )
    } else if crate::sql::is_number(id, "id").unwrap_or(false) {
        (
            "t.id::text, t.version",
            "",
            "",
            "t.id::text IN (SELECT jsonb_array_elements_text(e->'a'))",
        )
    } else {
        ("t.id, t.version", "", "", "t.id = ANY (ARRAY(SELECT jsonb_array_elements_text(e->'a')))")
    };
    let of = match (two, columns.contains("id::text")) {
        (true, _) => "WHERE (t.id, t.kind) IN (SELECT * FROM unnest(k, q)) ORDER BY t.id, t.kind",
        (_, true) => "WHERE t.id = ANY (k::bigint[]) ORDER BY t.id",
        _ => "WHERE t.id = ANY (k) ORDER BY t.id",
    };
    let expected = if two {
        "unnest(k, q, v) AS d(id, kind, version)"
    } else {
        "unnest(k, v) AS d(id, version)"
    };
    let _ = write!(
        sql,
        r"
    e := to_lock->'{plain}';
    IF e IS NOT NULL THEN
        k := ARRAY(SELECT jsonb_array_elements_text(e->'k'));
        v := ARRAY(SELECT jsonb_array_elements_text(e->'v')::bigint);
        {kinds}x := e->>'x';
",
        plain = id.name(),
    );
    let mut word = "IF";
    for (strength, clause) in
        [("update", "FOR UPDATE"), ("change", "FOR NO KEY UPDATE"), ("read", "FOR SHARE"), ("", "")]
    {
        let _ = write!(
            sql,
            "        {head}
            SELECT count(*) INTO n FROM (SELECT {columns} FROM {name} t {of} {clause}) r
            JOIN {expected} ON r.id = d.id {same}AND r.version = d.version;
",
            head = if strength.is_empty() {
                "ELSE".to_owned()
            } else {
                format!("{word} x = '{strength}' THEN")
            },
        );
        word = "ELSIF";
    }
    let _ = write!(
        sql,
        r"        END IF;
        IF NOT only_lock THEN
            IF n <> cardinality(k) THEN RETURN false; END IF;
            IF e ? 'a' AND EXISTS (SELECT FROM {name} t WHERE {absent}) THEN RETURN false; END IF;
        END IF;
    END IF;
"
    );
}

fn delete(sql: &mut String, schema: &str, id: TableId) {
    let name = table(schema, id);
    let _ = write!(
        sql,
        r"
    w := to_delete->'{plain}';
    IF w IS NOT NULL THEN
        DELETE FROM {name} t USING jsonb_array_elements(w) r WHERE {matches};
    END IF;
",
        plain = id.name(),
        matches = key_match(id),
    );
}

/// How a row of a table is found by the member of an array, in words that use its index.
fn key_match(id: TableId) -> String {
    let parts: Vec<String> = keys(id)
        .iter()
        .map(|key| {
            let number = crate::sql::is_number(id, key).unwrap_or(false);
            let cast = if number { "::bigint" } else { "" };
            format!("t.{key} = (r->>'{key}'){cast}")
        })
        .collect();
    parts.join(" AND ")
}

/// The row as it stands is the base of the row that is written, so that columns which did not
/// change keep what this build may not be able to read (C-10).
fn update(sql: &mut String, schema: &str, id: TableId) {
    let columns = all(id);
    let _ = write!(
        sql,
        r"
    w := to_update->'{plain}';
    IF w IS NOT NULL THEN
        UPDATE {name} t SET ({columns}) =
            (SELECT {values} FROM jsonb_populate_record(t, r) u)
        FROM jsonb_array_elements(w) r WHERE {matches};
        GET DIAGNOSTICS n = ROW_COUNT;
        IF n <> jsonb_array_length(w) THEN
            RAISE EXCEPTION 'rows of {plain} to update: % of %', n, jsonb_array_length(w);
        END IF;
    END IF;
",
        plain = id.name(),
        name = table(schema, id),
        columns = listed("", &columns),
        values = listed("u.", &columns),
        matches = key_match(id),
    );
}

fn insert(sql: &mut String, schema: &str, id: TableId) {
    let columns = all(id);
    let _ = write!(
        sql,
        r"
    w := to_insert->'{plain}';
    IF w IS NOT NULL THEN
        INSERT INTO {name} ({columns})
        SELECT {values} FROM jsonb_populate_recordset(NULL::{name}, w) u;
    END IF;
",
        plain = id.name(),
        name = table(schema, id),
        columns = listed("", &columns),
        values = listed("u.", &columns),
    );
}
