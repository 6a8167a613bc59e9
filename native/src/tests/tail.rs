//! WAL entries past the flush cursor: what became of their rows.

use lance_index::mem_wal::SsTable;
use serde_json::json;

use super::shards::{age, age_all};
use super::*;
use crate::tail::{Checked, covered_through};

/// The tail of the only shard.
async fn tail(engine: &Arc<Engine>, table: &Table) -> Value {
    let [disk, objects] = [Seen::AsDisk, Seen::AsObjects].map(|seen| table.uri(seen));
    let one = tail_at(engine, &disk).await;
    assert_eq!(one, tail_at(engine, &objects).await);
    one
}

async fn tail_at(engine: &Arc<Engine>, uri: &str) -> Value {
    let reply = ask(engine, "classify_tail", json!({ "uri": uri }))
        .await
        .unwrap();
    let shards = reply["shards"].as_array().unwrap();
    assert_eq!(shards.len(), 1, "{reply}");
    shards[0].clone()
}

/// States of the entries with rows, by position.
async fn states(engine: &Arc<Engine>, table: &Table) -> Vec<String> {
    let tail = tail(engine, table).await;
    let mut listed: Vec<(u64, String)> = tail["listed"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            let state = one["state"].as_str().unwrap().to_owned();
            (one["position"].as_u64().unwrap(), state)
        })
        .collect();
    listed.sort();
    let states: Vec<String> = listed.into_iter().map(|(_, state)| state).collect();
    for state in ["contained", "in_base", "superseded", "stranded", "unknown"] {
        let counted = states.iter().filter(|one| *one == state).count();
        assert_eq!(tail[state], json!(counted), "{tail}");
    }
    assert_eq!(tail["entries"], json!(states.len()), "{tail}");
    states
}

/// A flush whose entry is past the cursor all the same.
async fn lagging(table: &Table, shard: Uuid, from: i64, count: i64) {
    table.flush(shard, from, count).await;
    table.lag(shard, 1).await;
}

async fn checked(engine: &Engine, table: &Table, shard: Uuid, merged: &[u64]) -> Checked {
    let manifest = table.manifest(shard).await;
    let merged: Vec<SsTable> = manifest
        .sstables
        .iter()
        .filter(|one| merged.contains(&one.generation))
        .cloned()
        .collect();
    let (base, uri) = (table.dataset().await, table.path());
    let next = table.wal_end(shard);
    covered_through(engine, &uri, &base, shard, &manifest, next, &merged)
        .await
        .unwrap()
}

/// As `lancefleet.tail` says it.
fn record(shard: Uuid, checked: &Checked) -> Vec<(&'static str, String)> {
    let text = serde_json::to_string(&json!({ shard.to_string(): checked })).unwrap();
    vec![(crate::tail::PROPERTY, text)]
}

/// Merges and drains generation 1 with rows 100..105, as our merge does.
async fn merge_first(engine: &Engine, table: &Table, shard: Uuid, recorded: bool) {
    let checked = checked(engine, table, shard, &[1]).await;
    let properties = if recorded {
        record(shard, &checked)
    } else {
        vec![]
    };
    table
        .take_over(shard, 1, table.rows(100, 5), &properties)
        .await;
    table.drain(shard, &[1]).await;
}

#[tokio::test]
async fn an_entry_of_a_listed_generation_is_contained_with_and_without_its_number() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    lagging(&table, shard, 100, 5).await;
    assert_eq!(states(&engine, &table).await, ["contained"]);
    table.forget_generations(shard);
    assert_eq!(states(&engine, &table).await, ["contained"]);
    let tail = tail(&engine, &table).await;
    assert_eq!(
        tail["covered_through"],
        json!(tail["cursor"].as_u64().unwrap() + 1)
    );
    assert!(tail.get("sentence").is_none(), "{tail}");
}

