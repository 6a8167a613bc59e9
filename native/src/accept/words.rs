//! What a decision means, in plain sentences.

use super::Stuck;
use super::compare::Compared;
use crate::maintain::count;
use crate::merge::ERASED;

/// Why the shard stands refused, what would be done, and what comes of it.
pub fn sentences(stuck: &Stuck, leave_out: bool, compared: Option<&Compared>) -> Vec<String> {
    let mut said = vec![stuck.cause().to_owned()];
    said.extend(gone(stuck));
    if stuck.plan.listed.is_empty() {
        said.push("no generation is listed now: the next ones are merged".to_owned());
    } else if leave_out {
        said.push(format!(
            "{} not merged: they are taken out of the log, and what is only in them is lost to \
             readers at once and for good once their folders are swept",
            of_generations(stuck),
        ));
    } else {
        said.push(format!(
            "{} merged: new rows come in, rows of a key that the table has are replaced, deletes \
             are applied",
            of_generations(stuck),
        ));
        said.extend(by_key(stuck, compared));
    }
    said.push(match stuck.plan.mark {
        0 => "nothing of the log counts as merged from then on".to_owned(),
        mark => format!("everything up to generation {mark} counts as merged from then on"),
    });
    said
}

/// "2 generations (4 to 5) with at most 10 rows are".
fn of_generations(stuck: &Stuck) -> String {
    let listed = &stuck.plan.listed;
    let numbers = listed.iter().map(|one| one.generation);
    let from_to = match (numbers.clone().min(), numbers.max()) {
        (Some(from), Some(to)) if from < to => format!("{from} to {to}"),
        (from, _) => from.unwrap_or_default().to_string(),
    };
    format!(
        "{} ({from_to}) with at most {} {}",
        count(listed.len() as i64, "generation", "generations"),
        count(stuck.rows(), "row", "rows"),
        match listed.len() {
            1 => "is",
            _ => "are",
        }
    )
}

/// What was merged once and is in the log no longer.
fn gone(stuck: &Stuck) -> Option<String> {
    let (mark, remembered) = (stuck.look.mark, stuck.remembered);
    if stuck.refusal.code != ERASED {
        return Some(format!(
            "what was merged before, up to generation {mark} of the shard as it was, stays in the \
             table as it is",
        ));
    }
    let listed = |number: &u64| {
        stuck
            .plan
            .listed
            .iter()
            .any(|one| one.generation == *number)
    };
    let gone = (mark + 1..=remembered).filter(|number| !listed(number));
    match gone.count() as i64 {
        0 => None,
        number => Some(format!(
            "{} merged up to number {remembered} and {} in the log no longer: what the table lost \
             of them does not come back by this",
            count(number, "generation was", "generations were"),
            match number {
                1 => "is",
                _ => "are",
            },
        )),
    }
}

fn by_key(stuck: &Stuck, compared: Option<&Compared>) -> Option<String> {
    let Some(compared) = compared else {
        let keyed = !stuck.look.base.schema().unenforced_primary_key().is_empty();
        return Some(match keyed {
            true => "they are too big, or of a kind, to be compared with the table here".to_owned(),
            false => "the table has no key: rows that it has already are there twice afterwards"
                .to_owned(),
        });
    };
    Some(format!(
        "of their {}: {} not in the table (one that somebody deleted since comes back), {} another \
         row there, which is replaced, {} deleted, {} the same",
        count(
            compared.added + compared.replaced + compared.deleted + compared.same,
            "key",
            "keys"
        ),
        count(compared.added, "is", "are"),
        count(compared.replaced, "has", "have"),
        count(compared.deleted, "is", "are"),
        count(compared.same, "is", "are"),
    ))
}
