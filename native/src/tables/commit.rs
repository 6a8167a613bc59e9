//! Writes in two steps, stage and commit, and the compare-and-swap on top.
//!
//! A strict overwrite puts the manifest of the next version only if it is
//! absent. That alone is not a compare-and-swap: held back for long enough, a
//! writer at version 3 still "commits as 4" after the head went to 9 and a
//! cleanup left only [9], and its rows are lost. So the head is opened freshly
//! before, and afterwards the transaction must be found in the head's ancestry.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatchReader;
use bytes::Bytes;
use lance::Dataset;
use lance::dataset::transaction::Transaction;
use lance::dataset::{CommitBuilder, InsertBuilder, WriteDestination, WriteMode, WriteParams};
use object_store::ObjectStoreExt;
use serde::Deserialize;
use serde_json::json;

use super::ipc::{self, Table};
use super::{READABLE_BY_ALL, open_if_there, write_params};
use crate::call::Reply;
use crate::engine::Engine;
use crate::error::{Class, Fault};

/// The longer a commit may hang, the staler the handle it commits from.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(300);

#[derive(Deserialize)]
pub struct CommitSnapshot {
    uri: String,
    /// 0: the table must not exist.
    expect_version: u64,
    #[serde(default)]
    properties: HashMap<String, String>,
}

/// Makes the table exactly the body, if its head is the version expected.
pub async fn commit_snapshot(
    engine: Arc<Engine>,
    request: CommitSnapshot,
    body: Bytes,
) -> Result<Reply, Fault> {
    let uri = &request.uri;
    let at = |fault: Fault| fault.at(uri);
    let rows = ipc::read(body).map_err(at)?;
    let base = open_if_there(&engine, uri).await?;
    let head = base.as_ref().map_or(0, Dataset::version_id);
    if head != request.expect_version {
        let message = format!(
            "expected version {}, the head is {head}",
            request.expect_version
        );
        return Err(at(Fault::new(Class::Conflict, message)));
    }
    let (version, uuid) = overwrite(&engine, uri, base, &request.properties, rows)
        .await
        .map_err(at)?;
    Ok(Reply::json(json!({ "version": version, "uuid": uuid })))
}

/// Replaces `base` (nothing: creates the table) and makes sure that it counts.
pub(super) async fn overwrite(
    engine: &Engine,
    uri: &str,
    base: Option<Dataset>,
    properties: &HashMap<String, String>,
    rows: Table,
) -> Result<(u64, String), Fault> {
    let after = base.as_ref().map_or(0, Dataset::version_id);
    let (mode, destination) = match base {
        Some(dataset) => (
            WriteMode::Overwrite,
            WriteDestination::from(Arc::new(dataset)),
        ),
        None => (WriteMode::Create, WriteDestination::from(uri)),
    };
    let params = write_params(engine, mode, properties)?;
    let transaction = stage(destination.clone(), &params, rows.reader())
        .await
        .map_err(exists_is_conflict)?;
    let uuid = transaction.uuid.clone();
    let strict = commit_builder(engine, destination)?.with_max_retries(0);
    let outcome = Box::pin(strict.execute(transaction)).await;
    let said = outcome.map(|dataset| dataset.version_id());
    let fate = fate(engine, uri, after, &uuid).await;
    let version = judge(after, said.map_err(Fault::from), fate)?;
    Ok((version, uuid))
}

/// Somebody created the table first.
fn exists_is_conflict(fault: Fault) -> Fault {
    match fault.class {
        Class::Exists => Fault {
            class: Class::Conflict,
            ..fault
        },
        _ => fault,
    }
}

/// What became of a transaction, as the head tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Landed(u64),
    /// Not in the ancestry of this head (0: there is no table).
    Absent(u64),
}

/// Decides between what the commit said and what is there. The head is right.
pub(crate) fn judge(
    after: u64,
    said: Result<u64, Fault>,
    fate: Result<Fate, Fault>,
) -> Result<u64, Fault> {
    match (fate, said) {
        (Ok(Fate::Landed(version)), _) => Ok(version),
        (Ok(Fate::Absent(head)), Ok(version)) => Err(Fault::new(
            Class::Conflict,
            format!("committed as version {version}, which the head {head} does not descend from"),
        )),
        (Ok(Fate::Absent(head)), Err(fault)) if head != after => Err(Fault {
            class: Class::Conflict,
            message: format!("the head went from {after} to {head}: {}", fault.message),
            ..fault
        }),
        (Ok(Fate::Absent(_)), Err(fault)) => Err(exists_is_conflict(fault)),
        (Err(unread), Ok(version)) => Err(Fault {
            message: format!(
                "committed as version {version}, but the head could not be read back: {}",
                unread.message
            ),
            ..unread
        }),
        (Err(_), Err(fault)) => Err(fault),
    }
}

