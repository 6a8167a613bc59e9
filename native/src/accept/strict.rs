//! The commit of a decision: on exactly the version that was looked at, or not at all.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use async_trait::async_trait;
use lance::Dataset;
use lance::dataset::WriteDestination;
use lance::dataset::transaction::{Operation, TransactionBuilder};
use lance::index::DatasetIndexExt;
use lance_core::Result as LanceResult;
use lance_index::mem_wal::{CompactedSsTable, MEM_WAL_INDEX_NAME, MemWalIndexDetails};
use lance_io::object_store::ObjectStore;
use lance_table::format::{IndexMetadata, Manifest};
use lance_table::io::commit::{
    CommitError, CommitHandler, ManifestLocation, ManifestNamingScheme, ManifestWriter,
};
use lance_table::system_index::mem_wal::{load_mem_wal_index_details, new_mem_wal_index_meta};
use object_store::path::Path;
use uuid::Uuid;

use super::{AcceptShards, Stuck};
use crate::engine::Engine;
use crate::error::{Class, Fault};
use crate::tables::{commit_builder, fate, judge};
use crate::tail::{self, Checked, Decision};

/// What our commits say they are.
const ACTION: &str = "accept";

/// Puts the marks that hold from then on into the table's index of its log. A
/// conflict when anything was committed since `base`: Lance would carry it over
/// others' marks and so undo them.
pub async fn commit(
    engine: &Engine,
    request: &AcceptShards,
    base: Dataset,
    stuck: &[Stuck],
) -> Result<u64, Fault> {
    let uri = request.uri.as_str();
    let after = base.version_id();
    let transaction = TransactionBuilder::new(after, index(&base, stuck).await?)
        .transaction_properties(Some(Arc::new(properties(request, stuck)?)))
        .build();
    let uuid = transaction.uuid.clone();
    let only = Only {
        inner: engine.commit_handler(uri).await?,
        version: after + 1,
    };
    let commit = commit_builder(engine, WriteDestination::from(Arc::new(base)))?
        .with_commit_handler(Arc::new(only))
        .with_max_retries(0);
    let said = Box::pin(commit.execute(transaction)).await;
    let said = said.map(|table| table.version_id()).map_err(Fault::from);
    judge(after, said, fate(engine, uri, after, &uuid).await)
}

/// The index anew, with these shards' marks set.
async fn index(base: &Dataset, stuck: &[Stuck]) -> Result<Operation, Fault> {
    let indexes = base.load_indices().await?;
    let old = indexes.iter().find(|one| one.name == MEM_WAL_INDEX_NAME);
    let mut details = match old {
        Some(old) => load_mem_wal_index_details(old.clone())?,
        // An overwrite took it away; these are Lance's defaults.
        None => MemWalIndexDetails {
            maintain_all_indexes: true,
            ..MemWalIndexDetails::default()
        },
    };
    let is_stuck =
        |mark: &CompactedSsTable| stuck.iter().any(|one| one.look.shard == mark.shard_id);
    details.compacted_sstables.retain(|mark| !is_stuck(mark));
    for index in &mut details.index_catchup {
        index.caught_up_generations.retain(|mark| !is_stuck(mark));
    }
    for one in stuck.iter().filter(|one| one.plan.mark > 0) {
        let mark = CompactedSsTable::new(one.look.shard, one.plan.mark);
        details.compacted_sstables.push(mark);
    }
    Ok(Operation::CreateIndex {
        new_indices: vec![new_mem_wal_index_meta(base.version_id(), details)?],
        removed_indices: old.cloned().into_iter().collect(),
    })
}

fn properties(request: &AcceptShards, stuck: &[Stuck]) -> Result<HashMap<String, String>, Fault> {
    let decision = Decision {
        id: request.decision.clone(),
        marks: stuck
            .iter()
            .map(|one| (one.look.shard, one.plan.mark))
            .collect(),
    };
    let records: BTreeMap<Uuid, Checked> = stuck
        .iter()
        .map(|one| (one.look.shard, record(one)))
        .collect();
    let text = |json: serde_json::Result<String>| {
        json.map_err(|error| Fault::new(Class::Internal, format!("decision: {error}")))
    };
    let mut properties = HashMap::from([
        (
            tail::DECISION.to_owned(),
            text(serde_json::to_string(&decision))?,
        ),
        (
            tail::PROPERTY.to_owned(),
            text(serde_json::to_string(&records))?,
        ),
    ]);
    if !request.property.is_empty() {
        properties.insert(request.property.clone(), ACTION.to_owned());
    }
    Ok(properties)
}

/// Nothing is claimed of the entries that there were.
fn record(one: &Stuck) -> Checked {
    let taken = one.plan.taken.iter();
    Checked {
        seen: one.look.next.saturating_sub(1),
        manifest: one.manifest.version,
        taken: taken
            .map(|sstable| (sstable.generation, sstable.path.clone()))
            .collect(),
        ..Checked::default()
    }
}

/// Commits one version and no other.
#[derive(Debug)]
struct Only {
    inner: Arc<dyn CommitHandler>,
    version: u64,
}

#[async_trait]
impl CommitHandler for Only {
    fn is_version_not_found_definitive(&self) -> bool {
        self.inner.is_version_not_found_definitive()
    }

    async fn resolve_latest_location(
        &self,
        base: &Path,
        store: &ObjectStore,
    ) -> LanceResult<ManifestLocation> {
        self.inner.resolve_latest_location(base, store).await
    }

    async fn resolve_version_location(
        &self,
        base: &Path,
        version: u64,
        store: &dyn object_store::ObjectStore,
    ) -> LanceResult<ManifestLocation> {
        self.inner
            .resolve_version_location(base, version, store)
            .await
    }

    async fn commit(
        &self,
        manifest: &mut Manifest,
        indices: Option<Vec<IndexMetadata>>,
        base: &Path,
        store: &ObjectStore,
        writer: ManifestWriter,
        naming: ManifestNamingScheme,
        transaction: Option<lance_table::format::Transaction>,
    ) -> Result<ManifestLocation, CommitError> {
        if manifest.version != self.version {
            return Err(CommitError::CommitConflict);
        }
        let inner = &self.inner;
        inner
            .commit(manifest, indices, base, store, writer, naming, transaction)
            .await
    }
}
