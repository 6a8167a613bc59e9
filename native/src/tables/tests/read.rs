use super::*;

#[tokio::test]
async fn a_read_gives_the_version_asked_for_or_says_that_it_is_gone() {
    let place = place();
    assert_eq!(
        class(place.read(json!({})).await),
        Some(Class::Gone),
        "no table"
    );
    place.commit(0, &numbers(&[("a", &[1])])).await.unwrap();
    place.commit(1, &numbers(&[("a", &[2, 3])])).await.unwrap();
    let (answer, table) = place.read(json!({ "version": 1 })).await.unwrap();
    assert_eq!((answer["version"].as_u64(), table.rows()), (Some(1), 1));
    assert_eq!(
        class(place.read(json!({ "version": 3 })).await),
        Some(Class::Gone)
    );
    place.clean_up().await;
    assert_eq!(
        class(place.read(json!({ "version": 1 })).await),
        Some(Class::Gone)
    );
    let json = json!({ "uri": place.uri });
    let counted = count_rows(place.engine.clone(), request(json), Bytes::new()).await;
    assert_eq!(counted.unwrap().json, json!({ "version": 2, "rows": 2 }));
}

#[tokio::test]
async fn a_read_leaves_out_columns_that_the_table_lacks() {
    let place = place();
    let table = numbers(&[("a", &[1]), ("b", &[2]), ("c", &[3])]);
    place.commit(0, &table).await.unwrap();
    let columns = json!({ "columns": ["c", "ours", "a"] });
    let (_, table) = place.read(columns).await.unwrap();
    let names: Vec<_> = table
        .schema
        .fields()
        .iter()
        .map(|field| field.name())
        .collect();
    assert_eq!(names, ["c", "a"]);
    let none = place.read(json!({ "columns": ["ours"] })).await;
    assert_eq!(class(none), Some(Class::Invalid));
}

#[tokio::test]
async fn the_head_is_what_a_read_would_read() {
    let place = place();
    assert_eq!(class(place.head().await), Some(Class::Gone), "no folder");
    std::fs::create_dir_all(PathBuf::from(&place.uri).join(VERSIONS_DIR)).unwrap();
    assert_eq!(class(place.head().await), Some(Class::Gone), "no manifest");
    place.commit(0, &numbers(&[("a", &[1])])).await.unwrap();
    let first = place.head().await.unwrap();
    for version in 1..12 {
        place
            .commit(version, &numbers(&[("a", &[2])]))
            .await
            .unwrap();
    }
    let litter = place.manifest(12).with_extension("manifest#1");
    std::fs::write(litter, "an upload that was never finished").unwrap();
    let head = place.head().await.unwrap();
    let (read, _) = place.read(json!({})).await.unwrap();
    let (old, _) = place.read(json!({ "version": 1 })).await.unwrap();
    assert_eq!(head["version"], 12);
    assert_eq!(
        (&head["version"], &head["etag"]),
        (&read["version"], &read["etag"])
    );
    assert_eq!(first["etag"], old["etag"]);
    assert_ne!(head["etag"], first["etag"]);
    let age = Utc::now().timestamp_millis() - head["time"].as_i64().unwrap();
    assert!((0..60_000).contains(&age), "{age} ms old");
}

#[tokio::test]
async fn the_head_costs_a_list_and_a_head_whatever_the_number_of_versions() {
    let place = place();
    for version in 0..5 {
        place
            .commit(version, &numbers(&[("a", &[2])]))
            .await
            .unwrap();
    }
    let before = place.engine.requests().snapshot();
    place.head().await.unwrap();
    let after = place.engine.requests().snapshot();
    let spent = (
        after.list - before.list,
        after.head - before.head,
        after.get - before.get,
    );
    assert_eq!(spent, (1, 1, 0));
}

#[tokio::test]
async fn a_cleanup_keeps_the_newest_versions_young_ones_and_tagged_ones() {
    let place = place();
    for version in 0..8 {
        place
            .commit(version, &numbers(&[("a", &[version as i64])]))
            .await
            .unwrap();
    }
    let dataset = place.engine.open(&place.uri, None).await.unwrap();
    dataset.tags().create("keep", 2).await.unwrap();
    let clean = async |older_than_ms: i64, keep: usize| {
        let json = json!({ "uri": place.uri, "older_than_ms": older_than_ms, "keep": keep });
        cleanup_versions(place.engine.clone(), request(json), Bytes::new()).await
    };
    assert_eq!(class(clean(-1, 1).await), Some(Class::Invalid));
    assert_eq!(
        clean(3_600_000, 1).await.unwrap().json["removed"],
        0,
        "all are young"
    );
    let removed = clean(0, 3).await.unwrap().json;
    // 1, 3, 4 and 5 went; 6, 7 and 8 are the newest, 2 is tagged.
    assert_eq!(removed["removed"], 4);
    assert!(removed["bytes"].as_u64().unwrap() > 0);
    let dataset = place.engine.open(&place.uri, None).await.unwrap();
    let left: Vec<u64> = dataset
        .versions()
        .await
        .unwrap()
        .iter()
        .map(|v| v.version)
        .collect();
    assert_eq!(left, [2, 6, 7, 8]);
    assert_eq!(place.values().await, [7]);
}
