//! Compaction: bounded passes, deletes, indexes, conflicts.

use lance::index::DatasetIndexExt;
use lance_index::IndexType;
use lance_index::scalar::ScalarIndexParams;
use serde_json::json;

use super::*;
use crate::error::Class;

async fn compact(engine: &Arc<Engine>, table: &Table, limits: Value) -> Value {
    compact_or_fail(engine, table, limits).await.unwrap()
}

async fn compact_or_fail(
    engine: &Arc<Engine>,
    table: &Table,
    limits: Value,
) -> Result<Value, Fault> {
    let mut request = json!({
        "uri": table.path(),
        "target_rows": 1000,
        "max_source_fragments": 0,
        "max_source_bytes": 0,
        "min_fragments": 2,
        "property": "lancefleet.action",
    });
    for (key, value) in limits.as_object().unwrap() {
        request[key] = value.clone();
    }
    ask(engine, "compact", request).await
}

/// Ten rows, and `number` fragments of two rows more.
async fn fragmented(number: i64) -> Table {
    let table = Table::keyed().await;
    for fragment in 0..number {
        table.append(100 + 2 * fragment, 2).await;
    }
    table
}

#[tokio::test]
async fn small_fragments_become_one_and_the_commit_says_whose_it_is() {
    let (engine, table) = (engine(), fragmented(5).await);
    let before = table.content().await;
    let done = compact(&engine, &table, json!({})).await;
    assert_eq!((&done["tasks"], &done["more"]), (&json!(1), &json!(false)));
    assert_eq!(
        (&done["fragments_before"], &done["fragments_after"]),
        (&json!(6), &json!(1))
    );
    assert_eq!(
        (&done["fragments_removed"], &done["fragments_added"]),
        (&json!(6), &json!(1))
    );
    assert_eq!(done["rows"], json!(20));
    assert!(done["bytes"].as_i64().unwrap() > 0);
    assert!(done["version"].as_u64() > done["version_before"].as_u64());
    assert!(done["storage_requests"]["put"].as_i64().unwrap() > 0);
    assert_eq!(table.content().await, before);
    let head = table
        .dataset()
        .await
        .read_transaction()
        .await
        .unwrap()
        .unwrap();
    let properties = head.transaction_properties.unwrap();
    assert_eq!(properties.get("lancefleet.action").unwrap(), "compact");
}

#[tokio::test]
async fn an_empty_plan_commits_nothing() {
    let (engine, table) = (engine(), fragmented(2).await);
    for limits in [json!({ "min_fragments": 4 }), json!({ "target_rows": 1 })] {
        let done = compact(&engine, &table, limits).await;
        assert_eq!((&done["tasks"], &done["more"]), (&json!(0), &json!(false)));
        assert_eq!(done["version"], done["version_before"]);
        assert_eq!(done["version"], json!(table.dataset().await.version_id()));
    }
    // Small ones between big ones can't be merged, however many there are.
    let table = Table::keyed().await;
    for from in [100, 200, 300] {
        table.append(from, 1).await;
        table.append(from + 1, 10).await;
    }
    let done = compact(&engine, &table, json!({ "target_rows": 5 })).await;
    assert_eq!(done["tasks"], json!(0));
}

#[tokio::test]
async fn passes_are_bounded_and_come_to_an_end() {
    let (engine, table) = (engine(), fragmented(20).await);
    let before = table.content().await;
    let limits = json!({ "max_source_fragments": 4 });
    let mut passes = 0;
    loop {
        let done = compact(&engine, &table, limits.clone()).await;
        assert!(done["fragments_removed"].as_i64().unwrap() <= 4, "{done}");
        assert!(done["tasks"].as_i64().unwrap() > 0, "{done}");
        passes += 1;
        if done["more"] == json!(false) {
            assert_eq!(done["fragments_after"], json!(1));
            break;
        }
        assert!(passes < 30, "no end: {done}");
    }
    assert!(passes >= 7, "{passes}");
    assert_eq!(table.content().await, before);
    // A budget that is smaller than any task still moves it.
    let table = fragmented(2).await;
    let limits = json!({ "max_source_bytes": 1, "max_source_fragments": 1 });
    let done = compact(&engine, &table, limits).await;
    assert_eq!(
        (&done["fragments_removed"], &done["more"]),
        (&json!(2), &json!(true))
    );
}

#[tokio::test]
async fn deleted_rows_stay_deleted() {
    let (engine, table) = (engine(), fragmented(5).await);
    let mut dataset = table.dataset().await;
    Box::pin(dataset.delete("value in (3, 102, 104)"))
        .await
        .unwrap();
    let before = table.content().await;
    assert_eq!(before.len(), 17);
    let done = compact(&engine, &table, json!({})).await;
    assert_eq!(
        (&done["rows"], &done["fragments_after"]),
        (&json!(17), &json!(1))
    );
    assert_eq!(table.content().await, before);
}