/// Looks for a transaction made on version `after` in the ancestry of the head.
pub(crate) async fn fate(
    engine: &Engine,
    uri: &str,
    after: u64,
    uuid: &str,
) -> Result<Fate, Fault> {
    let Some(head) = open_if_there(engine, uri).await? else {
        return Ok(Fate::Absent(0));
    };
    let newest = head.version_id();
    for version in (after + 1..=newest).rev() {
        let transaction = match head
            .read_version_transaction(version)
            .await
            .map_err(Fault::from)
        {
            Ok(record) => record.transaction,
            // A gap: what lies below is not known to lead to this head.
            Err(fault) if fault.class == Class::Gone => break,
            Err(fault) => return Err(fault),
        };
        if transaction.is_none_or(|transaction| transaction.uuid != uuid) {
            continue;
        }
        let leads_on = version == newest || written_in_order(&head, version).await?;
        return Ok(match leads_on {
            true => Fate::Landed(version),
            false => Fate::Absent(newest),
        });
    }
    Ok(Fate::Absent(newest))
}

/// False when the manifest of `version` was stored after that of its successor:
/// then it filled the place of a version that had been cleaned up.
async fn written_in_order(head: &Dataset, version: u64) -> Result<bool, Fault> {
    let store = head.object_store(None).await?;
    let base = head.branch_location().path;
    let scheme = head.manifest_location().naming_scheme;
    let stored = async |version| {
        let manifest = scheme.manifest_path(&base, version);
        Ok::<_, Fault>(store.inner.head(&manifest).await?.last_modified)
    };
    Ok(stored(version).await? <= stored(version + 1).await?)
}

/// Writes data files that nothing names yet.
pub(crate) async fn stage(
    destination: WriteDestination<'_>,
    params: &WriteParams,
    rows: Box<dyn RecordBatchReader + Send>,
) -> Result<Transaction, Fault> {
    let insert = InsertBuilder::new(destination).with_params(params);
    Ok(Box::pin(insert.execute_uncommitted_stream(rows)).await?)
}

/// Makes a staged write visible, rebasing it over what others committed.
pub(crate) async fn commit(
    engine: &Engine,
    destination: WriteDestination<'_>,
    transaction: Transaction,
) -> Result<Dataset, Fault> {
    let commit = commit_builder(engine, destination)?;
    Ok(Box::pin(commit.execute(transaction)).await?)
}

pub(crate) fn commit_builder<'a>(
    engine: &Engine,
    destination: WriteDestination<'a>,
) -> Result<CommitBuilder<'a>, Fault> {
    let creates = destination.dataset().is_none();
    let commit = CommitBuilder::new(destination)
        .with_session(engine.session())
        .with_store_params(engine.params())
        .use_stable_row_ids(false)
        .with_skip_auto_cleanup(true)
        .with_timeout(Some(COMMIT_TIMEOUT));
    // An empty table has no files that would tell.
    Ok(match creates {
        true => commit.with_storage_format(READABLE_BY_ALL.parse()?),
        false => commit,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(class: Class) -> Fault {
        Fault::new(class, "what the commit said")
    }

    fn class(outcome: Result<u64, Fault>) -> Result<u64, Class> {
        outcome.map_err(|fault| fault.class)
    }

    #[test]
    fn the_head_decides_what_became_of_a_commit() {
        use Class::{Conflict, Exists, Gone, Timeout, Unreachable};
        let cases = [
            ("said yes, is there", Ok(4), Ok(Fate::Landed(4)), Ok(4)),
            (
                "error after it was stored",
                Err(Unreachable),
                Ok(Fate::Landed(4)),
                Ok(4),
            ),
            (
                "timeout, others built on it",
                Err(Timeout),
                Ok(Fate::Landed(4)),
                Ok(4),
            ),
            (
                "said yes, head elsewhere",
                Ok(4),
                Ok(Fate::Absent(9)),
                Err(Conflict),
            ),
            (
                "said yes, table dropped",
                Ok(4),
                Ok(Fate::Absent(0)),
                Err(Conflict),
            ),
            (
                "error, somebody was first",
                Err(Unreachable),
                Ok(Fate::Absent(4)),
                Err(Conflict),
            ),
            (
                "base was cleaned up",
                Err(Gone),
                Ok(Fate::Absent(5)),
                Err(Conflict),
            ),
            (
                "error, nothing changed",
                Err(Unreachable),
                Ok(Fate::Absent(3)),
                Err(Unreachable),
            ),
            (
                "conflict, nothing changed",
                Err(Conflict),
                Ok(Fate::Absent(3)),
                Err(Conflict),
            ),
            (
                "said yes, head unreadable",
                Ok(4),
                Err(Unreachable),
                Err(Unreachable),
            ),
            (
                "error, head unreadable",
                Err(Timeout),
                Err(Unreachable),
                Err(Timeout),
            ),
            (
                "created by another",
                Err(Exists),
                Ok(Fate::Absent(3)),
                Err(Conflict),
            ),
        ];
        for (name, said, fate, want) in cases {
            let got = class(judge(3, said.map_err(fault), fate.map_err(fault)));
            assert_eq!(got, want, "{name}");
        }
    }
}
