//! The one commit of a pass: rows out, rows in, and the mark, all or nothing.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use lance::Dataset;
use lance::dataset::WriteDestination;
use lance::dataset::transaction::{Operation, Transaction, TransactionBuilder};
use lance_index::mem_wal::CompactedSsTable;
use lance_table::format::Fragment;
use lance_table::format::key_existence::KeyExistenceFilter;
use uuid::Uuid;

use super::base_rows::Removal;
use crate::engine::Engine;
use crate::error::{Class, Fault};
use crate::tables::{Fate, commit_builder, fate, judge};
use crate::tail::{self, Checked};
use crate::unbroken::{Unbroken, made_anew};

/// What our commits say they are.
const ACTION: &str = "merge";

/// What a commit is made of.
pub struct Parts {
    pub base: Arc<Dataset>,
    pub removal: Removal,
    /// Addresses of the rows that go.
    pub removed: Vec<u64>,
    pub added: Vec<Fragment>,
    pub mark: CompactedSsTable,
    pub filter: KeyExistenceFilter,
}

/// A commit that is ready and not made.
pub struct Prepared {
    pub base: Arc<Dataset>,
    pub transaction: Transaction,
    removed: Vec<u64>,
}

impl Prepared {
    pub fn new(parts: Parts, properties: HashMap<String, String>) -> Self {
        let schema = parts.base.schema();
        let operation = Operation::Update {
            removed_fragment_ids: parts.removal.emptied,
            updated_fragments: parts.removal.updated,
            new_fragments: parts.added,
            // No column of a row that stays is written.
            fields_modified: Vec::new(),
            compacted_sstables: vec![parts.mark],
            // Rows are replaced as a whole: no index may take its entries for the
            // old rows as good for the new ones.
            fields_for_preserving_frag_bitmap: schema
                .fields_pre_order()
                .map(|field| field.id as u32)
                .collect(),
            update_mode: None,
            inserted_rows_filter: Some(parts.filter),
            updated_fragment_offsets: None,
        };
        let version = parts.base.version_id();
        Self {
            transaction: TransactionBuilder::new(version, operation)
                .transaction_properties(Some(Arc::new(properties)))
                .build(),
            base: parts.base,
            removed: parts.removed,
        }
    }

    /// Commits from the version it was prepared on. Lance carries it over what
    /// others committed since, unless the two can't both stand or some of it was
    /// cleaned up.
    pub async fn commit(self, engine: &Engine, uri: &str) -> Result<Outcome, Fault> {
        let (after, uuid) = (self.base.version_id(), self.transaction.uuid.clone());
        let read = self.base.clone();
        let handler = Unbroken::over(engine, uri, &self.base).await?;
        let mut commit =
            commit_builder(engine, WriteDestination::from(self.base))?.with_commit_handler(handler);
        if !self.removed.is_empty() {
            commit = commit.with_affected_rows(self.removed.iter().copied().collect());
        }
        let said = Box::pin(commit.execute(self.transaction)).await;
        let said = said
            .map(|dataset| dataset.version_id())
            .map_err(Fault::from);
        // Whatever was said, the head knows.
        let fate = fate(engine, uri, after, &uuid).await;
        let lost = said.is_err() && matches!(fate, Ok(Fate::Absent(head)) if head != after);
        match judge(after, said, fate) {
            Ok(version) => Ok(Outcome::Landed(version)),
            Err(fault) if lost => Ok(Outcome::Lost(fault)),
            Err(fault) if fault.class == Class::Corrupt && made_anew(engine, uri, &read).await => {
                Ok(Outcome::Lost(fault))
            }
            Err(fault) => Err(fault),
        }
    }
}

/// What became of a commit.
pub enum Outcome {
    /// As this version.
    Landed(u64),
    /// Somebody else was first. What is there now tells what is left to do.
    Lost(Fault),
}

/// What a merge commit says about itself.
pub fn properties(
    property: &str,
    shard: Uuid,
    checked: &Checked,
) -> Result<HashMap<String, String>, Fault> {
    let checked = BTreeMap::from([(shard, checked)]);
    let checked = serde_json::to_string(&checked)
        .map_err(|error| Fault::new(Class::Internal, format!("tail record: {error}")))?;
    let mut properties = HashMap::from([(tail::PROPERTY.to_owned(), checked)]);
    if !property.is_empty() {
        properties.insert(property.to_owned(), ACTION.to_owned());
    }
    Ok(properties)
}