#[tokio::test]
async fn what_a_dead_writer_never_flushed_is_stranded_and_said_so() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    table.flush(shard, 100, 5).await;
    let writer = table.writer(shard).await;
    writer.put(vec![table.rows(200, 4)]).await.unwrap();
    writer.put(vec![table.rows(300, 1)]).await.unwrap();
    writer.abort().await.unwrap();
    for _ in 0..2 {
        assert_eq!(states(&engine, &table).await, ["stranded", "stranded"]);
        let tail = tail(&engine, &table).await;
        assert_eq!(tail["stranded_rows"], json!(5));
        assert_eq!(tail["covered_through"], tail["cursor"]);
        let expected = format!(
            "shard {shard}: 2 WAL entries with 5 rows are stranded: their writer never flushed them"
        );
        assert_eq!(tail["sentence"], json!(expected));
        table.forget_generations(shard);
    }
}

#[tokio::test]
async fn entries_without_rows_are_not_entries() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    table.flush(shard, 100, 5).await;
    let writer = table.writer(shard).await;
    Box::pin(writer.close()).await.unwrap();
    let tail = tail(&engine, &table).await;
    assert!(tail["next"].as_u64().unwrap() > tail["cursor"].as_u64().unwrap() + 1);
    assert_eq!(tail["entries"], json!(0));
    assert_eq!(tail["listed"], json!([]));
}

/// Of entries with rows wherever they are, and of anything at all.
#[tokio::test]
async fn a_shard_was_written_when_its_newest_rows_were_and_touched_later() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    table.flush(shard, 100, 5).await;
    let rows = table.manifest(shard).await.replay_after_wal_entry_position;
    age_all(&table.shard_folder(shard), 5_000_000);
    let written = time_of(&table.wal_file(shard, rows));
    let now = tail(&engine, &table).await;
    assert_eq!(now["entries"], json!(0));
    assert_eq!(now["newest_time"], json!(written), "{now}");
    assert!(now["touched_time"].as_i64().unwrap() >= written);
    // A reader's claim: an entry without rows, and a manifest.
    table.writer(shard).await.abort().await.unwrap();
    let version = table.manifest(shard).await.version;
    age(&table.manifest_file(shard, version), 1000);
    let claimed = tail(&engine, &table).await;
    let position = claimed["next"].as_u64().unwrap() - 1;
    assert_eq!(claimed["newest_time"], json!(written), "{claimed}");
    let touched = time_of(&table.wal_file(shard, position));
    assert_eq!(claimed["touched_time"], json!(touched), "{claimed}");
    age(&table.manifest_file(shard, version), -2000);
    let touched = time_of(&table.manifest_file(shard, version));
    let claimed = tail(&engine, &table).await;
    assert_eq!(claimed["touched_time"], json!(touched), "{claimed}");
}

fn time_of(path: &std::path::Path) -> i64 {
    let time = path.metadata().unwrap().modified().unwrap();
    chrono::DateTime::<chrono::Utc>::from(time).timestamp_millis()
}

#[tokio::test]
async fn another_value_in_any_column_is_another_row() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    table.flush(shard, 100, 5).await;
    let writer = table.writer(shard).await;
    writer.put(vec![table.updates(102, 1, -1)]).await.unwrap();
    writer.abort().await.unwrap();
    table.forget_generations(shard);
    assert_eq!(states(&engine, &table).await, ["stranded"]);
}

#[tokio::test]
async fn only_the_newest_row_of_a_key_counts() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    table.flush(shard, 100, 5).await;
    let writer = table.writer(shard).await;
    for rows in [
        table.updates(200, 2, 1),
        table.rows(300, 1),
        table.updates(200, 2, 2),
    ] {
        writer.put(vec![rows]).await.unwrap();
    }
    writer.abort().await.unwrap();
    table.forget_generations(shard);
    assert_eq!(
        states(&engine, &table).await,
        ["superseded", "stranded", "stranded"]
    );
}

#[tokio::test]
async fn a_merged_entry_is_in_the_base_and_stays_so_where_the_merge_put_it_down() {
    for recorded in [true, false] {
        let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
        lagging(&table, shard, 100, 5).await;
        table.forget_generations(shard);
        merge_first(&engine, &table, shard, recorded).await;
        assert_eq!(states(&engine, &table).await, ["in_base"]);
        // The base goes on. Replaying would set it back.
        let mut dataset = table.dataset().await;
        Box::pin(dataset.delete("id = 'row 102'")).await.unwrap();
        let expected = if recorded { "in_base" } else { "unknown" };
        assert_eq!(states(&engine, &table).await, [expected], "{recorded}");
        let tail = tail(&engine, &table).await;
        assert_eq!(tail.get("sentence").is_some(), !recorded, "{tail}");
    }
}

