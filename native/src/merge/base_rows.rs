//! Rows of the base that a run replaces or deletes, found by scanning its keys.

use std::collections::{BTreeMap, HashMap};

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use futures::{StreamExt, TryStreamExt};
use lance::Dataset;
use lance_core::ROW_ADDR;
use lance_table::format::Fragment;

use super::winners::{Verdict, Winners};
use crate::error::{Class, Fault};
use crate::generation::in_order;
use crate::tail::key_digests;

/// Deletion files written at once.
const WRITES_AT_ONCE: usize = 8;

/// What was found, by fragment. A pass that must start again from a newer head
/// only looks at fragments that changed.
#[derive(Default)]
pub struct BaseRows {
    seen: HashMap<u64, Seen>,
}

struct Seen {
    fragment: Fragment,
    /// Offsets in it, and what the run says about the row's key.
    hits: Vec<(u32, Verdict)>,
}

impl BaseRows {
    /// Looks for the run's keys in `base`.
    pub async fn find(
        &mut self,
        base: &Dataset,
        key: &[String],
        winners: &Winners,
    ) -> Result<(), Fault> {
        let fragments = base.fragments();
        let now: HashMap<u64, &Fragment> = fragments.iter().map(|one| (one.id, one)).collect();
        self.seen
            .retain(|id, seen| now.get(id).is_some_and(|one| **one == seen.fragment));
        let unseen: Vec<Fragment> = fragments
            .iter()
            .filter(|one| !self.seen.contains_key(&one.id))
            .cloned()
            .collect();
        if unseen.is_empty() || winners.keys.is_empty() {
            return Ok(());
        }
        let hits = look_for(base, key, winners, unseen.clone()).await?;
        for fragment in unseen {
            let hits = hits.get(&fragment.id).cloned().unwrap_or_default();
            self.seen.insert(fragment.id, Seen { fragment, hits });
        }
        Ok(())
    }

    /// Rows whose key the run deletes.
    pub fn deleted(&self) -> i64 {
        let hits = self.seen.values().flat_map(|seen| &seen.hits);
        hits.filter(|(_, verdict)| *verdict == Verdict::Delete)
            .count() as i64
    }

    /// Addresses of all rows that go.
    pub fn addresses(&self) -> impl Iterator<Item = u64> {
        self.seen.iter().flat_map(|(fragment, seen)| {
            let offsets = seen.hits.iter().map(|(offset, _)| u64::from(*offset));
            offsets.map(move |offset| (fragment << 32) | offset)
        })
    }

    /// Writes down which rows go. Nothing names these files yet.
    pub async fn remove(&self, base: &Dataset) -> Result<Removal, Fault> {
        let touched = self.seen.iter().filter(|(_, seen)| !seen.hits.is_empty());
        let touched: BTreeMap<u64, Vec<u32>> = touched
            .map(|(id, seen)| (*id, seen.hits.iter().map(|(offset, _)| *offset).collect()))
            .collect();
        futures::stream::iter(touched)
            .map(|(id, offsets)| async move {
                let fragment = base.get_fragment(id as usize).ok_or_else(|| {
                    Fault::new(
                        Class::Internal,
                        format!("fragment {id} is not in its version"),
                    )
                })?;
                let left = Box::pin(fragment.extend_deletions(offsets)).await?;
                Ok::<_, Fault>((id, left.map(|one| one.metadata().clone())))
            })
            .buffered(WRITES_AT_ONCE)
            .try_fold(Removal::default(), |mut removal, (id, left)| async move {
                match left {
                    Some(fragment) => removal.updated.push(fragment),
                    None => removal.emptied.push(id),
                }
                Ok(removal)
            })
            .await
    }
}

/// Fragments after some of their rows are gone.
#[derive(Debug, Default)]
pub struct Removal {
    pub updated: Vec<Fragment>,
    /// No row is left of these.
    pub emptied: Vec<u64>,
}

/// By fragment.
type Hits = HashMap<u64, Vec<(u32, Verdict)>>;

async fn look_for(
    base: &Dataset,
    key: &[String],
    winners: &Winners,
    fragments: Vec<Fragment>,
) -> Result<Hits, Fault> {
    let mut scanner = in_order(base);
    scanner.with_fragments(fragments);
    scanner.project(key)?;
    scanner.with_row_address();
    let mut batches = Box::pin(scanner.try_into_stream()).await?;
    let mut hits = Hits::new();
    while let Some(batch) = batches.try_next().await? {
        let addresses = batch
            .column_by_name(ROW_ADDR)
            .and_then(|column| column.as_primitive_opt::<UInt64Type>())
            .ok_or_else(|| Fault::new(Class::Internal, "a scan gave no row addresses"))?;
        let digests = key_digests(&batch, key)?;
        for (address, digest) in addresses.values().iter().zip(digests) {
            if let Some(verdict) = winners.keys.get(&digest) {
                let offset = *address as u32;
                hits.entry(address >> 32)
                    .or_default()
                    .push((offset, *verdict));
            }
        }
    }
    Ok(hits)
}
