//! A load written by an earlier version is the same load now, and loads written now can be read by
//! the keys that files always had.

use proptest::prelude::*;
use regatta_record::{Arrivals, Beside, Burst, Drive, LoadShape};
use serde_json::{Value, json};
use std::num::NonZeroU32;

fn drives() -> impl Strategy<Value = Drive> {
    let number = || (1..=u32::MAX).prop_map(|n| NonZeroU32::new(n).unwrap());
    let arrivals = prop::sample::select(&Arrivals::ALL[..]);
    prop_oneof![
        Just(Drive::Closed),
        number().prop_map(|in_flight| Drive::Bounded { in_flight }),
        (number(), arrivals).prop_map(|(rate, arrivals)| Drive::Open { rate, arrivals }),
        Just(Drive::Churn),
        any::<(u32, u32)>()
            .prop_map(|(instances, requests)| Drive::Burst(Burst { instances, requests })),
    ]
}

fn shapes() -> impl Strategy<Value = LoadShape> {
    let beside = any::<Option<(u32, u32)>>()
        .prop_map(|beside| beside.map(|(connections, n)| Beside { connections, n }));
    let rest = (any::<[u32; 3]>(), any::<[Option<u32>; 3]>(), beside);
    (drives(), rest).prop_map(|(drive, ([connections, idle, pipeline], options, beside))| {
        let [cores, requests, n] = options;
        let closed = LoadShape::closed(connections, pipeline);
        LoadShape { idle, drive, cores, requests, n, beside, ..closed }
    })
}

/// The same load as written by an earlier version: no drive, and `arrivals` whether or not there is
/// a rate. JSON contains all keys; TOML omits those without a value.
fn old(load: &LoadShape, idle_arrivals: Arrivals, with_nulls: bool) -> Value {
    let LoadShape { connections, idle, pipeline, drive, cores, requests, n, beside, .. } = *load;
    let (rate, arrivals) = match drive {
        Drive::Open { rate, arrivals } => (Some(rate), arrivals),
        _ => (None, idle_arrivals),
    };
    let burst = match drive {
        Drive::Burst(burst) => Some(burst),
        _ => None,
    };
    let mut old = json!({
        "connections": connections, "idle": idle, "pipeline": pipeline,
        "churn": drive == Drive::Churn, "rate": rate, "arrivals": arrivals, "cores": cores,
        "burst": burst, "requests": requests, "n": n, "beside": beside,
    });
    if !with_nulls {
        old.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    }
    old
}

proptest! {
    #[test]
    fn an_old_load_is_the_same_load(
        load in shapes(),
        arrivals in prop::sample::select(&Arrivals::ALL[..]),
        nulls: bool,
    ) {
        prop_assume!(!matches!(load.drive, Drive::Bounded { .. }));
        let read: LoadShape = serde_json::from_value(old(&load, arrivals, nulls)).unwrap();
        prop_assert_eq!(read, load);
        let text = serde_json::to_string(&read).unwrap();
        prop_assert_eq!(serde_json::from_str::<LoadShape>(&text).unwrap(), load);
    }

    #[test]
    fn written_loads_have_the_keys_that_files_always_had(load in shapes()) {
        let mut new = serde_json::to_value(load).unwrap();
        prop_assert_eq!(serde_json::from_value::<LoadShape>(new.clone()).unwrap(), load);
        let keys = new.as_object_mut().unwrap();
        let name = keys.remove("drive").unwrap();
        let in_flight = keys.remove("in_flight");
        let expected = match load.drive {
            Drive::Closed => "closed",
            Drive::Bounded { .. } => "bounded",
            Drive::Open { .. } => "open",
            Drive::Churn => "churn",
            Drive::Burst(_) => "burst",
        };
        prop_assert_eq!(name, expected);
        prop_assert_eq!(in_flight.is_some(), expected == "bounded");
        prop_assert_eq!(new, old(&load, Arrivals::default(), true));
    }
}

fn read(drive: &str) -> Result<Drive, String> {
    let text = format!(r#"{{"connections":64,"pipeline":1{drive}}}"#);
    let read = serde_json::from_str::<LoadShape>(&text);
    read.map(|load| load.drive).map_err(|error| error.to_string())
}

#[test]
fn keys_without_meaning_are_ignored() {
    for nothing in [
        "",
        r#","idle":0,"churn":false,"rate":null,"arrivals":"constant","burst":null,"beside":null"#,
        r#","arrivals":"poisson""#,
        r#","drive":"closed","arrivals":"constant","churn":false"#,
        r#","drive":null,"churn":null,"arrivals":null,"in_flight":null"#,
    ] {
        assert_eq!(read(nothing), Ok(Drive::Closed), "{nothing}");
        let text = format!(r#"{{"connections":64,"pipeline":1{nothing}}}"#);
        let load: LoadShape = serde_json::from_str(&text).unwrap();
        assert_eq!(load, LoadShape::closed(64, 1), "{nothing}");
    }
    assert_eq!(read(r#","drive":"churn""#), Ok(Drive::Churn));
    assert_eq!(read(r#","churn":true,"arrivals":"constant""#), Ok(Drive::Churn));
    let rate = NonZeroU32::new(5).unwrap();
    let open = Drive::Open { rate, arrivals: Arrivals::Poisson };
    assert_eq!(read(r#","rate":5"#), Ok(open));
    assert_eq!(read(r#","drive":"open","rate":5,"arrivals":null"#), Ok(open));
}

#[test]
fn keys_that_contradict_each_other_are_refused() {
    let burst = r#""burst":{"instances":2,"requests":3}"#;
    for (keys, message) in [
        (
            r#","rate":5,"churn":true"#,
            "one drive, but this one has `rate` (open) and `churn` (churn)",
        ),
        (r#","drive":"open","rate":5,"in_flight":2"#, "`in_flight` (bounded) and `rate` (open)"),
        (&format!(r#","churn":true,{burst}"#), "`churn` (churn) and `burst` (burst)"),
        (
            r#","drive":"closed","rate":5"#,
            r#"`drive` is "closed", but `rate` is set, which only "open" has"#,
        ),
        (
            r#","drive":"churn","in_flight":5"#,
            r#""churn", but `in_flight` is set, which only "bounded" has"#,
        ),
        (&format!(r#","drive":"open",{burst}"#), r#""open", but `burst` is set"#),
        (r#","drive":"open""#, r#"`drive` is "open", which needs `rate`, but it is missing"#),
        (r#","drive":"open","arrivals":"constant""#, "needs `rate`"),
        (r#","drive":"bounded""#, "needs `in_flight`"),
        (r#","drive":"burst","burst":null"#, "needs `burst`"),
        (r#","drive":"churn","churn":false"#, "needs `churn`"),
        (r#","rate":0"#, "`rate` must be at least 1, but is 0"),
        (r#","drive":"open","rate":0"#, "`rate` must be at least 1"),
        (r#","drive":"bounded","in_flight":0"#, "`in_flight` must be at least 1"),
        (r#","drive":"random""#, "unknown variant `random`, expected one of `closed`, `bounded`"),
    ] {
        let error = read(keys).unwrap_err();
        assert!(error.contains(message), "{keys}: {error}");
    }
}