#[tokio::test]
async fn an_entry_that_names_a_generation_below_the_mark_is_in_the_base() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    lagging(&table, shard, 100, 5).await;
    merge_first(&engine, &table, shard, false).await;
    let mut dataset = table.dataset().await;
    Box::pin(dataset.delete("id = 'row 102'")).await.unwrap();
    assert_eq!(states(&engine, &table).await, ["in_base"]);
}

#[tokio::test]
async fn an_overwritten_table_makes_what_was_put_down_void() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    lagging(&table, shard, 100, 5).await;
    table.forget_generations(shard);
    merge_first(&engine, &table, shard, true).await;
    table.commit(WriteMode::Overwrite, 0, 3, None).await;
    assert_eq!(states(&engine, &table).await, ["unknown"]);
}

#[tokio::test]
async fn entries_written_before_somebody_elses_drain_are_unknown_and_later_ones_stranded() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    lagging(&table, shard, 100, 5).await;
    // Drained without a mark, and without its rows in the base.
    table.drain(shard, &[1]).await;
    table.strand(shard, 200, 2).await;
    table.forget_generations(shard);
    assert_eq!(states(&engine, &table).await, ["unknown", "stranded"]);
    // With their numbers it is no different: nobody replays the first.
    let (engine, table) = (engine, Table::keyed().await);
    lagging(&table, shard, 100, 5).await;
    table.drain(shard, &[1]).await;
    table.strand(shard, 200, 2).await;
    assert_eq!(states(&engine, &table).await, ["unknown", "stranded"]);
}

#[tokio::test]
async fn an_entry_of_the_very_moment_of_a_drain_is_unknown() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    table.flush(shard, 100, 5).await;
    table.drain(shard, &[1]).await;
    let drained = table.manifest(shard).await.version;
    table.strand(shard, 200, 2).await;
    table.forget_generations(shard);
    assert_eq!(states(&engine, &table).await, ["stranded"]);
    let time = table.manifest_file(shard, drained).metadata().unwrap();
    let next = tail(&engine, &table).await["next"].as_u64().unwrap();
    let entry = std::fs::File::open(table.wal_file(shard, next - 1)).unwrap();
    entry.set_modified(time.modified().unwrap()).unwrap();
    assert_eq!(states(&engine, &table).await, ["unknown"]);
}

#[tokio::test]
async fn copied_files_have_no_times_to_conclude_from() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    table.flush(shard, 100, 5).await;
    table.drain(shard, &[1]).await;
    table.strand(shard, 200, 2).await;
    table.forget_generations(shard);
    let version = table.dataset().await.version_id();
    let head = format!("{}/_versions/{}.manifest", table.path(), u64::MAX - version);
    age(head.as_ref(), -2 * 3_600_000);
    assert_eq!(states(&engine, &table).await, ["unknown"]);
}

/// The base has an equal row by chance: the newest is in a generation that is not
/// merged yet, and the entry is newer still.
#[tokio::test]
async fn a_row_that_equals_the_bases_is_not_there_while_a_generation_has_another() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    let writer = table.writer(shard).await;
    writer.put(vec![table.updates(3, 1, 70)]).await.unwrap();
    Box::pin(writer.close()).await.unwrap();
    table.strand(shard, 3, 1).await;
    table.forget_generations(shard);
    assert_eq!(states(&engine, &table).await, ["stranded"]);
}

#[tokio::test]
async fn tombstones_are_found_in_generations_and_by_their_absence_in_the_base() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    let writer = table.writer(shard).await;
    writer.delete(vec![table.keys(3, 2)]).await.unwrap();
    Box::pin(writer.close()).await.unwrap();
    table.lag(shard, 1).await;
    table.forget_generations(shard);
    assert_eq!(states(&engine, &table).await, ["contained"]);
    // Not merged: the base still has the rows.
    table.drain(shard, &[1]).await;
    assert_eq!(states(&engine, &table).await, ["unknown"]);
    let mut dataset = table.dataset().await;
    Box::pin(dataset.delete("value in (3, 4)")).await.unwrap();
    assert_eq!(states(&engine, &table).await, ["in_base"]);
}

