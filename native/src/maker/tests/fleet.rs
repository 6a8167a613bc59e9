use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_is_made_of_copies_that_share_nothing() {
    let place = place();
    let uri = |name: &str| place.uri(&format!("data dir/{name}"));
    let json = json!({
        "dir": place.dir.path(),
        "templates": [
            { "kind": "rollout", "stranded": true },
            { "kind": "table", "age_ms": 9 * DAY },
        ],
        "items": [
            { "uri": uri("a.rollout.lance"), "template": 0 },
            { "uri": uri("b.rollout.lance"), "template": 0 },
            { "uri": uri("old.lance"), "template": 1 },
        ],
    });
    let reply = make_fleet(place.engine.clone(), request(json), Bytes::new())
        .await
        .unwrap();
    assert_eq!(reply.json["made"], 3);
    let keys =
        |template: usize| reply.json["templates"][template]["keys"].as_u64().unwrap() as usize;
    for (name, keys) in [
        ("data dir/a.rollout.lance", keys(0)),
        ("data dir/b.rollout.lance", keys(0)),
        ("data dir/old.lance", keys(1)),
    ] {
        assert_eq!(place.live_keys(name).await.len(), keys, "{name}");
    }
    let at_top = std::fs::read_dir(place.dir.path()).unwrap().count();
    assert_eq!(at_top, 1, "templates are gone");
    for path in files(&place.dir.path().join("data dir/old.lance")) {
        assert!(
            is_old(path.metadata().unwrap().modified().unwrap()),
            "{path:?}"
        );
    }
    let fresh = Utc::now()
        - place
            .open("data dir/a.rollout.lance")
            .await
            .manifest()
            .timestamp();
    assert!(fresh.num_minutes() < 10);
    #[cfg(unix)]
    for path in files(&place.dir.path().join("data dir")) {
        use std::os::unix::fs::MetadataExt;
        let metadata = path.metadata().unwrap();
        assert!(
            metadata.is_dir() || metadata.nlink() == 1,
            "{path:?} is shared"
        );
    }
    // A write to one of two twins is not seen in the other.
    place
        .write(
            "data dir/a.rollout.lance",
            json!({ "rows": 2, "append": true }),
        )
        .await;
    assert_eq!(
        place
            .open("data dir/a.rollout.lance")
            .await
            .count_rows(None)
            .await
            .unwrap(),
        7
    );
    assert_eq!(
        place
            .open("data dir/b.rollout.lance")
            .await
            .count_rows(None)
            .await
            .unwrap(),
        5
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_never_touches_what_is_there() {
    let place = place();
    std::fs::create_dir(place.dir.path().join("mine.lance")).unwrap();
    let json = json!({
        "templates": [{ "kind": "table" }],
        "items": [{ "uri": place.uri("mine.lance"), "template": 0 }],
    });
    let outcome = make_fleet(place.engine.clone(), request(json), Bytes::new()).await;
    assert_eq!(
        outcome.map_err(|fault| fault.class).unwrap_err(),
        Class::Exists
    );
    assert_eq!(files(&place.dir.path().join("mine.lance")).len(), 1);
    let json = json!({
        "templates": [],
        "items": [{ "uri": place.uri("new.lance"), "template": 0 }],
    });
    let outcome = make_fleet(place.engine.clone(), request(json), Bytes::new()).await;
    assert_eq!(
        outcome.map_err(|fault| fault.class).unwrap_err(),
        Class::Invalid
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn where_files_can_not_be_copied_each_experiment_is_made() {
    let place = place();
    let root = format!("file-object-store://{}", place.dir.path().to_str().unwrap());
    let json = json!({
        "templates": [{ "kind": "generic", "tombstones": true, "age_ms": DAY }],
        "items": [
            { "uri": format!("{root}/a"), "template": 0 },
            { "uri": format!("{root}/b"), "template": 0 },
        ],
    });
    let reply = make_fleet(place.engine.clone(), request(json), Bytes::new())
        .await
        .unwrap();
    for name in ["a", "b"] {
        assert_eq!(
            reply.json["templates"][0]["keys"],
            place.live_keys(name).await.len()
        );
        let age = Utc::now() - place.open(name).await.manifest().timestamp();
        assert_eq!(age.num_days(), 1);
    }
}
