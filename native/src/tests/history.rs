//! Commits: their names, marks and properties, and where the walk back ends.

use lance::dataset::optimize::{CompactionOptions, compact_files};
use serde_json::json;

use super::*;

const PROPERTY: (&str, &str) = ("lancefleet.action", "tested");

/// Walks past what the fleet calls maintenance.
fn maintenance() -> Value {
    json!({
        "operations": ["Rewrite", "CreateIndex", "ReserveFragments", "UpdateConfig"],
        "marks": true,
        "property": PROPERTY.0,
    })
}

async fn commits(engine: &Arc<Engine>, table: &Table, known: u64, walk_past: Value) -> Vec<Value> {
    let target = json!({ "uri": table.path(), "known_version": known });
    let seen = observe_with(engine, target, walk_past).await;
    assert!(seen["error"].is_null(), "{seen}");
    seen["observation"]["commits"].as_array().unwrap().clone()
}

fn names(commits: &[Value]) -> Vec<&str> {
    let name = |commit: &'_ Value| commit["operation"].as_str().unwrap().to_owned();
    commits
        .iter()
        .map(|commit| Box::leak(name(commit).into_boxed_str()) as &str)
        .collect()
}

async fn compact(table: &Table) {
    let mut dataset = table.dataset().await;
    Box::pin(compact_files(
        &mut dataset,
        CompactionOptions::default(),
        None,
    ))
    .await
    .unwrap();
}

#[tokio::test]
async fn the_walk_ends_with_the_first_commit_that_is_not_maintenance() {
    let (engine, table) = (engine(), Table::keyed().await);
    table.append(20, 5).await;
    table.append(30, 5).await;
    compact(&table).await;
    let listed = commits(&engine, &table, 0, maintenance()).await;
    assert_eq!(names(&listed).last(), Some(&"Append"));
    let passed = &names(&listed)[..listed.len() - 1];
    assert!(passed.contains(&"Rewrite"), "{listed:?}");
    assert!(!passed.contains(&"Append"), "{listed:?}");
    // Without anything to walk past, the head alone.
    assert_eq!(commits(&engine, &table, 0, json!({})).await.len(), 1);
}

#[tokio::test]
async fn the_walk_stops_before_the_version_that_is_known() {
    let (engine, table) = (engine(), Table::keyed().await);
    table.append(20, 5).await;
    table.append(30, 5).await;
    let all = json!({ "operations": ["Append", "CreateIndex", "Overwrite"] });
    let versions = |commits: &[Value]| -> Vec<u64> {
        commits
            .iter()
            .map(|one| one["version"].as_u64().unwrap())
            .collect()
    };
    let listed = commits(&engine, &table, 2, all.clone()).await;
    assert_eq!(versions(&listed), [4, 3]);
    assert!(commits(&engine, &table, 4, all.clone()).await.is_empty());
    let listed = commits(&engine, &table, 0, all.clone()).await;
    assert_eq!(versions(&listed), [4, 3, 2, 1]);
    assert_eq!(
        names(&listed),
        ["Append", "Append", "CreateIndex", "Overwrite"]
    );
    // A known version above the head belongs to a table that is no more.
    let listed = commits(&engine, &table, 9, all).await;
    assert_eq!(versions(&listed), [4, 3, 2, 1]);
}

#[tokio::test]
async fn the_walk_is_no_longer_than_asked_for() {
    let (engine, table) = (engine(), Table::keyed().await);
    for from in [20, 30, 40] {
        table.append(from, 1).await;
    }
    let request = json!({
        "targets": [{ "uri": table.path() }],
        "walk_past": { "operations": ["Append"] },
        "max_commits": 2,
    });
    let reply = ask(&engine, "observe", request).await.unwrap();
    let listed = &reply["results"][0]["observation"]["commits"];
    assert_eq!(listed.as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_commit_with_our_property_says_its_action_and_is_walked_past() {
    let (engine, table) = (engine(), Table::keyed().await);
    table.append(20, 5).await;
    table.commit(WriteMode::Append, 30, 5, Some(PROPERTY)).await;
    let listed = commits(&engine, &table, 0, maintenance()).await;
    assert_eq!(names(&listed), ["Append", "Append"]);
    assert_eq!(listed[0]["action"], json!(PROPERTY.1));
    assert_eq!(listed[1]["action"], json!(""));
}

#[tokio::test]
async fn a_commit_that_was_cleaned_has_no_name_and_the_time_of_the_one_after_it() {
    let (engine, table) = (engine(), Table::keyed().await);
    table.append(20, 5).await;
    table.append(30, 5).await;
    compact(&table).await;
    let head = table.dataset().await.version_id();
    table.clean(&(1..head).collect::<Vec<_>>()).await;
    let walk = json!({ "operations": ["Rewrite", "ReserveFragments", "Append"] });
    let listed = commits(&engine, &table, 0, walk).await;
    assert_eq!(names(&listed), ["Rewrite", ""]);
    assert_eq!(listed[1]["time"], listed[0]["time"]);
    assert_eq!(listed[1]["version"], json!(head - 1));
}

#[tokio::test]
async fn a_commit_that_records_compacted_generations_says_so() {
    use lance::dataset::{MergeInsertBuilder, WhenMatched, WhenNotMatched};
    use lance_index::mem_wal::CompactedSsTable;
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    for mark in [false, true] {
        let dataset = Arc::new(table.dataset().await);
        let mut merge = MergeInsertBuilder::try_new(dataset, vec!["id".to_owned()]).unwrap();
        merge
            .when_matched(WhenMatched::UpdateAll)
            .when_not_matched(WhenNotMatched::InsertAll);
        if mark {
            merge.mark_sstables_as_compacted(vec![CompactedSsTable::new(shard, 1)]);
        }
        let rows = RecordBatchIterator::new(vec![Ok(table.rows(5, 10))], table.schema());
        let reader = Box::new(rows) as Box<dyn arrow_array::RecordBatchReader + Send>;
        Box::pin(merge.try_build().unwrap().execute_reader(reader))
            .await
            .unwrap();
    }
    let listed = commits(&engine, &table, 0, maintenance()).await;
    assert_eq!(names(&listed), ["Update", "Update"]);
    assert_eq!(
        (&listed[0]["marks"], &listed[1]["marks"]),
        (&json!(true), &json!(false))
    );
}
