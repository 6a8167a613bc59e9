//! Sealing: what is replayed, and what is not.

use lance_index::mem_wal::ShardStatus;
use serde_json::json;

use super::shards::age_all;
use super::*;
use crate::fresh::Fresh;

async fn seal(engine: &Arc<Engine>, table: &Table, shard: Uuid, how: Value) -> Value {
    let mut request = json!({ "uri": table.path(), "shard": shard, "silent_ms": 0 });
    for (key, value) in how.as_object().unwrap() {
        request[key] = value.clone();
    }
    ask(engine, "seal_shard", request).await.unwrap()
}

async fn tail(engine: &Arc<Engine>, table: &Table) -> Value {
    let request = json!({ "uri": table.path() });
    ask(engine, "classify_tail", request).await.unwrap()["shards"][0].clone()
}

/// Merges a generation as a plain reader of it would, and drains it.
async fn merge(table: &Table, shard: Uuid, generation: u64) {
    use arrow_array::cast::AsArray;
    use futures::TryStreamExt;
    let manifest = table.manifest(shard).await;
    let sstable = manifest
        .sstables
        .iter()
        .find(|one| one.generation == generation)
        .unwrap();
    let folder = table.shard_folder(shard).join(&sstable.path);
    let dataset = Dataset::open(folder.to_str().unwrap()).await.unwrap();
    let stream = dataset.scan().try_into_stream().await.unwrap();
    let batches: Vec<RecordBatch> = stream.try_collect().await.unwrap();
    let mut rows = Vec::new();
    for batch in batches {
        let deleted = batch["_tombstone"].as_boolean();
        assert!(deleted.iter().all(|one| one == Some(false)));
        let columns = vec![batch["id"].clone(), batch["value"].clone()];
        rows.push(RecordBatch::try_new(table.schema(), columns).unwrap());
    }
    let rows = arrow_select::concat::concat_batches(&table.schema(), &rows).unwrap();
    table.take_over(shard, generation, rows, &[]).await;
    table.drain(shard, &[generation]).await;
}

#[tokio::test]
async fn stranded_rows_come_into_a_generation() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    table.flush(shard, 100, 5).await;
    table.strand(shard, 200, 3).await;
    table.strand(shard, 300, 1).await;
    table.forget_generations(shard);
    let epoch = table.manifest(shard).await.writer_epoch;

    let would = seal(&engine, &table, shard, json!({ "dry_run": true })).await;
    assert_eq!(
        (&would["rows"], &would["generation"]),
        (&json!(4), &json!(0))
    );
    assert_eq!(would["entries"].as_array().unwrap().len(), 2);
    assert_eq!(table.manifest(shard).await.writer_epoch, epoch);

    let done = seal(&engine, &table, shard, json!({})).await;
    assert!(done.get("refused").is_none(), "{done}");
    assert_eq!((&done["rows"], &done["generation"]), (&json!(4), &json!(2)));
    assert_eq!(done["epoch"], json!(epoch + 1));
    let manifest = table.manifest(shard).await;
    assert_eq!(done["manifest"], json!(manifest.version));
    assert_eq!(manifest.sstables.len(), 2);
    let after = tail(&engine, &table).await;
    assert_eq!(
        (&after["stranded"], &after["unknown"]),
        (&json!(0), &json!(0))
    );
    merge(&table, shard, 2).await;
    let content = table.content().await;
    for key in ["row 200", "row 201", "row 202", "row 300"] {
        assert!(content.contains_key(key), "{key}");
    }
}

