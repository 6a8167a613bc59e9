//! From which mark a shard is merged again. Pure.

use lance_index::mem_wal::SsTable;

use crate::maintain::Refusal;
use crate::merge::Look;
use crate::tail::Record;

/// What a decision about one shard comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The table's mark from then on.
    pub mark: u64,
    /// Generations that it is about, oldest first: merged from then on, or left out.
    pub listed: Vec<SsTable>,
    /// Folders that the commit says the table has, so that they are only taken out.
    pub taken: Vec<SsTable>,
}

impl Plan {
    /// `record`: what the newest merge of ours put down.
    pub fn of(look: &Look, record: Option<&Record>, leave_out: bool) -> Result<Self, Refusal> {
        let ours = |one: &SsTable| {
            one.generation <= look.mark && record.is_some_and(|record| record.checked.takes(one))
        };
        let all = look.merged().into_iter().chain(look.pending());
        let (ours, listed): (Vec<SsTable>, Vec<SsTable>) = all.partition(ours);
        let next = look
            .manifest
            .as_ref()
            .map_or(1, |one| one.current_generation);
        if leave_out {
            let newest = listed.iter().chain(&ours).map(|one| one.generation).max();
            let taken = ours.into_iter().chain(listed.iter().cloned()).collect();
            return Ok(Self {
                mark: newest.unwrap_or(next.saturating_sub(1)),
                listed,
                taken,
            });
        }
        let oldest = listed.iter().map(|one| one.generation).min();
        let mark = oldest.unwrap_or(next).min(next).saturating_sub(1);
        if let Some(one) = ours.iter().find(|one| one.generation > mark) {
            let sentence = format!(
                "shard {} lists generation {}, which we merged, among others that we did not: take \
                 them out together, without merging them",
                look.shard, one.generation
            );
            return Err(Refusal::new("mixed", sentence));
        }
        // Where all are above it, nothing is taken from the mark.
        let mark = match listed.iter().all(|one| one.generation > look.mark) && next > look.mark {
            true => look.mark,
            false => mark,
        };
        Ok(Self {
            mark,
            listed,
            taken: ours,
        })
    }
}
