//! Which rows of a run count: of each key the newest. Only keys are read, and of
//! each only a digest is kept.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use arrow_array::builder::BooleanBufferBuilder;
use arrow_array::{BooleanArray, RecordBatch};
use futures::TryStreamExt;
use lance::dataset::write::merge_insert::inserted_rows::{
    KeyExistenceFilter, KeyExistenceFilterBuilder, KeyValue, extract_key_value_from_batch,
};
use lance_core::datatypes::Schema;
use uuid::Uuid;

use super::run::Run;
use crate::error::Fault;
use crate::generation::{self, Generation};
use crate::tail::key_digests;

/// The table's key; no columns: it has none.
#[derive(Clone, Debug, Default)]
pub struct Key {
    pub columns: Vec<String>,
    ids: Vec<i32>,
}

impl Key {
    pub fn of(schema: &Schema) -> Self {
        let fields = schema.unenforced_primary_key();
        Self {
            columns: fields.iter().map(|field| field.name.clone()).collect(),
            ids: fields.iter().map(|field| field.id).collect(),
        }
    }

    pub fn exists(&self) -> bool {
        !self.columns.is_empty()
    }
}

/// What a run says about a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Put,
    Delete,
}

/// The rows of a run that count.
pub struct Winners {
    /// By digest. Empty for a table without a key.
    pub keys: HashMap<u128, Verdict>,
    /// For each generation of the run, in its order, which of its rows go into
    /// the base.
    pub rows: Vec<Rows>,
    /// What the commit says it inserts: see `filter`.
    filter: KeyExistenceFilterBuilder,
    /// It has keys that can't be told.
    nameless: bool,
}

/// Rows of one generation.
#[derive(Clone, Debug)]
pub enum Rows {
    /// All but those that delete.
    All,
    These(BooleanArray),
}

impl Winners {
    pub async fn of(run: &Run, key: &Key, shard: Uuid) -> Result<Self, Fault> {
        let mut winners = Self {
            keys: HashMap::new(),
            rows: Vec::new(),
            filter: KeyExistenceFilterBuilder::new(key.ids.clone()),
            nameless: false,
        };
        winners.filter.insert(sentinel(shard))?;
        // Newest first: what was seen already is newer.
        for generation in run.generations.iter().rev() {
            let rows = match key.exists() {
                true => winners.take(generation, key).await?,
                false => Rows::All,
            };
            winners.rows.push(rows);
        }
        winners.rows.reverse();
        Ok(winners)
    }

    async fn take(&mut self, generation: &Generation, key: &Key) -> Result<Rows, Fault> {
        let mut batches = generation.keys(&key.columns).await?;
        let mut kept = BooleanBufferBuilder::new(generation.size.rows.max(0) as usize);
        while let Some(batch) = batches.try_next().await? {
            let deletes = generation::deletes(&batch);
            for (row, digest) in key_digests(&batch, &key.columns)?.into_iter().enumerate() {
                let verdict = match deletes.as_ref().is_some_and(|one| one.value(row)) {
                    true => Verdict::Delete,
                    false => Verdict::Put,
                };
                let newest = match self.keys.entry(digest) {
                    Entry::Vacant(unseen) => {
                        unseen.insert(verdict);
                        true
                    }
                    Entry::Occupied(_) => false,
                };
                if newest {
                    self.remember(&batch, row, key)?;
                }
                kept.append(newest && verdict == Verdict::Put);
            }
        }
        Ok(Rows::These(BooleanArray::new(kept.finish(), None)))
    }

    fn remember(&mut self, batch: &RecordBatch, row: usize, key: &Key) -> Result<(), Fault> {
        match extract_key_value_from_batch(batch, row, &key.columns) {
            Some(value) => self.filter.insert(value)?,
            // A key of a type that Lance has no name for (or a null): others can't
            // be told which, so all of them take turns.
            None if !self.nameless => {
                self.nameless = true;
                self.filter.insert(sentinel_of_all())?;
            }
            None => {}
        }
        Ok(())
    }

    /// Rows that go into the base. `run` is the one they were taken from.
    pub fn count(&self, run: &Run) -> i64 {
        let rows = self.rows.iter().zip(&run.generations);
        rows.map(|(rows, generation)| match rows {
            Rows::All => generation.size.rows,
            Rows::These(rows) => rows.true_count() as i64,
        })
        .sum()
    }

    /// Makes commits conflict that must not both land: the keys of the run, the
    /// deleted ones too, against whoever inserts one of them meanwhile; and a
    /// sentinel against every other attempt at this shard. A mark alone only
    /// stops ranges that end where this one does, or before.
    pub fn filter(&self) -> KeyExistenceFilter {
        self.filter.build()
    }
}

fn sentinel_of_all() -> KeyValue {
    KeyValue::String("lancefleet/merge".to_owned())
}

fn sentinel(shard: Uuid) -> KeyValue {
    KeyValue::String(format!("lancefleet/merge/{shard}"))
}