#[tokio::test]
async fn a_stranded_delete_is_stranded() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    table.flush(shard, 100, 5).await;
    table.strand_deletes(shard, 3, 2).await;
    table.forget_generations(shard);
    assert_eq!(states(&engine, &table).await, ["stranded"]);
}

#[tokio::test]
async fn a_column_that_came_later_is_null_in_older_rows() {
    use lance::dataset::NewColumnTransform;
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    lagging(&table, shard, 100, 5).await;
    table.forget_generations(shard);
    let mut dataset = table.dataset().await;
    let added = Schema::new(vec![Field::new("later", DataType::Utf8, true)]);
    let added = NewColumnTransform::AllNulls(Arc::new(added));
    Box::pin(dataset.add_columns(added, None, None))
        .await
        .unwrap();
    assert_eq!(states(&engine, &table).await, ["contained"]);
}

#[tokio::test]
async fn without_a_key_the_order_of_the_log_tells_what_is_flushed() {
    let (engine, table, shard) = (engine(), Table::keyless().await, Uuid::new_v4());
    lagging(&table, shard, 100, 5).await;
    assert_eq!(states(&engine, &table).await, ["contained"]);
    table.strand(shard, 200, 5).await;
    table.forget_generations(shard);
    assert_eq!(states(&engine, &table).await, ["contained", "stranded"]);
    // Rows that could be those of the one or of the other.
    table.strand(shard, 200, 5).await;
    table.forget_generations(shard);
    let expected = ["contained", "stranded", "stranded"];
    assert_eq!(states(&engine, &table).await, expected);
    let twice = Table::keyless().await;
    lagging(&twice, shard, 100, 5).await;
    twice.strand(shard, 100, 5).await;
    twice.forget_generations(shard);
    assert_eq!(states(&engine, &twice).await, ["unknown", "unknown"]);
    // Once the generation is drained by somebody, nothing is left to tell by.
    table.drain(shard, &[1]).await;
    let expected = ["unknown", "unknown", "unknown"];
    assert_eq!(states(&engine, &table).await, expected);
}

/// As writers before Lance 14 leave every keyless table: it retires by itself.
#[tokio::test]
async fn a_merge_steps_over_what_an_old_writer_of_a_keyless_table_left() {
    let (engine, table, shard) = (engine(), Table::keyless().await, Uuid::new_v4());
    table.flush(shard, 50, 5).await;
    lagging(&table, shard, 100, 5).await;
    table.strand(shard, 200, 2).await;
    table.forget_generations(shard);
    assert_eq!(states(&engine, &table).await, ["contained", "stranded"]);
    let request = json!({ "uri": table.path(), "shard": shard, "property": "p" });
    let merged = ask(&engine, "merge_wal", request).await.unwrap();
    assert_eq!(merged["rows"], json!(10), "{merged}");
    assert_eq!(states(&engine, &table).await, ["stranded"]);
}

#[tokio::test]
async fn a_shard_that_counts_anew_proves_nothing() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    table.take_over(shard, 8, table.rows(500, 1), &[]).await;
    table.flush(shard, 100, 5).await;
    table.strand(shard, 200, 2).await;
    assert_eq!(states(&engine, &table).await, ["unknown"]);
}

#[tokio::test]
async fn a_shard_without_a_manifest_and_a_broken_entry_are_unknown() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    table.flush(shard, 100, 5).await;
    table.strand(shard, 200, 2).await;
    let next = tail(&engine, &table).await["next"].as_u64().unwrap();
    std::fs::write(table.wal_file(shard, next - 1), b"not arrow").unwrap();
    let broken = tail(&engine, &table).await;
    assert_eq!(
        (&broken["unknown"], &broken["entries"]),
        (&json!(1), &json!(1))
    );
    std::fs::remove_dir_all(table.shard_folder(shard).join("manifest")).unwrap();
    let lost = tail(&engine, &table).await;
    assert_eq!(lost["unknown"], lost["entries"]);
    assert!(lost["unknown"].as_i64().unwrap() >= 2, "{lost}");
}

