//! Old versions of an experiment.

use serde_json::json;

use super::*;

async fn clean(engine: &Arc<Engine>, table: &Table, older_than_ms: i64) -> Result<Value, Fault> {
    let request = json!({ "uri": table.path(), "older_than_ms": older_than_ms });
    ask(engine, "cleanup_dataset", request).await
}

async fn versions(table: &Table) -> Vec<u64> {
    let versions = table.dataset().await.versions().await.unwrap();
    versions.iter().map(|one| one.version).collect()
}

#[tokio::test]
async fn old_versions_go_and_those_that_tags_and_branches_hold_are_named() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    for from in [20, 30, 40, 50] {
        table.append(from, 5).await;
    }
    let mut dataset = table.dataset().await;
    dataset.tags().create("v1", 3).await.unwrap();
    dataset.tags().create("now", 6).await.unwrap();
    Box::pin(dataset.create_branch("dev", 4, None))
        .await
        .unwrap();
    table.flush(shard, 100, 5).await;
    let wal = table.shard_folder(shard);
    let before = files(&wal);
    let content = table.content().await;
    std::fs::write(format!("{}/data/foreign.lance", table.path()), b"mine").unwrap();

    let done = clean(&engine, &table, 1).await.unwrap();
    let held = json!([
        { "by": "branch dev", "version": 4 },
        { "by": "tag v1", "version": 3 },
    ]);
    assert_eq!(done["held"], held);
    assert!(done["removed"].as_i64().unwrap() >= 3, "{done}");
    assert!(done["bytes"].as_i64().unwrap() > 0);
    let left = versions(&table).await;
    assert!(left.contains(&3) && left.contains(&6), "{left:?}");
    assert!(!left.contains(&1) && !left.contains(&5), "{left:?}");
    assert_eq!(table.content().await, content);
    assert_eq!(files(&wal), before);
    assert!(std::path::Path::new(&format!("{}/data/foreign.lance", table.path())).exists());
    let tagged = table.dataset().await.checkout_version(3).await.unwrap();
    assert_eq!(tagged.count_rows(None).await.unwrap(), 15);
    let branch = table.dataset().await.checkout_branch("dev").await.unwrap();
    assert_eq!(branch.count_rows(None).await.unwrap(), 20);
}

fn files(folder: &std::path::Path) -> Vec<(std::path::PathBuf, u64)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push((path.clone(), path.metadata().unwrap().len())),
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn younger_versions_stay_and_no_age_at_all_is_refused() {
    let (engine, table) = (engine(), Table::keyed().await);
    table.append(20, 5).await;
    table.dataset().await.tags().create("v1", 1).await.unwrap();
    let done = clean(&engine, &table, 3_600_000).await.unwrap();
    assert_eq!((&done["removed"], &done["held"]), (&json!(0), &json!([])));
    assert_eq!(versions(&table).await, [1, 2, 3]);
    for bad in [0, -1, i64::MAX] {
        let fault = clean(&engine, &table, bad).await.unwrap_err();
        assert_eq!(fault.class, crate::error::Class::Invalid, "{bad}");
    }
}