/// The entry of the first generation lags. It was merged; since then one of its
/// keys was deleted from the base and another one updated.
#[tokio::test]
async fn what_is_in_the_base_already_is_not_replayed() {
    for recorded in [true, false] {
        let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
        table.flush(shard, 100, 5).await;
        table.lag(shard, 1).await;
        if !recorded {
            table.forget_generations(shard);
        }
        let checked = {
            let manifest = table.manifest(shard).await;
            let base = table.dataset().await;
            let (uri, merged) = (table.path(), &manifest.sstables);
            let next = table.wal_end(shard);
            crate::tail::covered_through(&engine, &uri, &base, shard, &manifest, next, merged)
                .await
                .unwrap()
        };
        let text = serde_json::to_string(&json!({ shard.to_string(): checked })).unwrap();
        let properties = [(crate::tail::PROPERTY, text)];
        table
            .take_over(shard, 1, table.rows(100, 5), &properties)
            .await;
        table.drain(shard, &[1]).await;
        table.strand(shard, 200, 2).await;
        if !recorded {
            table.forget_generations(shard);
        }
        let mut dataset = table.dataset().await;
        Box::pin(dataset.delete("id = 'row 100'")).await.unwrap();
        let update = lance::dataset::UpdateBuilder::new(Arc::new(table.dataset().await))
            .update_where("id = 'row 101'")
            .unwrap()
            .set("value", "-7")
            .unwrap()
            .build()
            .unwrap();
        Box::pin(update.execute()).await.unwrap();

        let done = seal(&engine, &table, shard, json!({})).await;
        assert!(done.get("refused").is_none(), "{done}");
        assert_eq!(done["rows"], json!(2));
        let generation = done["generation"].as_u64().unwrap();
        let manifest = table.manifest(shard).await;
        let made = manifest
            .sstables
            .iter()
            .find(|one| one.generation == generation);
        let folder = table.shard_folder(shard).join(&made.unwrap().path);
        let made = Dataset::open(folder.to_str().unwrap()).await.unwrap();
        assert_eq!(made.count_rows(None).await.unwrap(), 2);
        merge(&table, shard, generation).await;
        let content = table.content().await;
        assert_eq!(content.get("row 100"), None);
        assert_eq!(content.get("row 101"), Some(&-7));
        assert_eq!(content.get("row 201"), Some(&201));
    }
}

#[tokio::test]
async fn a_lagging_cursor_alone_is_no_reason_to_open_a_writer() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    table.flush(shard, 100, 5).await;
    table.lag(shard, 1).await;
    table.forget_generations(shard);
    let before = table.manifest(shard).await;
    let done = seal(&engine, &table, shard, json!({})).await;
    assert_eq!((&done["generation"], &done["rows"]), (&json!(0), &json!(0)));
    assert_eq!(done["entries"], json!([]));
    assert_eq!(table.manifest(shard).await, before);
}

#[tokio::test]
async fn unknown_entries_are_replayed_only_when_an_operator_says_so() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    table.flush(shard, 100, 5).await;
    table.lag(shard, 1).await;
    table.forget_generations(shard);
    // Drained by somebody who merged nothing.
    table.drain(shard, &[1]).await;
    let before = table.manifest(shard).await;
    let refused = seal(&engine, &table, shard, json!({})).await;
    assert_eq!(refused["refused"]["code"], json!("unknown_tail"));
    assert_eq!(refused["entries"][0]["state"], json!("unknown"));
    assert_eq!(table.manifest(shard).await, before);
    let done = seal(&engine, &table, shard, json!({ "allow_unknown": true })).await;
    assert!(done.get("refused").is_none(), "{done}");
    assert_eq!((&done["rows"], &done["generation"]), (&json!(5), &json!(2)));
}

#[tokio::test]
async fn shards_that_are_written_or_sealed_by_their_owner_are_left_alone() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    table.strand(shard, 200, 3).await;
    let before = table.manifest(shard).await;
    let live = seal(&engine, &table, shard, json!({ "silent_ms": 600_000 })).await;
    assert_eq!(live["refused"]["code"], json!("live"));
    assert_eq!(table.manifest(shard).await, before);
    table
        .change(shard, |one| one.status = ShardStatus::Sealed)
        .await;
    let sealed = seal(&engine, &table, shard, json!({})).await;
    assert_eq!(sealed["refused"]["code"], json!("sealed"));
    let request = json!({ "uri": table.path(), "shard": Uuid::new_v4() });
    let absent = ask(&engine, "seal_shard", request).await.unwrap_err();
    assert_eq!(absent.class, crate::error::Class::Gone);
}

const HOUR: i64 = 3_600_000;

/// A shard whose writer died two hours ago.
async fn long_dead(table: &Table, shard: Uuid) {
    table.flush(shard, 100, 5).await;
    table.strand(shard, 200, 3).await;
    age_all(&table.shard_folder(shard), 2 * HOUR);
}