#[tokio::test]
async fn an_index_still_answers() {
    use futures::TryStreamExt;
    let (engine, table) = (engine(), fragmented(3).await);
    let mut dataset = table.dataset().await;
    let params = ScalarIndexParams::default();
    let name = Some("by_id".to_owned());
    Box::pin(dataset.create_index(&["id"], IndexType::BTree, name, &params, false))
        .await
        .unwrap();
    for from in [500, 600, 700] {
        table.append(from, 2).await;
    }
    let mut passes = 0;
    while compact(&engine, &table, json!({})).await["tasks"] != json!(0) {
        passes += 1;
        assert!(passes < 5);
    }
    // The indexed and the others are not mixed.
    let dataset = table.dataset().await;
    assert_eq!(dataset.count_fragments(), 2);
    for (id, value) in [("row 3", 3), ("row 104", 104), ("row 601", 601)] {
        let mut scanner = dataset.scan();
        scanner.filter(&format!("id = '{id}'")).unwrap();
        let plan = scanner.explain_plan(false).await.unwrap();
        assert!(plan.contains("ScalarIndexQuery"), "{plan}");
        let stream = scanner.try_into_stream().await.unwrap();
        let found: Vec<RecordBatch> = stream.try_collect().await.unwrap();
        let rows: usize = found.iter().map(RecordBatch::num_rows).sum();
        assert_eq!(rows, 1, "{id}");
        let batch = found.iter().find(|batch| batch.num_rows() == 1).unwrap();
        let values = batch["value"]
            .as_any()
            .downcast_ref::<Int64Array>()
            .unwrap();
        assert_eq!(values.value(0), value);
    }
}

#[tokio::test]
async fn marks_and_pending_generations_are_left_as_they_are() {
    let (engine, table, shard) = (engine(), fragmented(3).await, Uuid::new_v4());
    table.flush(shard, 200, 5).await;
    table.take_over(shard, 1, table.rows(200, 5), &[]).await;
    table.flush(shard, 300, 5).await;
    let before = observe(&engine, &table.path()).await["shards"].clone();
    compact(&engine, &table, json!({})).await;
    let after = observe(&engine, &table.path()).await["shards"].clone();
    assert_eq!(before, after);
    assert_eq!(after[0]["compacted_mark"], json!(1));
}

/// Rows of a fragment go while it is rewritten: whoever comes second gives way.
#[tokio::test]
async fn a_conflict_with_a_writer_is_one() {
    use crate::compact::{Wanted, pass_over};
    let (table, wanted) = (fragmented(3).await, Wanted::default());
    let stale = table.dataset().await;
    let mut dataset = table.dataset().await;
    Box::pin(dataset.delete("value = 3")).await.unwrap();
    let refused = pass_over(stale, wanted, "").await.unwrap_err();
    assert_eq!(refused.class, Class::Conflict, "{refused}");
    // An append is no reason to give way.
    let stale = table.dataset().await;
    table.append(900, 2).await;
    assert!(pass_over(stale, wanted, "").await.is_ok());
    assert_eq!(table.content().await.len(), 17);
}

/// Lance looks at what others committed since, as far as it finds it.
#[tokio::test]
async fn a_late_pass_brings_nothing_back_that_went_in_a_version_that_was_cleaned_up() {
    use crate::compact::{Wanted, pass_over};
    let (engine, table) = (engine(), fragmented(3).await);
    let stale = crate::unbroken::open(&engine, &table.path()).await.unwrap();
    let read = stale.version_id();
    let mut dataset = table.dataset().await;
    Box::pin(dataset.delete("value = 3")).await.unwrap();
    table.append(900, 2).await;
    let before = table.content().await;
    table.clean(&[read + 1]).await;
    let refused = pass_over(stale, Wanted::default(), "").await.unwrap_err();
    assert_eq!(refused.class, Class::Conflict, "{refused}");
    assert_eq!(table.content().await, before);
    compact(&engine, &table, json!({})).await;
    assert_eq!(table.content().await, before);
}

/// By hand: `WIDE_ROWS=6000 cargo test --profile fast wide_rows -- --ignored`, and
/// look at the most memory that the process had (`/usr/bin/time -v`).
#[tokio::test]
#[ignore = "writes gigabytes"]
async fn wide_rows_are_compacted_in_bounded_memory() {
    use arrow_array::LargeBinaryArray;
    let rows: usize = std::env::var("WIDE_ROWS").map_or(600, |rows| rows.parse().unwrap());
    let (engine, table) = (engine(), Table::empty(false));
    let schema = Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("payload", DataType::LargeBinary, true),
    ]));
    for row in 0..rows {
        let bytes: Vec<u8> = (0..1_500_000_usize)
            .map(|n| ((n * (row + 7)) >> 3) as u8)
            .collect();
        let ids = Int64Array::from(vec![row as i64]);
        let payload = LargeBinaryArray::from(vec![bytes.as_slice()]);
        let batch =
            RecordBatch::try_new(schema.clone(), vec![Arc::new(ids), Arc::new(payload)]).unwrap();
        let reader = RecordBatchIterator::new(vec![Ok(batch)], schema.clone());
        let params = WriteParams {
            mode: if row == 0 {
                WriteMode::Create
            } else {
                WriteMode::Append
            },
            ..WriteParams::default()
        };
        Box::pin(Dataset::write(reader, &table.path(), Some(params)))
            .await
            .unwrap();
    }
    let limits = json!({ "max_source_fragments": 100_000, "max_source_bytes": 1_u64 << 40 });
    let done = compact(&engine, &table, limits).await;
    assert_eq!(done["rows"], json!(rows));
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let most = status
        .lines()
        .find(|line| line.starts_with("VmHWM"))
        .unwrap();
    println!("{rows} rows: {most}");
}