/// As very old writers left them: the older row is not marked as deleted.
#[tokio::test]
async fn an_entry_whose_key_a_generation_has_twice_is_unknown() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    lagging(&table, shard, 100, 1).await;
    table.forget_generations(shard);
    let path = table.manifest(shard).await.sstables[0].path.clone();
    let folder = table.shard_folder(shard).join(path);
    let twice = vec![Ok(table.rows(100, 1)), Ok(table.updates(100, 1, 7))];
    let params = WriteParams {
        mode: WriteMode::Overwrite,
        ..WriteParams::default()
    };
    let rows = RecordBatchIterator::new(twice, table.schema());
    Box::pin(Dataset::write(rows, folder.to_str().unwrap(), Some(params)))
        .await
        .unwrap();
    assert_eq!(states(&engine, &table).await, ["unknown"]);
}

/// The shard's manifest says that there is a later one.
#[tokio::test]
async fn an_entry_that_is_lost_is_unknown() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    table.flush(shard, 100, 5).await;
    let lost = table.wal_end(shard);
    table.strand(shard, 200, 3).await;
    let last = table.wal_end(shard) - 1;
    table
        .change(shard, |manifest| {
            manifest.wal_entry_position_last_seen = last
        })
        .await;
    std::fs::remove_file(table.wal_file(shard, lost)).unwrap();
    let seen = tail(&engine, &table).await;
    assert_eq!(seen["unknown"], json!(1), "{seen}");
}

#[tokio::test]
async fn pruned_manifests_make_older_entries_unknown() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    table.strand(shard, 200, 2).await;
    table.forget_generations(shard);
    // Two later versions, by somebody who drains nothing.
    table.change(shard, |_| ()).await;
    table.change(shard, |_| ()).await;
    assert_eq!(states(&engine, &table).await, ["stranded"]);
    let latest = table.manifest(shard).await.version;
    for version in 1..latest {
        std::fs::remove_file(table.manifest_file(shard, version)).unwrap();
    }
    assert_eq!(states(&engine, &table).await, ["unknown"]);
}

#[tokio::test]
async fn coverage_counts_what_is_merged_and_what_is_in_the_base_already() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    table.flush(shard, 100, 5).await;
    let first = table.manifest(shard).await.replay_after_wal_entry_position;
    table.flush(shard, 200, 5).await;
    let second = table.manifest(shard).await.replay_after_wal_entry_position;
    table.strand(shard, 300, 1).await;
    let cursor = first - 1;
    table
        .change(shard, |manifest| {
            manifest.replay_after_wal_entry_position = cursor
        })
        .await;
    for _ in 0..2 {
        let none = checked(&engine, &table, shard, &[]).await;
        assert_eq!(none.covered, cursor);
        assert_eq!(none.open.len(), 3, "{none:?}");
        let one = checked(&engine, &table, shard, &[1]).await;
        assert_eq!((one.covered, one.open.len()), (first, 2));
        let both = checked(&engine, &table, shard, &[1, 2]).await;
        assert_eq!((both.covered, both.open.len()), (second, 1));
        assert_eq!(both.seen, both.open[0]);
        assert_eq!(both.taken.len(), 2);
        assert_eq!(both.manifest, table.manifest(shard).await.version);
        table.forget_generations(shard);
    }
    // Merged and still listed, as after a merge that died before it drained.
    let one = checked(&engine, &table, shard, &[1]).await;
    table
        .take_over(shard, 1, table.rows(100, 5), &record(shard, &one))
        .await;
    assert_eq!(checked(&engine, &table, shard, &[]).await.covered, first);
}

#[tokio::test]
async fn what_was_open_at_a_merge_is_still_stranded_after_it_was_drained() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    lagging(&table, shard, 100, 5).await;
    table.strand(shard, 200, 2).await;
    table.forget_generations(shard);
    merge_first(&engine, &table, shard, true).await;
    let mut dataset = table.dataset().await;
    Box::pin(dataset.delete("id = 'row 102'")).await.unwrap();
    assert_eq!(states(&engine, &table).await, ["in_base", "stranded"]);
    // A drain of somebody else afterwards may have had it.
    table
        .change(shard, |manifest| {
            let again = SsTable::unmeasured(2, "00000000_gen_2".to_owned());
            manifest.sstables.push(again);
            manifest.current_generation = 3;
        })
        .await;
    table.drain(shard, &[2]).await;
    assert_eq!(states(&engine, &table).await, ["in_base", "unknown"]);
}