/// Whoever claims a shard leaves an entry without rows, and may be about to write.
#[tokio::test]
async fn a_shard_that_somebody_just_claimed_is_not_silent() {
    for claims in [false, true] {
        let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
        long_dead(&table, shard).await;
        if claims {
            table.writer(shard).await.abort().await.unwrap();
        }
        let how = json!({ "silent_ms": HOUR, "dry_run": true });
        let said = seal(&engine, &table, shard, how).await;
        let code = said["refused"]["code"].as_str().unwrap_or_default();
        assert_eq!(code, if claims { "live" } else { "" }, "{said}");
    }
}

#[tokio::test]
async fn a_shard_whose_manifest_was_just_written_is_not_silent() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    long_dead(&table, shard).await;
    table.change(shard, |_| ()).await;
    let said = seal(&engine, &table, shard, json!({ "silent_ms": HOUR })).await;
    assert_eq!(said["refused"]["code"], json!("live"), "{said}");
}

#[tokio::test]
async fn a_writer_that_claims_the_shard_while_we_look_is_not_fenced() {
    for lags in [false, true] {
        let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
        long_dead(&table, shard).await;
        if lags {
            table.lag(shard, 1).await;
        }
        let uri = table.path();
        let fresh = Fresh::open(&engine, &uri).await.unwrap();
        let writer = table.writer(shard).await;
        let before = table.manifest(shard).await;
        let request = json!({ "uri": uri, "shard": shard, "silent_ms": 0 });
        let request = serde_json::from_value(request).unwrap();
        let sealed = crate::seal::seal(&fresh, &request).await.unwrap();
        let said = serde_json::to_value(sealed).unwrap();
        assert_eq!(said["refused"]["code"], json!("live"), "{said}");
        assert_eq!(table.manifest(shard).await, before);
        writer.abort().await.unwrap();
    }
}

/// What equals the base is replayed along with what is stranded before it. By now
/// somebody has deleted it.
#[tokio::test]
async fn a_row_that_is_deleted_while_we_look_does_not_come_back() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    table.flush(shard, 100, 5).await;
    table.strand(shard, 200, 3).await;
    table.strand(shard, 3, 1).await;
    table.forget_generations(shard);
    let uri = table.path();
    let fresh = Fresh::open(&engine, &uri).await.unwrap();
    let mut dataset = table.dataset().await;
    Box::pin(dataset.delete("id = 'row 3'")).await.unwrap();
    let before = table.manifest(shard).await;
    let request = json!({ "uri": uri, "shard": shard, "silent_ms": 0 });
    let request = serde_json::from_value(request).unwrap();
    let fault = crate::seal::seal(&fresh, &request).await.unwrap_err();
    assert_eq!(fault.class, crate::error::Class::Conflict, "{fault}");
    assert_eq!(table.manifest(shard).await, before);
}

/// More entries than are looked at in one go.
#[tokio::test]
async fn a_tail_that_is_too_long_is_stepped_over_bit_by_bit() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    table.flush(shard, 100, 5).await;
    table.forget_generations(shard);
    table.lag(shard, 1).await;
    let before = table.manifest(shard).await;
    let first = before.replay_after_wal_entry_position + 1;
    let next = tail(&engine, &table).await["next"].as_u64().unwrap();
    for position in next..first + 4100 {
        let entry = table.wal_file(shard, first);
        std::fs::copy(entry, table.wal_file(shard, position)).unwrap();
    }
    let refused = seal(&engine, &table, shard, json!({ "dry_run": true })).await;
    assert_eq!(refused["refused"]["code"], json!("unknown_tail"));
    assert_eq!(table.manifest(shard).await, before);
    let refused = seal(&engine, &table, shard, json!({})).await;
    assert_eq!(refused["refused"]["code"], json!("unknown_tail"));
    let cursor = table.manifest(shard).await.replay_after_wal_entry_position;
    assert_eq!(cursor, before.replay_after_wal_entry_position + 4096);
    let done = seal(&engine, &table, shard, json!({})).await;
    assert!(done.get("refused").is_none(), "{done}");
}
