//! Names that somebody typed: found, or answered with what there is.

use crate::failure::Failure;

/// The one with this name.
pub(super) fn find<'a, T>(
    what: &str,
    name: &str,
    all: impl Iterator<Item = T>,
    called: impl Fn(&T) -> &'a str,
) -> Result<T, Failure> {
    let mut all: Vec<T> = all.collect();
    match all.iter().position(|one| called(one) == name) {
        Some(at) => Ok(all.swap_remove(at)),
        None => Err(unknown(what, name, &all.iter().map(called).collect::<Vec<_>>())),
    }
}

/// There is none with this name; those that there are, the nearest first.
pub(super) fn unknown(what: &str, name: &str, known: &[&str]) -> Failure {
    let mut by_distance: Vec<(usize, &str)> =
        known.iter().map(|k| (distance(name, k), *k)).collect();
    by_distance.sort();
    by_distance.dedup();
    let Some((_, nearest)) = by_distance.first().copied() else {
        return Failure::Unknown(format!("there is no {what} \"{name}\", and no other either"));
    };
    let rest: Vec<&str> = by_distance.iter().skip(1).map(|(_, k)| *k).collect();
    let rest =
        if rest.is_empty() { String::new() } else { format!("; known too: {}", rest.join(", ")) };
    Failure::Unknown(format!("there is no {what} \"{name}\"; the nearest is \"{nearest}\"{rest}"))
}

/// How many letters have to be changed, put in or taken out.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = i;
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
        for (j, y) in b.iter().enumerate() {
            let next = (diagonal + usize::from(x != *y)).min(row[j] + 1).min(row[j + 1] + 1);
            diagonal = std::mem::replace(&mut row[j + 1], next);
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_comes_first() {
        assert_eq!((distance("", "abc"), distance("kitten", "sitting")), (3, 3));
        let said = unknown("guard", "task_unbared", &["due", "task_unbarred"]).to_string();
        assert!(said.contains("the nearest is \"task_unbarred\"; known too: due"), "{said}");
        assert!(unknown("system", "x", &[]).to_string().contains("no other"));
    }
}
