use std::time::{Duration, SystemTime};

use super::*;
use crate::tables::commit::{Fate, fate, overwrite};

#[tokio::test]
async fn a_commit_makes_the_table_exactly_the_body() {
    let place = place();
    assert_eq!(
        place.commit(0, &numbers(&[("a", &[1, 2])])).await.unwrap(),
        1
    );
    let wider = numbers(&[("a", &[7]), ("b", &[8])]);
    assert_eq!(place.commit(1, &wider).await.unwrap(), 2);
    let (answer, table) = place.read(json!({})).await.unwrap();
    assert_eq!(answer["version"], 2);
    assert_eq!(table.batches, wider.batches);
}

#[tokio::test]
async fn a_snapshot_without_rows_keeps_its_columns() {
    let place = place();
    let empty = Table {
        batches: Vec::new(),
        ..numbers(&[("a", &[]), ("b", &[])])
    };
    place.commit(0, &empty).await.unwrap();
    place.commit(1, &numbers(&[("a", &[1])])).await.unwrap();
    assert_eq!(place.commit(2, &empty).await.unwrap(), 3);
    let (_, table) = place.read(json!({})).await.unwrap();
    assert_eq!((table.rows(), table.schema.fields().len()), (0, 2));
}

#[tokio::test]
async fn a_commit_on_another_version_than_expected_changes_nothing() {
    let place = place();
    let (old, new) = (numbers(&[("a", &[1])]), numbers(&[("a", &[2])]));
    assert_eq!(
        class(place.commit(1, &new).await),
        Some(Class::Conflict),
        "no table"
    );
    place.commit(0, &old).await.unwrap();
    place.commit(1, &old).await.unwrap();
    for expect in [0, 1, 3] {
        let refused = class(place.commit(expect, &new).await);
        assert_eq!(
            refused,
            Some(Class::Conflict),
            "expected {expect}, head is 2"
        );
    }
    assert_eq!(place.values().await, [1]);
    assert_eq!(place.head().await.unwrap()["version"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_commits_at_the_same_time_exactly_one_wins() {
    let place = Arc::new(place());
    for expect in 0..6 {
        let commits = (0..4).map(|who| {
            let place = place.clone();
            tokio::spawn(
                async move { (who, place.commit(expect, &numbers(&[("a", &[who])])).await) },
            )
        });
        let ended = futures::future::join_all(commits).await;
        let (won, lost): (Vec<_>, Vec<_>) = ended
            .into_iter()
            .map(Result::unwrap)
            .partition(|(_, outcome)| outcome.is_ok());
        let winners: Vec<i64> = won.iter().map(|(who, _)| *who).collect();
        assert_eq!(winners.len(), 1, "on version {expect}");
        assert_eq!(place.values().await, winners);
        for (_, outcome) in lost {
            assert_eq!(class(outcome), Some(Class::Conflict));
        }
    }
}

#[tokio::test]
async fn a_strict_overwrite_from_a_handle_that_was_cleaned_past_is_noticed() {
    let place = place();
    place.commit(0, &numbers(&[("a", &[1])])).await.unwrap();
    let stale = place.engine.open(&place.uri, None).await.unwrap();
    for version in 1..5 {
        place
            .commit(version, &numbers(&[("a", &[50])]))
            .await
            .unwrap();
    }
    assert_eq!(place.clean_up().await["removed"], 4);
    let late = numbers(&[("a", &[2])]);
    let outcome = overwrite(
        &place.engine,
        &place.uri,
        Some(stale),
        &HashMap::new(),
        late,
    )
    .await;
    // Lance itself says "committed as version 2".
    assert!(place.manifest(2).exists());
    assert_eq!(class(outcome), Some(Class::Conflict));
    assert_eq!(place.values().await, [50]);
}

#[tokio::test]
async fn an_overwrite_that_fills_the_gap_just_below_the_head_is_noticed() {
    let place = place();
    place.commit(0, &numbers(&[("a", &[1])])).await.unwrap();
    let stale = place.engine.open(&place.uri, None).await.unwrap();
    place.commit(1, &numbers(&[("a", &[50])])).await.unwrap();
    place.commit(2, &numbers(&[("a", &[51])])).await.unwrap();
    assert_eq!(place.clean_up().await["removed"], 2);
    // Clocks of file systems are coarse.
    let earlier = SystemTime::now() - Duration::from_secs(1);
    let head = std::fs::File::open(place.manifest(3)).unwrap();
    head.set_modified(earlier).unwrap();
    let late = numbers(&[("a", &[2])]);
    let outcome = overwrite(
        &place.engine,
        &place.uri,
        Some(stale),
        &HashMap::new(),
        late,
    )
    .await;
    assert!(place.manifest(2).exists());
    assert_eq!(class(outcome), Some(Class::Conflict));
}

#[tokio::test]
async fn a_commit_is_found_below_what_others_built_on_it() {
    let place = place();
    place.commit(0, &numbers(&[("a", &[1])])).await.unwrap();
    let base = place.engine.open(&place.uri, None).await.unwrap();
    let (version, uuid) = overwrite(
        &place.engine,
        &place.uri,
        Some(base),
        &HashMap::new(),
        numbers(&[("a", &[2])]),
    )
    .await
    .unwrap();
    place.append(false, &numbers(&[("a", &[3])])).await.unwrap();
    place.append(false, &numbers(&[("a", &[4])])).await.unwrap();
    let found = fate(&place.engine, &place.uri, 1, &uuid).await.unwrap();
    assert_eq!((version, found), (2, Fate::Landed(2)));
    let foreign = fate(&place.engine, &place.uri, 1, "another").await.unwrap();
    assert_eq!(foreign, Fate::Absent(4));
    let too_old = fate(&place.engine, &place.uri, 2, &uuid).await.unwrap();
    assert_eq!(too_old, Fate::Absent(4));
}

#[tokio::test]
async fn a_commit_carries_its_properties_and_no_stable_row_ids() {
    let place = place();
    place.commit(0, &numbers(&[("a", &[1])])).await.unwrap();
    place.commit(1, &numbers(&[("a", &[1])])).await.unwrap();
    let dataset = place.engine.open(&place.uri, None).await.unwrap();
    assert!(!dataset.manifest().uses_stable_row_ids());
    let transaction = dataset.read_transaction().await.unwrap().unwrap();
    let properties = transaction.transaction_properties.unwrap();
    assert_eq!(properties["lancefleet.action"], "commit");
}

#[tokio::test]
async fn new_tables_are_readable_by_the_lance_inside_of_lance_context() {
    let place = place();
    let empty = Table {
        batches: Vec::new(),
        ..numbers(&[("a", &[])])
    };
    place.commit(0, &empty).await.unwrap();
    let format = |dataset: Dataset| dataset.manifest().data_storage_format.version.to_string();
    let created = place.engine.open(&place.uri, None).await.unwrap();
    assert_eq!(format(created), "2.1");
    place.commit(1, &numbers(&[("a", &[1])])).await.unwrap();
    let overwritten = place.engine.open(&place.uri, None).await.unwrap();
    assert_eq!(format(overwritten), "2.1");
}
